"""What the joint likelihood is worth on scikit-learn's digits, beside the pairwise methods.

80/20 split, test accuracy under the best matching. Everything is estimated from the judgements;
"mns, true rates" is the pairwise method with the true noise given to it. Tables: all pairs with a
few contradictions (cliff), class flips with few judgements an item (sparse), flips to one other
class, with T estimated and given (asymmetric), flips that depend on the item (instance), all pairs
at the highest noise, where classes get lost (collapse), flips of single judgements (slips), both
at once, annotators, and the number of classes. Finished runs are kept in results/joint_digits.json
and not repeated:

    python benchmarks/joint_digits.py [cliff sparse asymmetric ... count] [--seeds 2]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from likewise import Pairs, SimilarityClassifier
from likewise.inference.n_classes import count_classes
from likewise.io.atomic import write_json
from likewise.metrics import best_matching, confusion, matched_accuracy
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.noise.channels import RateChannel

RESULTS = Path(__file__).parents[1] / "results" / "joint_digits.json"
N_CLASSES = 10
SEED_OF = [0]  # of the split, for noise that depends on the items
KMEANS: dict[str, dict[str, Any]] = {"k-means": {}}
SPARSE = [(0.2, 10), (0.4, 20), (0.6, 50)]
SPARSER = [(0.0, 5), (0.2, 7), (0.2, 5), (0.2, 3), (0.2, 2), (0.2, 1)]
CONTRADICTIONS = {"1": 1, "10": 10, "1%": 0.01}
# Rates with the pair marginals of class flips .2 and .4: (class flips, a = 1 - rs, b = rd).
SLIPS = [(0.2, 0.644, 0.040), (0.4, 0.378, 0.069)]
GOOD, RANDOM, SILENT = 30, 15, 5
TARGETS = {
    "sparse 0.2 k=10": 0.92,
    "sparse 0.4 k=20": 0.90,
    "sparse 0.6 k=50": 0.83,
    "both 0.6 k=50": 0.80,
    "sparse 0.0 k=5": 0.96,
    "sparse 0.2 k=7": 0.94,
    "sparse 0.2 k=5": 0.93,
    "sparse 0.2 k=3": 0.91,
    "sparse 0.2 k=2": 0.85,
    "pair flip 0.4 all pairs": 0.96,
    "pair flip 0.4 k=50": 0.96,
    "instance 0.41 all pairs": 0.88,
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


def pair_flips(rate: float, per_item: int | None) -> Callable[..., Pairs]:
    def make(y: np.ndarray, rng: np.random.Generator) -> Pairs:
        z = corrupt_labels(y, pair_flip(N_CLASSES, rate), rng)
        return Pairs.from_labels(z, per_item, rng)

    return make


def contradicted(rate: float, count: float) -> Callable[..., Pairs]:
    """All pairs, and ``count`` of them (a share, below 1) answered the other way."""

    def make(y: np.ndarray, rng: np.random.Generator) -> Pairs:
        whole = class_flips(rate, None)(y, rng).explicit()
        flipped = rng.permutation(len(whole))[: int(count if count >= 1 else count * len(whole))]
        same = whole.same.copy()
        same[flipped] ^= True
        return Pairs(whole.left, whole.right, same, n_items=len(y))

    return make


def instance_flips(y: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Items taken for the runner-up of a weak classifier, the likelier the nearer: .41 in all."""
    X, classes = load_digits(return_X_y=True)
    few = rng.permutation(len(X))[:100]
    weak = LogisticRegression(C=0.01, max_iter=200).fit(X[few], classes[few])
    chosen = train_test_split(X, classes, test_size=0.2, random_state=SEED_OF[0], stratify=classes)
    p = weak.predict_proba(chosen[0])
    own = p[np.arange(len(y)), y].copy()
    p[np.arange(len(y)), y] = 0
    odds = p.max(axis=1) / (own + p.max(axis=1))  # how near the runner-up is
    chance = np.clip(odds * 0.41 / odds.mean(), 0, 0.95)
    flip = rng.random(len(y)) < chance
    return Pairs.from_labels(np.where(flip, p.argmax(axis=1), y))


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
    sparse += [Cell(f"sparse {r} k={k}", class_flips(r, k), auto | KMEANS, 10) for r, k in SPARSER]
    cliff = [Cell("all pairs 0.4, consistent", class_flips(0.4, None), auto)]
    cliff += [
        Cell(f"all pairs 0.4, {name} contradicted", contradicted(0.4, count), auto)
        for name, count in CONTRADICTIONS.items()
    ]
    told_t = {"auto, T given": {"transition": pair_flip(N_CLASSES, 0.4)}}
    asymmetric = [
        Cell("pair flip 0.4 all pairs", pair_flips(0.4, None), auto | told_t, 10),
        Cell("pair flip 0.4 k=50", pair_flips(0.4, 50), auto, 10),
    ]
    instance = [Cell("instance 0.41 all pairs", instance_flips, auto)]
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
        "cliff": cliff,
        "asymmetric": asymmetric,
        "instance": instance,
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
    SEED_OF[0] = seed
    pairs = cell.make(y_train, np.random.default_rng(seed))
    if method == "k-means":
        found = KMeans(N_CLASSES, n_init=10, random_state=seed).fit(train)
        accuracy = matched_accuracy(found.predict(test), y_test)
        return {"cell": cell.name, "method": method, "seed": seed, "accuracy": accuracy}
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
        row["transition_error"] = error_of_transition(clf, cell, y_train, train)
    if isinstance(clf.channel_, RateChannel):
        row |= {"a": clf.channel_.a, "b": clf.channel_.b}
    if method == "auto" and clf.annotators_ is not None:
        least = clf.annotators_["annotator"][-(RANDOM + SILENT + 2) :]
        row["careless_among_22_least"] = sum(int(name[1:]) >= GOOD for name in least)
    return row


