"""What the joint likelihood is worth on scikit-learn's digits, beside the pairwise methods.

80/20 split, test accuracy under the best matching. Everything is estimated from the judgements;
"mns, true rates" is the pairwise method with the true noise given to it. Tables: all pairs with a
few contradictions (cliff), class flips with few judgements an item (sparse), flips to one other
class, with T estimated and given (asymmetric), flips that depend on the item (instance), all pairs
at the highest noise, where classes get lost (collapse), flips of single judgements (slips), both
at once, annotators, and the number of classes. "calibration" is the mean distance between the
predicted probability of "same" and how often it is said, over all pairs of test items, judged as
the training items were. Finished runs are kept in results/joint_digits.json and not repeated,
unless ``--anew`` says so:

    python benchmarks/joint_digits.py [cliff sparse asymmetric ... count] [--seeds 2]
    python benchmarks/joint_digits.py --methods auto "auto, T given" --anew --workers 12 --out FILE
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
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
from likewise.inference.selection.n_classes import count_classes
from likewise.io.atomic import write_json
from likewise.metrics import best_matching, confusion, matched_accuracy, transition_error
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.noise.channels import RateChannel
from likewise.runs.report_data import said_same

RESULTS = Path(__file__).parents[1] / "results" / "joint_digits.json"
N_CLASSES = 10
KMEANS: dict[str, dict[str, Any]] = {"k-means": {}}
SPARSE = [(0.2, 10), (0.4, 20), (0.6, 50)]
SPARSER = [(0.0, 5), (0.2, 7), (0.2, 5), (0.2, 3), (0.2, 2), (0.2, 1)]
CONTRADICTIONS = {"1": 1, "10": 10, "1%": 0.01}
# Rates with the pair marginals of class flips .2 and .4: (class flips, a = 1 - rs, b = rd).
SLIPS = [(0.2, 0.644, 0.040), (0.4, 0.378, 0.069)]
GOOD, RANDOM, SILENT = 30, 15, 5
SHOWN = (
    "kept", "kept_by_all", "true_kept_by_all", "transition_error", "a", "b",
    "careless_among_22_least", "calibration",
)  # fmt: skip
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
class Asked:
    """Items (n, d) of a split, their true classes (n,), and which split it is."""

    items: np.ndarray
    y: np.ndarray
    seed: int


Maker = Callable[[Asked, np.random.Generator, int | None], Pairs]
"""Judgements about items: so many an item, or (None) about all pairs."""


@dataclass(frozen=True)
class Cell:
    """One line of a table: how judgements are made, and which methods see them."""

    name: str
    make: Maker
    per_item: int | None
    methods: dict[str, dict[str, Any]]
    seeds: int = 10


def class_flips(transition: np.ndarray) -> Maker:
    def make(asked: Asked, rng: np.random.Generator, per_item: int | None) -> Pairs:
        return Pairs.from_labels(corrupt_labels(asked.y, transition, rng), per_item, rng)

    return make


def contradicted(rate: float, count: float) -> Maker:
    """``count`` of the answers (a share, below 1) are turned round."""

    def make(asked: Asked, rng: np.random.Generator, per_item: int | None) -> Pairs:
        whole = class_flips(symmetric(N_CLASSES, rate))(asked, rng, per_item).explicit()
        flipped = rng.permutation(len(whole))[: int(count if count >= 1 else count * len(whole))]
        same = whole.same.copy()
        same[flipped] ^= True
        return Pairs(whole.left, whole.right, same, n_items=len(asked.y))

    return make


def instance_flips(asked: Asked, rng: np.random.Generator, per_item: int | None) -> Pairs:
    """Items taken for the runner-up of a weak classifier, the likelier the nearer: .41 in all."""
    return Pairs.from_labels(taken_for(asked, rng), per_item, rng)


def taken_for(asked: Asked, rng: np.random.Generator) -> np.ndarray:
    """(n,) what the items are taken for."""
    X, classes = load_digits(return_X_y=True)
    few = np.random.default_rng([asked.seed, 7]).permutation(len(X))[:100]
    weak = LogisticRegression(C=0.01, max_iter=200).fit(X[few], classes[few])
    p, rows = weak.predict_proba(asked.items * 16), np.arange(len(asked.y))
    own = p[rows, asked.y].copy()
    p[rows, asked.y] = 0
    odds = p.max(axis=1) / (own + p.max(axis=1))  # how near the runner-up is
    chance = odds
    for _ in range(30):  # what is cut off at .95 is made up for by the others
        chance = np.clip(chance * 0.41 / chance.mean(), 0, 0.95)
    return np.where(rng.random(len(rows)) < chance, p.argmax(axis=1), asked.y)


def slips(flips: float, a: float, b: float) -> Maker:
    def make(asked: Asked, rng: np.random.Generator, per_item: int | None) -> Pairs:
        clean = class_flips(symmetric(N_CLASSES, flips))(asked, rng, per_item).explicit()
        u = rng.random(len(clean))
        same = np.where(clean.same, u < a, u < b)
        return Pairs(clean.left, clean.right, same, n_items=len(asked.y))

    return make


def annotators(everybody: bool) -> Maker:
    """30 people wrong one time in ten; with ``everybody`` 15 coins and 5 who say "different"."""

    def make(asked: Asked, rng: np.random.Generator, per_item: int | None) -> Pairs:
        clean = Pairs.from_labels(asked.y, per_item, rng).explicit()
        person = rng.integers(0, GOOD + RANDOM + SILENT, len(clean))
        u, coin = rng.random(len(clean)), rng.random(len(clean)) < 0.5
        same = np.where(person < GOOD, clean.same ^ (u < 0.1), (person < GOOD + RANDOM) & coin)
        keep = np.ones(len(clean), bool) if everybody else person < GOOD
        names = np.array([f"p{k:02d}" for k in person])
        left, right = clean.left[keep], clean.right[keep]
        return Pairs(left, right, same[keep], names[keep], n_items=len(asked.y))

    return make


def cells() -> dict[str, list[Cell]]:
    auto: dict[str, dict[str, Any]] = {"auto": {"method": "auto"}}
    pairwise = {"mcl": {"method": "mcl"}, "mns": {"method": "mns"}}

    def flips(rate: float) -> Maker:
        return class_flips(symmetric(N_CLASSES, rate))

    sparse = [Cell(f"sparse {r} k={k}", flips(r), k, auto | pairwise) for r, k in SPARSE]
    sparse += [Cell(f"sparse {r} k={k}", flips(r), k, auto | KMEANS) for r, k in SPARSER]
    cliff = [Cell("all pairs 0.4, consistent", flips(0.4), None, auto)]
    cliff += [
        Cell(f"all pairs 0.4, {name} contradicted", contradicted(0.4, count), None, auto)
        for name, count in CONTRADICTIONS.items()
    ]
    lopsided = pair_flip(N_CLASSES, 0.4)
    told_t = {"auto, T given": {"transition": lopsided}}
    slipping = []
    for noise, a, b in SLIPS:
        told = {"mns, true rates": {"method": "mns", "transition": symmetric(N_CLASSES, noise)}}
        slipping += [
            Cell(f"slips {a} {b} k=50", slips(0.0, a, b), 50, auto | told),
            Cell(f"slips {a} {b} all pairs", slips(0.0, a, b), None, auto | told),
        ]
    return {
        "cliff": cliff,
        "asymmetric": [
            Cell("pair flip 0.4 all pairs", class_flips(lopsided), None, auto | told_t),
            Cell("pair flip 0.4 k=50", class_flips(lopsided), 50, auto),
            Cell("no noise, all pairs", flips(0.0), None, auto),  # the most there is
        ],
        "instance": [Cell("instance 0.41 all pairs", instance_flips, None, auto)],
        "collapse": [Cell("collapse 0.6 all pairs", flips(0.6), None, auto | pairwise, 20)],
        "sparse": sparse,
        "slips": slipping,
        "both": [Cell("both 0.6 k=50", slips(0.6, 0.9, 0.02), 50, auto | pairwise)],
        "annotators": [
            Cell("annotators, all 50", annotators(True), 30, auto | pairwise),
            Cell("annotators, the 30 careful", annotators(False), 30, auto),
        ],
    }


def halves(seed: int) -> tuple[Asked, Asked]:
    """Items to learn from and items to score by."""
    X, y = load_digits(return_X_y=True)
    split = train_test_split(
        (X / 16).astype(np.float32), y, test_size=0.2, random_state=seed, stratify=y
    )
    return Asked(split[0], split[2], seed), Asked(split[1], split[3], seed)


def run(cell: Cell, method: str, seed: int) -> dict[str, Any]:
    """Fit one method to one draw of judgements; truth is used to make them and to score."""
    train, test = halves(seed)
    pairs = cell.make(train, np.random.default_rng(seed), cell.per_item)
    if method == "k-means":
        found = KMeans(N_CLASSES, n_init=10, random_state=seed).fit(train.items)
        accuracy = matched_accuracy(found.predict(test.items), test.y)
        return {"cell": cell.name, "method": method, "seed": seed, "accuracy": accuracy}
    began = time.process_time()
    options = cell.methods[method]
    clf = SimilarityClassifier(n_classes=N_CLASSES, random_state=seed, **options)
    clf.fit(train.items, pairs)
    found = confusion(clf.predict(test.items), test.y, N_CLASSES)  # [predicted, true]
    match = best_matching(found)
    matched = found[np.arange(N_CLASSES), match]
    row: dict[str, Any] = {
        "cell": cell.name,
        "method": method,
        "seed": seed,
        "accuracy": float(matched.sum() / len(test.y)),
        "classes_used": int(found.any(axis=1).sum()),
        "lowest_recall": float((matched / found.sum(axis=0)[match]).min()),
        "cpu_seconds": round(time.process_time() - began, 1),
        "choice": clf.choice_,
        "calibration": calibration_error(clf, cell, test),
    }
    if clf.transition_ is not None:
        row["kept"] = float(np.mean(np.diag(clf.transition_)))
        row |= errors_of_transition(clf, cell, train)
    if isinstance(clf.channel_, RateChannel):
        row |= {"a": clf.channel_.a, "b": clf.channel_.b}
    if method == "auto" and clf.annotators_ is not None:
        least = clf.annotators_["annotator"][-(RANDOM + SILENT + 2) :]
        row["careless_among_22_least"] = sum(int(name[1:]) >= GOOD for name in least)
    return row


def calibration_error(clf: SimilarityClassifier, cell: Cell, test: Asked) -> float:
    """Mean distance of the predicted from the observed share of "same", in tenths of the former,
    over all pairs of items that were not fitted, judged as the fitted ones were."""
    unseen = cell.make(test, np.random.default_rng([test.seed, 8]), None).explicit()
    chance = said_same(clf, clf.predict_proba(test.items), unseen)
    tenth = np.minimum((chance * 10).astype(int), 9)
    gap = np.bincount(tenth, chance - unseen.same, minlength=10)
    return float(np.abs(gap).sum() / len(unseen))


def errors_of_transition(clf: SimilarityClassifier, cell: Cell, train: Asked) -> dict[str, float]:
    """Errors of T, in the paper's metric, its classes in the order that suits predictions best;
    where noise depends on the item, of the marginal T over all items."""
    match = best_matching(confusion(clf.predict(train.items), train.y, N_CLASSES))
    if cell.name.startswith("instance"):
        z = taken_for(train, np.random.default_rng(train.seed))
        true = confusion(train.y, z, N_CLASSES) / np.bincount(train.y)[:, None]
        matrix = clf.result_.marginal_transition
        if matrix is None:
            matrix = clf.transition_
    elif cell.name.startswith("pair flip"):
        true, matrix = pair_flip(N_CLASSES, 0.4), clf.transition_
    else:
        return {}
    errors = {"transition_error": transition_error(matrix, true[np.ix_(match, match)])}
    if cell.name.startswith("instance"):
        errors |= {
            "kept_by_all": float(np.mean(np.diag(matrix))),
            "true_kept_by_all": float(np.mean(np.diag(true))),
        }
    return errors


def count_of(rate: float, per_item: int | None, seed: int) -> int:
    """n_classes="auto", by judgements and items."""
    train, _ = halves(seed)
    flips = class_flips(symmetric(N_CLASSES, rate))
    pairs = flips(train, np.random.default_rng(seed), per_item)
    return count_classes(pairs, items=train.items)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*cells(), "count"])
    parser.add_argument("--seeds", type=int, default=99, help="at most so many of each cell's")
    parser.add_argument("--methods", nargs="*", help="only these")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where runs are kept")
    parser.add_argument("--anew", action="store_true", help="repeat what is there")
    parser.add_argument("--print", action="store_true", help="print what is there, run nothing")
    options = parser.parse_args()
    kept: dict[str, Any] = {"runs": [], "count": []}
    if (source := options.out if options.out.exists() else RESULTS).exists():
        kept = json.loads(source.read_text())
    if not options.print:
        _run_missing(options, kept)
    print(table(kept))


def _run_missing(options: argparse.Namespace, kept: dict[str, Any]) -> None:
    wanted = [
        (name, number, method, seed)
        for name in (name for name in options.tables if name != "count")
        for number, cell in enumerate(cells()[name])
        for method in options.methods or cell.methods
        for seed in range(min(options.seeds, cell.seeds))
        if method in cell.methods
    ]
    names = {key: (cells()[key[0]][key[1]].name, key[2], key[3]) for key in wanted}
    if options.anew:
        again = {name[:2] for name in names.values()}
        kept["runs"] = [row for row in kept["runs"] if (row["cell"], row["method"]) not in again]
    done = {(row["cell"], row["method"], row["seed"]) for row in kept["runs"]}
    missing = [key for key in wanted if names[key] not in done]
    with multiprocessing.get_context("spawn").Pool(options.workers, _alone) as pool:
        for row in pool.imap_unordered(_run_one, missing):
            kept["runs"].append(row)
            kept["runs"].sort(key=lambda row: (row["cell"], row["method"], row["seed"]))
            write_json(options.out, kept)
            print(row, flush=True)
        if "count" in options.tables:
            asked = [(rate, k) for rate in (0.0, 0.2, 0.4) for k in (None, 10, 15, 20, 50)]
            seeds = range(min(options.seeds, 10))
            found = pool.starmap(count_of, [(*which, seed) for which in asked for seed in seeds], 1)
            kept["count"] = [
                {
                    "cell": f"count {rate} " + ("all pairs" if k is None else f"k={k}"),
                    "found": found[len(seeds) * place : len(seeds) * (place + 1)],
                }
                for place, (rate, k) in enumerate(asked)
            ]
            write_json(options.out, kept)


def _alone() -> None:
    """Workers share the cores: one thread each."""
    torch.set_num_threads(1)


def _run_one(which: tuple[str, int, str, int]) -> dict[str, Any]:
    """One run in a process of its own: cells hold functions, which do not travel."""
    name, number, method, seed = which
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
        for key in SHOWN:
            values = [row[key] for row in rows if row.get(key) is not None]
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
