"""No cliff between consistent and contradictory judgements: 5,000 images of MNIST, LeNet.

60 judgements an item, class noise .4, with and without slips (P(same | same) .95, P(same |
different) .02); accuracy on the 10,000 test images. DATA is a folder with MNIST in its own format.

    python benchmarks/no_cliff_mnist.py DATA [--seeds 2] [--device cuda] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import records
from likewise import Pairs, SimilarityClassifier
from likewise.datasets.mnist import load_mnist
from likewise.noise import corrupt_labels, symmetric

RESULTS = Path(__file__).parents[1] / "results" / "no_cliff_mnist.json"
ITEMS, PER_ITEM, NOISE = 5_000, 60, 0.4
SAME_IF_SAME, SAME_IF_DIFFERENT = 0.95, 0.02


def judgements(y: np.ndarray, slips: bool, seed: int) -> Pairs:
    """Class flips, then slips of single answers; the same draw with and without these."""
    rng = np.random.default_rng(seed)
    pairs = Pairs.from_labels(corrupt_labels(y, symmetric(10, NOISE), rng), PER_ITEM, rng)
    if not slips:
        return pairs
    u = rng.random(len(pairs))
    same = np.where(pairs.same, u < SAME_IF_SAME, u < SAME_IF_DIFFERENT)
    return Pairs(pairs.left, pairs.right, same, n_items=len(y))


def table(rows: list[dict[str, Any]]) -> str:
    """With and without slips, as Markdown."""
    lines = ["| judgements | accuracy, by seed | mean | seconds |", "|---|---|---|---|"]
    for slips in (False, True):
        mine = sorted((row for row in rows if row["slips"] == slips), key=lambda row: row["seed"])
        accuracy = [row["accuracy"] for row in mine]
        seconds = np.mean([row["seconds"] for row in mine])
        lines.append(
            f"| {'with slips' if slips else 'consistent'} "
            f"| {', '.join(f'{value:.3f}' for value in accuracy)} "
            f"| {np.mean(accuracy):.3f} | {seconds:.0f} ({mine[0]['device']}) |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    mnist = load_mnist(options.data)
    for seed in range(options.seeds):
        chosen = np.random.default_rng([seed, 1]).permutation(len(mnist.train_x))[:ITEMS]
        for slips in (False, True):
            pairs = judgements(mnist.train_y[chosen], slips, seed)
            clf = SimilarityClassifier(
                10, network="lenet", random_state=seed, device=options.device, verbose=False
            )
            began = time.perf_counter()
            clf.fit(mnist.train_x[chosen], pairs)
            row = {
                "slips": slips,
                "seed": seed,
                "accuracy": clf.score(mnist.test_x, mnist.test_y),
                "seconds": round(time.perf_counter() - began, 1),
                "device": options.device,
                "choice": clf.choice_,
            }
            records.append(options.out, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
