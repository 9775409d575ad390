"""Choose the recipe for features under the joint objective, by noisy judgements alone.

    python benchmarks/digits_recipe.py        -> results/digits_recipe.json

No true class is looked at after the noise has been made: what is compared is how likely the noisy
judgements of other digits are, with splits and noise that `benchmarks/digits.py` does not use.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from likewise.datasets import load
from likewise.methods.joint import joint_program
from likewise.methods.problem import Problem
from likewise.nn.model import logits_of
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.training.recipe import FEATURES
from likewise.training.scheduler import run_program

STEPS = FEATURES.with_(epochs=40, lr=3e-3)
VARIANTS = {f"mixup {mixup:g}": STEPS.with_(mixup=mixup) for mixup in (0.5, 1.0, 2.0)}
VARIANTS |= {
    f"mixup 2, teachers {number}": STEPS.with_(mixup=2.0, teachers=number) for number in (1, 2)
}
RESULTS = Path(__file__).parents[1] / "results" / "digits_recipe.json"
SEEDS = tuple(range(200, 208))
RATES = (0.2, 0.4, 0.6)


def judged_cost(recipe_name: str, rate: float, seed: int) -> float:
    """-log P(z) of the 597 digits that a fit has not seen, z being noisy like the fit's own."""
    digits = load("digits")
    items = np.concatenate([digits.train_x, digits.test_x]).astype(np.float32)
    classes = np.concatenate([digits.train_y, digits.test_y])
    z = corrupt_labels(classes, symmetric(10, rate), seed)
    order = np.random.default_rng(seed).permutation(len(items))
    seen, others = order[:1200], order[1200:]
    problem = Problem(
        items[seen], Pairs.from_labels(z[seen]), 10, recipe=VARIANTS[recipe_name], seed=seed
    )
    fitted = run_program(joint_program(problem))
    belief = logits_of(fitted.model, items[others], problem.device).softmax(dim=1).numpy()
    id_of = np.zeros(10, np.int64)  # components are numbered anew: which is which perceived class
    id_of[z[seen]] = problem.components
    likelihood = (belief @ fitted.transition)[np.arange(len(others)), id_of[z[others]]]
    return float(-np.log(np.maximum(likelihood, 1e-30)).mean())


def main() -> None:
    costs = {
        name: {str(rate): [judged_cost(name, rate, seed) for seed in SEEDS] for rate in RATES}
        for name in VARIANTS
    }
    means = {name: float(np.mean(list(by_rate.values()))) for name, by_rate in costs.items()}
    chosen = min(means, key=lambda name: means[name])
    for name, mean in means.items():
        print(f"{name}: {mean:.4f} a judgement{'  <- chosen' if name == chosen else ''}")
    result = {"seeds": SEEDS, "costs": costs, "means": means, "chosen": chosen}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


def table(result: dict[str, Any]) -> str:
    """Mean costs, in Markdown."""
    rates = [str(rate) for rate in RATES]
    rows = ["| recipe | " + " | ".join(f"noise {rate}" for rate in rates) + " | mean |"]
    rows.append("|---|" + "---|" * (len(rates) + 1))
    for name, by_rate in result["costs"].items():
        mark = " (taken)" if name == result["chosen"] else ""
        means = " | ".join(f"{np.mean(by_rate[rate]):.4f}" for rate in rates)
        rows.append(f"| {name}{mark} | {means} | {result['means'][name]:.4f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
