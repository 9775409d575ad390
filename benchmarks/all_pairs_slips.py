"""All pairs of 20,000 items judged, 200 million answers, with class noise .3 and slips.

Ten Gaussian classes in 20 dimensions, an MLP. Time, the largest resident memory of the process,
and accuracy on 5,000 other items. Judgements are made in blocks of rows, so that making them does
not take more than fitting them.

    python benchmarks/all_pairs_slips.py [--items 20000] [--threads 2] [--out FILE]
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import records
from likewise import Pairs, SimilarityClassifier
from likewise.noise import corrupt_labels, symmetric

RESULTS = Path(__file__).parents[1] / "results" / "all_pairs_slips.json"
N_CLASSES, DIMENSIONS, SPREAD = 10, 20, 1.2
NOISE, SAME_IF_SAME, SAME_IF_DIFFERENT = 0.3, 0.95, 0.02
BLOCK = 500  # rows


def gaussians(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(N_CLASSES, size=count)
    centres = np.random.default_rng(0).normal(size=(N_CLASSES, DIMENSIONS)) * SPREAD
    return (centres[y] + rng.normal(size=(count, DIMENSIONS))).astype(np.float32), y


def judgements(z: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Every pair once; each answer by itself right or not."""
    n_items = len(z)
    total = n_items * (n_items - 1) // 2
    left, right = np.empty(total, np.int32), np.empty(total, np.int32)
    same = np.empty(total, bool)
    at = 0
    for start in range(0, n_items, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n_items))
        i, j = np.nonzero(rows[:, None] < np.arange(n_items)[None])
        i = rows[i]
        u = rng.random(len(i), dtype=np.float32)
        part = slice(at, at + len(i))
        left[part], right[part] = i, j
        same[part] = np.where(z[i] == z[j], u < SAME_IF_SAME, u < SAME_IF_DIFFERENT)
        at += len(i)
    return Pairs(left, right, same, n_items=n_items)


def table(rows: list[dict[str, Any]]) -> str:
    """The newest run of each size, as Markdown."""
    lines = [
        "| items | judgements | accuracy | minutes | CPU minutes | GiB | of these, to make them |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['items']:,} | {row['judgements']:,} | {row['accuracy']:.3f} "
        f"| {row['seconds'] / 60:.1f} | {row['cpu_seconds'] / 60:.1f} "
        f"| {row['gib']:.1f} | {row['gib_to_make_them']:.1f} |"
        for row in {row["items"]: row for row in rows}.values()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rng = np.random.default_rng(1)
    X, y = gaussians(options.items, rng)
    pairs = judgements(corrupt_labels(y, symmetric(N_CLASSES, NOISE), rng), rng)
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began, spent = time.perf_counter(), time.process_time()
    clf = SimilarityClassifier(N_CLASSES, random_state=0, verbose=False).fit(X, pairs)
    row = {
        "items": options.items,
        "judgements": len(pairs),
        "seconds": round(time.perf_counter() - began),
        "cpu_seconds": round(time.process_time() - spent),
        "gib_to_make_them": round(made, 2),
        "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "accuracy": clf.score(*gaussians(5_000, rng)),
        "choice": clf.choice_,
    }
    records.append(options.out, row)
    print(row, flush=True)


if __name__ == "__main__":
    main()
