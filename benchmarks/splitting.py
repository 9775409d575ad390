"""Does splitting merged outputs keep classes apart? MCL with and without it, on Gaussians.

    python benchmarks/splitting.py [--seeds 4] [--out results/splitting.json]

Accuracy under the best matching and the number of classes used, on the training items (their true
classes are known here and reach nothing but the score).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from likewise.io.atomic import write_json
from likewise.io.provenance import provenance
from likewise.methods.pairwise import pairwise_program
from likewise.methods.problem import Problem
from likewise.metrics import matched_accuracy
from likewise.nn.model import logits_of
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.training.recipe import Recipe
from likewise.training.scheduler import run_program

CPU = torch.device("cpu")
REVIVALS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
# classes, items, batch, spread of a class, noise
CASES = ((10, 4000, 128, 0.8, 0.4), (10, 4000, 128, 0.8, 0.6), (100, 10_000, 1000, 0.7, 0.2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("results/splitting.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small
    rows = []
    for case in CASES:
        for name, split_merged_at in (("plain", ()), ("split_merged_at", REVIVALS)):
            runs = [one(*case, split_merged_at, seed) for seed in range(options.seeds)]
            accuracy = [run[0] for run in runs]
            row = {
                "classes": case[0],
                "noise": case[4],
                "method": f"mcl, {name}",
                "accuracy": float(np.mean(accuracy)),
                "worst": float(np.min(accuracy)),
                "classes_used": [run[1] for run in runs],
            }
            print(row, flush=True)
            rows.append(row)
    write_json(options.out, provenance(CPU) | {"seeds": options.seeds, "rows": rows})


def one(
    n_classes: int,
    n_items: int,
    batch: int,
    spread: float,
    noise: float,
    split_merged_at: tuple[float, ...],
    seed: int,
) -> tuple[float, int]:
    """(accuracy, classes used) of one run."""
    rng = np.random.default_rng(seed)
    centres, y = rng.normal(size=(n_classes, 32)), rng.integers(n_classes, size=n_items)
    items = (centres[y] + spread * rng.normal(size=(n_items, 32))).astype(np.float32)
    pairs = Pairs.from_labels(corrupt_labels(y, symmetric(n_classes, noise), seed + 1))
    recipe = Recipe(
        epochs=60, batch_size=batch, milestones=(0.4, 0.8), split_merged_at=split_merged_at
    )
    problem = Problem(items, pairs, n_classes, network="mlp", recipe=recipe, seed=seed)
    fitted = run_program(pairwise_program(problem, "mcl"))
    predicted = logits_of(fitted.model, items, CPU).argmax(dim=1).numpy()
    return matched_accuracy(y, predicted), len(np.unique(predicted))


if __name__ == "__main__":
    main()