def error_of_transition(
    clf: SimilarityClassifier, cell: Cell, y: np.ndarray, items: np.ndarray
) -> float | None:
    """Error of T in the paper's metric, its classes in the order that suits predictions best."""
    if not cell.name.startswith("pair flip"):
        return None
    match = best_matching(confusion(clf.predict(items), y, N_CLASSES))
    true = pair_flip(N_CLASSES, 0.4)[np.ix_(match, match)]
    return float(np.abs(clf.transition_ - true).sum() / np.abs(true).sum())


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
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
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
    missing = [
        (name, number, method, seed)
        for name in (name for name in options.tables if name != "count")
        for number, cell in enumerate(cells()[name])
        for method in options.methods or cell.methods
        for seed in range(min(options.seeds, cell.seeds))
        if method in cell.methods and (cell.name, method, seed) not in done
    ]
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for row in pool.imap_unordered(_run_one, missing):
            kept["runs"].append(row)
            kept["runs"].sort(key=lambda row: (row["cell"], row["method"], row["seed"]))
            write_json(RESULTS, kept)
            print(row, flush=True)


def _run_one(which: tuple[str, int, str, int]) -> dict[str, Any]:
    """One run in a process of its own: cells hold functions, which do not travel."""
    name, number, method, seed = which
    torch.set_num_threads(1)
    return run(cells()[name][number], method, seed)


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
        for key in ("kept", "transition_error", "a", "b", "careless_among_22_least"):
            values = [row[key] for row in rows if row.get(key)]
            found += [f"{key} {np.mean(values):.3f}"] if values else []
        found += [lost(rows)] if cell.startswith("collapse") else []
        found += [margin(kept, cell, method)] if method == "mns, true rates" else []
        target = TARGETS.get(cell, "") if method == "auto" else ""
        lines.append(
            f"| {cell} | {method} | {accuracy.mean():.3f} ± {accuracy.std():.3f} "
            f"(lowest {accuracy.min():.3f}) | {len(rows)} | {target} | {', '.join(found)} |"
        )
    for row in kept["count"]:
        right = sum(count == N_CLASSES for count in row["found"])
        lines.append(
            f"| {row['cell']} | n_classes=auto | {right} of {len(row['found'])} right | | | |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
