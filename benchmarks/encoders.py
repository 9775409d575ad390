"""Texts and photographs without any model: how well, how long, and with how many features.

400 short texts of 4 topics with 2,000 answers of which a tenth are wrong, and 200 new ones; with
``--cifar10 ROOT`` also 380 photographs of 4 kinds with 500 such answers, and 200 new ones. The
number of features is compared by judgements that the fit has not seen; accuracy is told beside it.

    python benchmarks/encoders.py [--cifar10 ROOT]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

import records
from likewise.classifier import SimilarityClassifier
from likewise.datasets.cifar import load_cifar10
from likewise.items.encoders import patches, tfidf
from likewise.items.encoders.features import encode_items
from likewise.items.raw import Photographs, open_raw
from likewise.pairs import Pairs
from likewise.runs.report_data import said_same

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from encoder_cases import make_texts

KINDS = (0, 1, 5, 8)  # aeroplanes, cars, dogs, ships
UNSEEN = 0.2


def answers(classes: np.ndarray, count: int, rng: np.random.Generator) -> Pairs:
    """Answers about pairs at random, a tenth of them wrong."""
    left = rng.integers(len(classes), size=count)
    right = (left + rng.integers(1, len(classes), size=count)) % len(classes)
    same = (classes[left] == classes[right]) ^ (rng.random(count) < 0.1)
    return Pairs(left, right, same, n_items=len(classes))


def measured(features: np.ndarray, classes: np.ndarray, n: int, pairs: Pairs) -> dict[str, float]:
    """A fit to the first ``n`` items: accuracy on the others, and unseen judgements foretold."""
    began = time.process_time()
    model = SimilarityClassifier(4, random_state=0, verbose=False).fit(features[:n], pairs)
    seconds = time.process_time() - began
    unseen = np.random.default_rng(1).random(len(pairs)) < UNSEEN
    part = SimilarityClassifier(4, random_state=0, verbose=False)
    part.fit(features[:n], pairs.select(~unseen))
    held = pairs.select(unseen)
    chance = said_same(part, part.predict_proba(features[:n]), held).clip(1e-3, 1 - 1e-3)
    told = np.where(held.same, chance, 1 - chance)
    return {
        "accuracy": round(model.score(features[n:], classes[n:]), 4),
        "unseen_log_likelihood": round(float(np.log(told).mean()), 4),
        "cpu_seconds": round(seconds, 1),
    }


def of_texts(dimensions: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    texts, classes = make_texts(600, rng)
    tfidf.DIMENSIONS = dimensions
    features = tfidf.TfidfSvd.fit(texts[:400]).encode(texts)
    return measured(features, classes, 400, answers(classes[:400], 2000, rng))


def of_photographs(root: Path, dimensions: int, seed: int) -> dict[str, float]:
    test = load_cifar10(root)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.flatnonzero(np.isin(test.test_y, KINDS)))[:580]
    classes = test.test_y[chosen]
    patches.DIMENSIONS = dimensions
    with tempfile.TemporaryDirectory() as folder:
        for k, image in enumerate(test.test_x[chosen]):
            Image.fromarray(image).save(Path(folder) / f"{k:03d}.png")
        raw = open_raw(folder)
        assert isinstance(raw, Photographs)
        fitted = Photographs(raw.root, raw.names[:380])
        features = encode_items(raw, patches.PatchFeatures.fit(fitted), cached=False)
    return measured(features, classes, 380, answers(classes[:380], 500, rng))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cifar10", type=Path, help="CIFAR-10 in its published layout")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/encoders.json"))
    asked = parser.parse_args()
    rows = []
    for seed in range(asked.seeds):
        for dimensions in (100, 200):
            rows.append({"items": "texts", "features": dimensions, "seed": seed})
            rows[-1] |= of_texts(dimensions, seed)
            print(rows[-1], flush=True)
        for dimensions in (20, 50) if asked.cifar10 else ():
            rows.append({"items": "photographs", "features": dimensions, "seed": seed})
            rows[-1] |= of_photographs(asked.cifar10, dimensions, seed)
            print(rows[-1], flush=True)
    records.append(asked.out, {"rows": rows})


if __name__ == "__main__":
    main()
