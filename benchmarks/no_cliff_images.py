"""No cliff between consistent and contradictory judgements, on images.

MNIST: 5,000 images, LeNet, 60 judgements an item, with and without slips. CIFAR-10: all 50,000,
ResNet-32, all pairs without slips beside 50 judgements an item with slips. Class noise .4
throughout; slips are P(same | same) .95 and P(same | different) .02; accuracy on the 10,000 test
images. DATA is a folder with MNIST in its own format, or with the packed CIFAR-10.

    python benchmarks/no_cliff_images.py DATA [--images cifar10] [--seeds 2] [--device cuda]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import records
from likewise import Pairs, SimilarityClassifier
from likewise.datasets.mnist import load_mnist
from likewise.datasets.packed import load_packed
from likewise.noise import corrupt_labels, symmetric

RESULTS = Path(__file__).parents[1] / "results" / "no_cliff_images.json"
NOISE = 0.4
SAME_IF_SAME, SAME_IF_DIFFERENT = 0.95, 0.02


@dataclass(frozen=True)
class Case:
    """Images, the network for them, and how many judgements."""

    title: str
    network: str
    n_items: int
    consistent: int | None
    """Judgements an item without slips; None: all pairs."""
    with_slips: int
    """Judgements an item with slips."""


CASES = {
    "mnist": Case("MNIST", "lenet", 5_000, 60, 60),
    "cifar10": Case("CIFAR-10", "resnet32", 50_000, None, 50),
}


def judgements(y: np.ndarray, case: Case, slips: bool, seed: int) -> Pairs:
    """Class flips, then slips of single answers; the same flips with and without these."""
    rng = np.random.default_rng(seed)
    seen = corrupt_labels(y, symmetric(10, NOISE), rng)
    if not slips:
        return Pairs.from_labels(seen, case.consistent, rng)
    pairs = Pairs.from_labels(seen, case.with_slips, rng)
    u = rng.random(len(pairs))
    same = np.where(pairs.same, u < SAME_IF_SAME, u < SAME_IF_DIFFERENT)
    return Pairs(pairs.left, pairs.right, same, n_items=len(y))


def table(rows: list[dict[str, Any]]) -> str:
    """With and without slips, as Markdown."""
    lines = [
        "| images | judgements an item | accuracy, by seed | mean | seconds |",
        "|---|---|---|---|---|",
    ]
    for images, case in CASES.items():
        for slips in (False, True):
            mine = [row for row in rows if row["slips"] == slips and row["images"] == images]
            mine.sort(key=lambda row: int(row["seed"]))
            if not mine:
                continue
            many = case.with_slips if slips else case.consistent or "all pairs"
            accuracy = [row["accuracy"] for row in mine]
            seconds = np.mean([row["seconds"] for row in mine])
            lines.append(
                f"| {case.title} | {many}, {'with slips' if slips else 'consistent'} "
                f"| {', '.join(f'{value:.3f}' for value in accuracy)} "
                f"| {np.mean(accuracy):.3f} | {seconds:.0f} ({mine[0]['device']}) |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--images", choices=list(CASES), default="mnist")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=["consistent", "slips"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    case = CASES[options.images]
    data = (
        load_mnist(options.data)
        if options.images == "mnist"
        else load_packed(options.data, options.images)
    )
    for seed in range(options.seeds):
        chosen = np.random.default_rng([seed, 1]).permutation(len(data.train_x))[: case.n_items]
        for slips in (False, True):
            if options.only == ("consistent" if slips else "slips"):
                continue
            pairs = judgements(data.train_y[chosen], case, slips, seed)
            clf = SimilarityClassifier(
                10, network=case.network, random_state=seed, device=options.device, verbose=False
            )
            began = time.perf_counter()
            clf.fit(data.train_x[chosen], pairs)
            row = {
                "images": options.images,
                "slips": slips,
                "seed": seed,
                "accuracy": clf.score(data.test_x, data.test_y),
                "seconds": round(time.perf_counter() - began, 1),
                "device": options.device,
                "choice": clf.choice_,
            }
            records.append(options.out, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
