"""Crowds: real people on three dog breeds, and crowds made by hand that fail in opposite ways.

Nothing is chosen by the truth: it makes the crowds of the second kind, and scores. k-means of the
features stands beside every result. Writes results/crowd.json:

    python benchmarks/crowd.py [--seeds 5]

crowd-dogs3 is looked for under $LIKEWISE_DATA or ../shared/data, and left out where it is absent.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.cluster import KMeans

from likewise import Pairs
from likewise.inference import fit_joint
from likewise.io.atomic import write_json
from likewise.metrics import matched_accuracy

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "crowd.json"


@dataclass(frozen=True)
class Crowd:
    """Items (N, d), their classes (N,), and what people said."""

    items: np.ndarray
    truth: np.ndarray
    pairs: Pairs

    @property
    def n_classes(self) -> int:
        return int(self.truth.max()) + 1


# -- crowds -------------------------------------------------------------------------------------


def dogs(seed: int) -> Crowd | None:
    """9,000 judgements by 300 people; 31.5% are wrong."""
    folder = Path(os.environ.get("LIKEWISE_DATA", ROOT.parent / "shared" / "data")) / "crowd-dogs3"
    if not folder.exists():
        return None
    with (folder / "truth.csv").open() as lines:
        names = [row["class"] for row in csv.DictReader(lines)]
    truth = np.unique(names, return_inverse=True)[1]
    return Crowd(np.load(folder / "items.npy"), truth, Pairs.read(folder / "pairs.csv"))


def people(z: np.ndarray, alike: np.ndarray, rng: np.random.Generator, per_item: int = 38) -> Pairs:
    """30 judgements a person: attentive and biased to different degrees, some coins, some stubborn.

    ``alike`` (C, C): how much two perceived classes look the same, as a logit.
    """
    n_people = len(z) * per_item // 60
    person = np.repeat(np.arange(n_people), 30)
    left = rng.integers(0, len(z), len(person))
    right = (left + rng.integers(1, len(z), len(person))) % len(z)
    attention, bias = rng.uniform(0.5, 1.6, n_people), rng.normal(0, 0.7, n_people)
    kind = rng.random(n_people)
    attention[kind < 0.16] = 0
    stubborn = (kind >= 0.12) & (kind < 0.16)
    bias[stubborn] = rng.choice([-5.0, 5.0], stubborn.sum())
    logit = bias[person] + attention[person] * alike[z[left], z[right]]
    same = rng.random(len(person)) < 1 / (1 + np.exp(-logit))
    return Pairs(left, right, same, [f"p{k:03d}" for k in person], n_items=len(z))


def look(n_classes: int, equal: float, hard: float | None = None) -> np.ndarray:
    """(C, C) logits of looking alike; classes 0 and 1 are harder to tell apart with ``hard``."""
    alike = np.where(np.eye(n_classes, dtype=bool), equal, -equal - 0.2)
    if hard is not None:
        alike[0, 1] = alike[1, 0] = hard
    return alike


def lift(latent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """1280 correlated, non-negative features, as networks give."""
    mixing = rng.normal(size=(latent.shape[1], 1280)) / np.sqrt(latent.shape[1])
    return np.maximum(latent @ mixing + 0.3 * rng.normal(size=1280), 0).astype(np.float32)


def misleading(seed: int) -> Crowd:
    """Features tell the classes apart; a quarter of two classes' pictures misleads everybody."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 470)
    centre = 1.2 * rng.normal(size=(3, 24))
    centre[1] = centre[0] + 0.6 * (centre[1] - centre[0])
    latent = centre[y] + 0.8 * rng.normal(size=(470, 24))
    fooled = rng.random(470) < 0.25
    z = np.where(fooled & (y < 2), 1 - y, y)
    return Crowd(lift(latent, rng), y, people(z, look(3, 1.2, -0.4), rng))


