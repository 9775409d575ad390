"""Choose the recipe for features under the joint objective, by held-out noisy judgements alone.

    python benchmarks/digits_recipe.py        -> results/digits_recipe.json

No true class is looked at after the noise has been made: what is compared is the likelihood of
held-out judgements, on splits of the digits that `benchmarks/digits.py` does not use.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from likewise.datasets import load
from likewise.fitting import joint_program
from likewise.lanes import run_one
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.problem import Problem
from likewise.recipes import FEATURES

VARIANTS = {
    f"mixup {mixup}": FEATURES.with_(epochs=40, lr=3e-3, mixup=mixup) for mixup in (0.5, 1.0, 2.0)
}
SEEDS = (200, 201, 202)
RATES = (0.2, 0.4, 0.6)


def held_out_cost(recipe_name: str, rate: float, seed: int) -> float:
    digits = load("digits")
    chosen = np.random.default_rng(seed).permutation(len(digits.train_x))[:1200]
    z = corrupt_labels(digits.train_y[chosen], symmetric(10, rate), seed)
    problem = Problem(
        digits.train_x[chosen].astype(np.float32), Pairs.from_labels(z), 10,
        recipe=VARIANTS[recipe_name], seed=seed,
    )  # fmt: skip
    return run_one(joint_program(problem)).score


def main() -> None:
    costs = {
        name: {str(rate): [held_out_cost(name, rate, seed) for seed in SEEDS] for rate in RATES}
        for name in VARIANTS
    }
    means = {name: float(np.mean(list(by_rate.values()))) for name, by_rate in costs.items()}
    chosen = min(means, key=lambda name: means[name])
    for name, mean in means.items():
        print(f"{name}: {mean:.4f} a held-out judgement{'  <- chosen' if name == chosen else ''}")
    result = {"seeds": SEEDS, "costs": costs, "means": means, "chosen": chosen}
    Path("results/digits_recipe.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
