"""What the joint likelihood is worth on scikit-learn's digits, beside the pairwise methods.

80/20 split, test accuracy under the best matching. Everything is estimated from the judgements;
"mns, true rates" is the pairwise method with the true noise given to it. Tables: class flips with
few judgements an item (sparse), all pairs at the highest noise, where classes get lost (collapse),
flips of single judgements (slips), both at once, annotators, and the number of classes. Finished
runs are kept in results/joint_digits.json and not repeated:

    python benchmarks/joint_digits.py [collapse sparse slips both annotators count] [--seeds 2]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from likewise import Pairs, SimilarityClassifier
from likewise.inference.n_classes import count_classes
from likewise.io.atomic import write_json
from likewise.metrics import best_matching, confusion
from likewise.noise import corrupt_labels, symmetric
from likewise.noise.channels import RateChannel

RESULTS = Path(__file__).parents[1] / "results" / "joint_digits.json"
N_CLASSES = 10
SPARSE = [(0.2, 10), (0.4, 20), (0.6, 50)]
# Rates with the pair marginals of class flips .2 and .4: (class flips, a = 1 - rs, b = rd).
SLIPS = [(0.2, 0.644, 0.040), (0.4, 0.378, 0.069)]
GOOD, RANDOM, SILENT = 30, 15, 5
TARGETS = {
    "sparse 0.2 k=10": 0.92,
    "sparse 0.4 k=20": 0.90,
    "sparse 0.6 k=50": 0.83,
    "both 0.6 k=50": 0.80,
}


@dataclass(frozen=True)
class Cell:
    """One line of a table: how judgements are made, and which methods see them."""

    name: str
    make: Callable[[np.ndarray, np.random.Generator], Pairs]
    methods: dict[str, dict[str, Any]]
    seeds: int = 5


def class_flips(rate: float, per_item: int | None) -> Callable[..., Pairs]:
    def make(y: np.ndarray, rng: np.random.Generator) -> Pairs:
        z = corrupt_labels(y, symmetric(N_CLASSES, rate), rng)
        return Pairs.from_labels(z, per_item, rng)

    return make


def slips(flips: float, a: float, b: float, per_item: int | None) -> Callable[..., Pairs]:
    def make(y: np.ndarray, rng: np.random.Generator) -> Pairs:
        clean = class_flips(flips, per_item)(y, rng).explicit()
        u = rng.random(len(clean))
        same = np.where(clean.same, u < a, u < b)
        return Pairs(clean.left, clean.right, same, n_items=len(y))

    return make


def annotators(everybody: bool) -> Callable[..., Pairs]:
    """30 people wrong one time in ten; with ``everybody`` 15 coins and 5 who say "different"."""

    def make(y: np.ndarray, rng: np.random.Generator) -> Pairs:
        clean = Pairs.from_labels(y, 30, rng)
        person = rng.integers(0, GOOD + RANDOM + SILENT, len(clean))
        u, coin = rng.random(len(clean)), rng.random(len(clean)) < 0.5
        same = np.where(person < GOOD, clean.same ^ (u < 0.1), (person < GOOD + RANDOM) & coin)
        keep = np.ones(len(clean), bool) if everybody else person < GOOD
        names = np.array([f"p{k:02d}" for k in person])
        return Pairs(clean.left[keep], clean.right[keep], same[keep], names[keep], n_items=len(y))

    return make


def cells() -> dict[str, list[Cell]]:
    auto: dict[str, dict[str, Any]] = {"auto": {"method": "auto"}}
    pairwise = {"mcl": {"method": "mcl"}, "mns": {"method": "mns"}}
    collapse = [Cell("collapse 0.6 all pairs", class_flips(0.6, None), auto | pairwise, 20)]
    sparse = [
        Cell(f"sparse {rate} k={k}", class_flips(rate, k), auto | pairwise) for rate, k in SPARSE
    ]
    slipping = []
    for flips, a, b in SLIPS:
        told = {"method": "mns", "transition": symmetric(N_CLASSES, flips)}
        for k in (50, None):
            shown = "all pairs" if k is None else f"k={k}"
            methods = auto | {"mns, true rates": told}
            make = slips(0.0, a, b, k)
            slipping.append(Cell(f"slips {a} {b} {shown}", make, methods, 3 if k is None else 5))
    both = [Cell("both 0.6 k=50", slips(0.6, 0.9, 0.02, 50), auto | pairwise)]
    people = [
        Cell("annotators, all 50", annotators(True), auto | pairwise),
        Cell("annotators, the 30 careful", annotators(False), auto),
    ]
    return {
        "collapse": collapse,
        "sparse": sparse,
        "slips": slipping,
        "both": both,
        "annotators": people,
    }


def run(cell: Cell, method: str, seed: int) -> dict[str, Any]:
    """Fit one method to one draw of judgements; truth is used to make them and to score."""
    X, y = load_digits(return_X_y=True)
    split = train_test_split(
        (X / 16).astype(np.float32), y, test_size=0.2, random_state=seed, stratify=y
    )
    train, test, y_train, y_test = split
    pairs = cell.make(y_train, np.random.default_rng(seed))
    began = time.process_time()
    options = cell.methods[method]
    clf = SimilarityClassifier(n_classes=N_CLASSES, random_state=seed, **options).fit(train, pairs)
    found = confusion(clf.predict(test), y_test, N_CLASSES)  # [predicted, true]
    match = best_matching(found)
    matched = found[np.arange(N_CLASSES), match]
    row: dict[str, Any] = {
        "cell": cell.name,
        "method": method,
        "seed": seed,
        "accuracy": float(matched.sum() / len(y_test)),
        "classes_used": int(found.any(axis=1).sum()),
        "lowest_recall": float((matched / found.sum(axis=0)[match]).min()),
        "cpu_seconds": round(time.process_time() - began, 1),
        "choice": clf.choice_,
    }
    if clf.transition_ is not None:
        row["kept"] = float(np.mean(np.diag(clf.transition_)))
    if isinstance(clf.channel_, RateChannel):
        row |= {"a": clf.channel_.a, "b": clf.channel_.b}
    if method == "auto" and clf.annotators_ is not None:
        least = clf.annotators_["annotator"][-(RANDOM + SILENT + 2) :]
        row["careless_among_22_least"] = sum(int(name[1:]) >= GOOD for name in least)
    return row


def count_runs(seeds: int) -> Iterator[dict[str, Any]]:
    """n_classes="auto" over noise and judgements an item."""
    X, y = load_digits(return_X_y=True)
    for rate in (0.0, 0.2, 0.4):
        for k in (None, 10, 15, 20, 50):
            found = []
            for seed in range(seeds):
                part = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)[2]
                pairs = class_flips(rate, k)(part, np.random.default_rng(seed))
                found.append(count_classes(pairs)[0])
            shown = "all pairs" if k is None else f"k={k}"
            yield {"cell": f"count {rate} {shown}", "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*cells(), "count"])
    parser.add_argument("--seeds", type=int, default=99, help="at most so many of each cell's")
    parser.add_argument("--methods", nargs="*", help="only these")
    parser.add_argument("--print", action="store_true", help="print what is there, run nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept: dict[str, Any] = {"runs": [], "count": []}
    if RESULTS.exists():
        kept = json.loads(RESULTS.read_text())
    if not options.print:
        _run_missing(options, kept)
    print(table(kept))


def _run_missing(options: argparse.Namespace, kept: dict[str, Any]) -> None:
    done = {(row["cell"], row["method"], row["seed"]) for row in kept["runs"]}
    if "count" in options.tables:
        kept["count"] = list(count_runs(10))
        write_json(RESULTS, kept)
    for name in (name for name in options.tables if name != "count"):
        for cell in cells()[name]:
            for method in options.methods or cell.methods:
                for seed in range(min(options.seeds, cell.seeds)):
                    if method in cell.methods and (cell.name, method, seed) not in done:
                        kept["runs"].append(run(cell, method, seed))
                        write_json(RESULTS, kept)
                        print(kept["runs"][-1], flush=True)


def runs_of(kept: dict[str, Any], cell: str, method: str) -> list[dict[str, Any]]:
    return [row for row in kept["runs"] if (row["cell"], row["method"]) == (cell, method)]


def margin(kept: dict[str, Any], cell: str, method: str) -> str:
    """How far auto, which knows no rates, is ahead of ``method`` on the same draws."""
    auto = {row["seed"]: row["accuracy"] for row in runs_of(kept, cell, "auto")}
    ahead = [
        auto[row["seed"]] - row["accuracy"]
        for row in runs_of(kept, cell, method)
        if row["seed"] in auto
    ]
    return f"auto ahead by {np.mean(ahead):+.3f}" if ahead else ""


def lost(rows: list[dict[str, Any]]) -> str:
    """How many runs never predict some class, or never rightly."""
    count = sum(row["classes_used"] < N_CLASSES or row["lowest_recall"] == 0 for row in rows)
    lowest = min(row["lowest_recall"] for row in rows)
    return f"{count} of {len(rows)} runs lost a class, lowest recall {lowest:.2f}"


def table(kept: dict[str, Any]) -> str:
    """Mean and standard deviation by cell and method, as Markdown."""
    lines = [
        "| judgements | method | accuracy | seeds | target | found |",
        "|---|---|---|---|---|---|",
    ]
    order = [(cell.name, how) for each in cells().values() for cell in each for how in cell.methods]
    for cell, method in order:
        rows = runs_of(kept, cell, method)
        if not rows:
            continue
        accuracy = np.array([row["accuracy"] for row in rows])
        found = []
        for key in ("kept", "a", "b", "careless_among_22_least"):
            values = [row[key] for row in rows if row.get(key)]
            found += [f"{key} {np.mean(values):.3f}"] if values else []
        found += [lost(rows)] if cell.startswith("collapse") else []
        found += [margin(kept, cell, method)] if method == "mns, true rates" else []
        target = TARGETS.get(cell, "") if method == "auto" else ""
        lines.append(
            f"| {cell} | {method} | {accuracy.mean():.3f} ± {accuracy.std():.3f} "
            f"| {len(rows)} | {target} | {', '.join(found)} |"
        )
    for row in kept["count"]:
        right = sum(count == N_CLASSES for count in row["found"])
        lines.append(
            f"| {row['cell']} | n_classes=auto | {right} of {len(row['found'])} right | | | |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