def leaning(seed: int) -> Crowd:
    """As above, but the features show which pictures mislead: a flexible head learns that too."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 470)
    scale = np.arange(1, 61) ** -0.7
    centre = 1.6 * rng.normal(size=(3, 60)) * scale
    spread = rng.normal(size=(470, 60)) * scale
    z = y.copy()
    for taken_for in (0, 1):
        lean = spread @ ((centre[taken_for] - centre[2]) + rng.normal(size=60) * scale)
        noisy = lean + 0.3 * lean.std() * rng.normal(size=470)
        z[(z == 2) & (noisy > np.quantile(lean[y == 2], 0.77))] = taken_for
    return Crowd(lift(centre[y] + spread, rng), y, people(z, look(3, 1.4, -0.5), rng))


def blurred(seed: int) -> Crowd:
    """Features merge two of five classes and split a third; people tell them apart, mostly."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, 340)
    scale = np.arange(1, 61) ** -0.7
    centre = 1.5 * rng.normal(size=(5, 60)) * scale
    centre[1] = centre[0] + 0.6 * rng.normal(size=60) * scale
    latent = centre[y] + rng.normal(size=(340, 60)) * scale
    latent[(y == 2) & (rng.random(340) < 0.5)] += 1.3 * rng.normal(size=60) * scale
    fooled = rng.random(340) < 0.12
    z = np.where(fooled & (y < 2), 1 - y, y)
    return Crowd(lift(latent, rng), y, people(z, look(5, 2.2, -0.5), rng))


def poor_features(seed: int) -> Crowd:
    """People know; the features hardly show it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 400)
    latent = 0.45 * rng.normal(size=(4, 24))[y] + 0.8 * rng.normal(size=(400, 24))
    latent += 0.8 * rng.normal(size=(400, 3)) @ rng.normal(size=(3, 24))
    return Crowd(lift(latent, rng), y, people(y, look(4, 2.2), rng))


CROWDS: dict[str, Callable[[int], Crowd | None]] = {
    "crowd-dogs3": dogs,
    "misleading pictures": misleading,
    "misleading, visibly": leaning,
    "features that blur": blurred,
    "poor features": poor_features,
}


def judge_crowd(name: str, seed: int) -> dict[str, Any] | None:
    crowd = CROWDS[name](seed)
    if crowd is None:
        return None
    began = time.process_time()
    result = fit_joint(crowd.items, crowd.pairs, crowd.n_classes, random_state=seed)
    seconds = time.process_time() - began
    predicted = result.module(torch.from_numpy(crowd.items)).argmax(1).numpy()
    rows = crowd.items / np.linalg.norm(crowd.items, axis=1, keepdims=True)
    clusters = KMeans(crowd.n_classes, n_init=10, random_state=seed).fit(rows).labels_
    pairs = crowd.pairs
    right = (crowd.truth[pairs.left] == crowd.truth[pairs.right]) == pairs.same
    share = {
        str(who): right[pairs.annotator == k].mean() for k, who in enumerate(pairs.annotator_names)
    }
    table = result.annotators
    rank = spearmanr(table["reliability"], [share[who] for who in table["annotator"]])
    return {
        "crowd": name,
        "seed": seed,
        "wrong_judgements": float(1 - right.mean()),
        "accuracy": matched_accuracy(predicted, crowd.truth),
        "k_means": matched_accuracy(clusters, crowd.truth),
        "reliability_spearman": float(rank.statistic),
        "cpu_seconds": round(seconds, 1),
        "choice": result.choice,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = [judge_crowd(name, seed) for name in CROWDS for seed in range(options.seeds)]
    rows = [row for row in runs if row is not None]
    write_json(RESULTS, {"crowds": rows})
    print(crowd_table(rows))


def crowd_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| crowd | wrong judgements | accuracy | worst | k-means | people ranked (Spearman) |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["crowd"] for row in rows):
        mine = [row for row in rows if row["crowd"] == name]
        mean = {key: np.mean([row[key] for row in mine]) for key in mine[0] if key[0] in "wakr"}
        lines.append(
            f"| {name} | {mean['wrong_judgements']:.3f} | {mean['accuracy']:.3f} "
            f"| {min(row['accuracy'] for row in mine):.3f} | {mean['k_means']:.3f} "
            f"| {mean['reliability_spearman']:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
