"""What was tried for the joint objective on images, from the runs that results/ keeps.

    python benchmarks/recipes_tried.py

The runs were made by `benchmarks/gpu_session.py`, under the names below; the first trial of each is
shown. ("_plain" are runs of a table before it had teachers, "_teachers" before these were
cross-fitted, "_two" those of two cross-fitted teachers, renamed when it was run again.)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RUNS = Path(__file__).parents[1] / "results" / "runs"

# data, noise -> what was tried: the file of its runs
TRIED = {
    ("MNIST", 0.6): {
        "no teacher": "table1_plain",
        "generations, cross-fitted, two teachers of 40 epochs: 30 and 60": "table1",
    },
    ("MNIST", 0.4): {
        "no teacher": "table1_plain",
        "generations, cross-fitted, two teachers of 40 epochs: 30 and 60": "table1",
    },
    ("CIFAR-10", 0.6): {
        "teacher from 0.3 of the epochs, as sure as held-out items ask for": "teacher_early",
        "the same from 0.5": "teacher_late",
        "no teacher": "teacher_none",
        "no teacher, T held up": "none_decay5",
        "no teacher, T held up, twice the weight decay": "none_decay10",
        "teacher from 0.5, temperature 1 to 0.5, T held up": "late_fixed",
        "no teacher, T held up, statistics retaken": "none_retaken",
        "no teacher, T held up, statistics retaken, long averages": "none_average9995",
        "the same, two teachers": "table2_teachers",
        "generations, cross-fitted, two teachers of 60 epochs: 120 and 200": "table2_two",
        "generations, cross-fitted, four teachers of 80 epochs: 120 and 200": "table2_four",
        "the same generations, teachers see augmented images": "table2_four_strong",
    },
    ("CIFAR-10", 0.4): {
        "teacher, T held up, statistics retaken": "table2_plain",
        "generations, cross-fitted, two teachers of 60 epochs: 90 and 120": "table2_teachers",
        "generations, cross-fitted, two teachers of 60 epochs: 120 and 200": "table2_two",
        "generations, cross-fitted, four teachers of 80 epochs: 120 and 200": "table2",
    },
    ("CIFAR-10N worse", None): {
        "teacher, T held up, statistics retaken": "cifar10n_plain",
        "the same, one teacher": "cifar10n",
    },
    ("CIFAR-100", 0.6): {
        "weight decay 1e-3, 2e-3 once the noise is known": "c100_decay10_20",
        "weight decay 1e-3": "c100_decay10",
        "weight decay 1e-3, statistics retaken, long averages": "table3_plain",
        "the same, two teachers": "table3_teachers",
        "generations, cross-fitted: 100 and 160 epochs": "table3",
    },
    ("CIFAR-100", 0.4): {
        "weight decay 1e-3, statistics retaken, long averages": "table3_plain",
        "the same, one teacher": "table3_teachers",
        "generations, cross-fitted: 100 and 160 epochs": "table3",
    },
    ("CIFAR-100", 0.2): {
        "weight decay 2e-3": "c100_low_decay20",
        "weight decay 1e-3": "c100_low",
        "weight decay 1e-3, statistics retaken, long averages": "table3_plain",
        "the same, one teacher": "table3_teachers",
        "generations, cross-fitted: 100 and 160 epochs": "table3",
    },
}


def table() -> str:
    """Held-out cost, by which recipes are chosen, and accuracy, in Markdown.

    The last of several generations learns from the held-out items too, and has no such cost; a row
    that tells one tells that of the student before it.
    """
    rows = ["| data | noise | tried | held-out cost | accuracy |", "|---|---|---|---|---|"]
    for (data, noise), tried in TRIED.items():
        for what, name in tried.items():
            run = first_trial(name, noise)
            level = "" if noise is None else noise
            figures = f"{held_out_cost(run, what)} | {100 * run['accuracy']:.1f}"
            rows.append(f"| {data} | {level} | {what} | {figures} |")
    return "\n".join(rows)


def held_out_cost(run: dict[str, Any], what: str) -> str:
    """As the row tells it, else the least of its curve, where that is of held-out items."""
    if run.get("held_out_cost") is not None:
        return f"{run['held_out_cost']:.4f}"
    return "–" if "generations" in what else f"{min(run['curve']['held_out']):.4f}"


def first_trial(name: str, noise: float | None) -> dict[str, Any]:
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return next(
        run
        for run in map(json.loads, lines)
        if (run["method"], run["noise"], run["trial"]) == ("joint", noise, 0)
    )


if __name__ == "__main__":
    print(table())
