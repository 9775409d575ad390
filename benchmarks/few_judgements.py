"""Few judgements about many items: MNIST, 60,000 items as vectors of 784 pixels, random pairs.

The public protocol of SpherePair: 1,000, 5,000 or 10,000 pairs, accuracy on the 10,000 test items
under the best matching. Beside it: a tenth of the answers flipped, fewer unjudged items, and the
same items as images (``--images``: LeNet). DATA is a folder with MNIST in its own format.

    python benchmarks/few_judgements.py DATA [--pairs 1000 5000 10000] [--seeds 2] [--flipped 0 0.1]
    python benchmarks/few_judgements.py DATA --pairs 1000 --items 10000 30000
    python benchmarks/few_judgements.py DATA --pairs 10000 --images --device cuda
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import records
from likewise import Pairs, SimilarityClassifier
from likewise.datasets.mnist import load_mnist
from likewise.pairs.sampling import random_pairs

RESULTS = Path(__file__).parents[1] / "results" / "few_judgements.json"


@dataclass(frozen=True)
class Case:
    """One fit."""

    data: Path
    pairs: int
    flipped: float
    items: int
    seed: int
    images: bool
    device: str
    threads: int


def run(case: Case) -> dict[str, Any]:
    """Fit once; truth makes the judgements and scores."""
    torch.set_num_threads(case.threads)
    mnist = load_mnist(case.data)
    train, test = mnist.train_x[: case.items], mnist.test_x
    if not case.images:
        train, test = (x.reshape(len(x), -1) / np.float32(255) for x in (train, test))
    rng = np.random.default_rng(case.seed)
    left, right = random_pairs(len(train), case.pairs, rng)
    same = mnist.train_y[left] == mnist.train_y[right]
    same = same ^ (rng.random(case.pairs) < case.flipped)
    began, spent = time.perf_counter(), time.process_time()
    clf = SimilarityClassifier(10, random_state=case.seed, device=case.device, verbose=False)
    clf.fit(train, Pairs(left, right, same, n_items=len(train)))
    return {
        "pairs": case.pairs,
        "flipped": case.flipped,
        "items": case.items,
        "network": "lenet" if case.images else "mlp",
        "seed": case.seed,
        "accuracy": clf.score(test, mnist.test_y),
        "seconds": round(time.perf_counter() - began),
        "cpu_seconds": round(time.process_time() - spent),
        "device": case.device,
        "threads": case.threads,
        "choice": clf.choice_,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each case, as Markdown: accuracies of all seeds, the longest time."""
    lines = [
        "| network | items | judgements | flipped | accuracy, by seed | CPU minutes | device |",
        "|---|---|---|---|---|---|---|",
    ]
    names = ("network", "items", "pairs", "flipped", "device")
    cases = {tuple(row[name] for name in names) for row in rows}
    for case in sorted(cases, key=lambda case: (case[0] != "mlp", -case[1], case[2], case[3])):
        mine = [row for row in rows if tuple(row[name] for name in names) == case]
        mine.sort(key=lambda row: row["seed"])
        found = ", ".join(f"{row['accuracy']:.3f}" for row in mine)
        longest = max(row["cpu_seconds"] for row in mine) / 60
        network, items, pairs, flipped, device = case
        lines.append(
            f"| {network} | {items:,} | {pairs:,} | {flipped:.0%} | {found} "
            f"| {longest:.1f} | {device} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1000, 5000, 10_000])
    parser.add_argument("--flipped", type=float, nargs="+", default=[0.0])
    parser.add_argument("--items", type=int, nargs="+", default=[60_000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--images", action="store_true", help="LeNet on images")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="fits at the same time")
    parser.add_argument("--threads", type=int, default=2, help="of each")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    fixed = options.images, options.device, options.threads
    cases = [
        Case(options.data, *case, *fixed)
        for case in itertools.product(options.pairs, options.flipped, options.items, seeds)
    ]
    with multiprocessing.get_context("spawn").Pool(options.workers, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(run, cases):
            records.append(options.out, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
