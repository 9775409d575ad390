"""What judgements alone could carry, by the truth: nothing is fitted or chosen by it.

    LIKEWISE_DATA=... python benchmarks/ceiling.py [--seed 420]

*Each item placed with the true class of every other known.* For every item of a real crowd the
classes of all others and the (C, C) shares of "same" between classes are given, the latter counted
without the item; the item goes where its own answers are likeliest. A yardstick, not a bound, for
methods that have to find the classes of the others, too. n answers about one pair count as
n / (1 + (n - 1) / 4), since they err together.

*Is the truth likelier than what was found?* Evidence of the partition that the search ends with,
of the true one, and of what the search makes of it. Where the truth is less likely, and what is
found from there too, the search has done what it can: the model, or the answers, cannot tell.

Writes results/ceiling.json.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from beside_simple import REAL, load_set, scored
from crowd_kinds import KINDS
from groups import _column
from likewise import Pairs
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.cell_search import CellSearch
from likewise.inference.partition.fitting import Fit, fit_partition, with_cells
from likewise.inference.partition.looks import merge_looks
from likewise.inference.partition.refine import Refined, square_counts
from likewise.inference.partition.search import canonical
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.start_selection import asked
from likewise.io.atomic import write_json
from perceived_crowds import PERCEIVED

RESULTS = Path(__file__).parents[1] / "results" / "ceiling.json"
CROWDS = {
    "birds20, adaptive": ("crowd-birds20", "pairs.csv"),
    "birds20, every pair once": ("crowd-birds20", "pairs_once.csv"),
    "birds20, majority of three": ("crowd-birds20", "pairs_majority3.csv"),
    "dogs3": ("crowd-dogs3", "pairs.csv"),
}
# Sorts into piles have a model of their own.
WITHOUT_FEATURES = [name for name, (_, _, features) in REAL.items() if not features]
WITHOUT_FEATURES += [
    name for name, kind in KINDS.items() if kind.features == "none" and kind.asking != "sorts"
]
WITHOUT_FEATURES += [
    name for name, kind in PERCEIVED.items() if kind.shown is None and kind.asking != "sorts"
]
TOGETHER = 0.25  # correlation of the answers about one pair
STRENGTH = 4.0  # answers that the share of all pairs inside, or across, classes counts as


def counts(pairs: Pairs) -> np.ndarray:
    """(2, N, N) symmetric numbers of "same" and of all answers."""
    n = pairs.n_items
    total = np.zeros((2, n, n))
    for k, weight in enumerate((pairs.same.astype(float), np.ones(len(pairs)))):
        np.add.at(total[k], (pairs.left, pairs.right), weight)
    total = total + total.transpose(0, 2, 1)
    return total / (1 + TOGETHER * np.maximum(total[1] - 1, 0))


def placed(answers: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(N,) where the answers (2, N, N) about each item put it, the classes (N,) of others known."""
    one_hot = np.eye(int(truth.max()) + 1)[truth]
    inside = np.eye(one_hot.shape[1], dtype=bool)
    found = np.empty(len(truth), np.int64)
    for item in range(len(truth)):
        others = one_hot.copy()
        others[item] = 0
        same, total = others.T @ answers @ others  # (C, C) each
        usual = np.empty_like(same)
        for part in (inside, ~inside):
            usual[part] = same[part].sum() / total[part].sum()
        rate = (same + STRENGTH * usual) / (total + STRENGTH)
        yes, asked = answers[:, item] @ others  # (C,) each
        found[item] = (np.log(rate) @ yes + np.log1p(-rate) @ (asked - yes)).argmax()
    return found


def likeliest(task: tuple[str, int]) -> dict[str, Any] | None:
    """What the search ends with beside the truth, and beside what it makes of the truth."""
    name, seed = task
    made = load_set(name, seed)
    if made is None:
        return None
    answers = Answers.build(**asked(Graph.from_pairs(made.pairs.explicit())))
    fit = fit_partition(answers, None, None, np.random.default_rng(seed))
    cells, truth = with_cells(fit), canonical(made.truth)
    _, highest, found = improved(fit, cells, (cells or fit.sampled).looks[0])
    at_truth, from_truth, mended = improved(fit, cells, truth)
    return {
        "set": name,
        "seed": seed,
        "model": "two rates" if cells is None else "cells",
        "found": scored(found, truth),
        "from_truth": scored(mended, truth),
        "truth_ahead": round(at_truth - highest, 1),
        "from_truth_ahead": round(from_truth - highest, 1),
    }


def improved(
    fit: Fit, cells: Refined | None, labels: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Evidence of a partition, and the highest that moves, merges and splits lead to, with its
    classes: under cells where these differ, else under two rates."""
    if cells is None:
        state = fit.problem.fit(canonical(labels))
        better = fit.problem.alternate(state, 8)
        return state.evidence, better.evidence, better.labels
    counts = square_counts(fit.problem.answers, cells.rates, cells.belief)
    search = CellSearch(fit.problem, counts)
    evidence, _ = search.blocks(labels)
    reached, blocks = search.with_splits(search.anneal(labels))
    classes = merge_looks(canonical(blocks.labels)[None], counts, blocks.prior)[0]
    return evidence, reached, canonical(classes)


def table(rows: list[dict[str, float | str]]) -> str:
    """A line a crowd."""
    lines = ["| crowd | items placed | ARI |", "|---|---|---|"]
    lines += [f"| {row['crowd']} | {row['accuracy']:.3f} | {row['ari']:.3f} |" for row in rows]
    return "\n".join(lines)


def likeliest_table(rows: list[dict[str, Any]]) -> str:
    """A line a set."""
    lines = [
        "| set | model | groups found | ARI | groups from the truth | ARI"
        " | truth ahead, nats | from the truth ahead |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ends = [f"{end['groups']} | {end['ari']:.2f}" for end in (row["found"], row["from_truth"])]
        ahead = f"{row['truth_ahead']:+.0f} | {row['from_truth_ahead']:+.0f}"
        lines.append(f"| {row['set']} | {row['model']} | {' | '.join(ends)} | {ahead} |")
    return "\n".join(lines)


def place_all() -> list[dict[str, float | str]]:
    """A row a crowd: its items, each placed by the classes of the others."""
    rows: list[dict[str, float | str]] = []
    for name, (where, file) in CROWDS.items():
        folder = Path(os.environ["LIKEWISE_DATA"]) / where
        truth = np.unique(_column(folder / "truth.csv", "class"), return_inverse=True)[1]
        pairs = Pairs.read(folder / file, n_items=len(truth)).explicit()
        found = placed(counts(pairs), truth)
        accuracy, ari = float((found == truth).mean()), adjusted_rand_score(truth, found)
        rows.append({"crowd": name, "accuracy": round(accuracy, 4), "ari": round(float(ari), 4)})
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description="What judgements alone could carry.")
    options.add_argument("--seed", type=int, default=420, help="of the crowds made by hand")
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    tasks = [(name, given.seed) for name in WITHOUT_FEATURES]
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        found = [row for row in pool.map(likeliest, tasks) if row is not None]
    results = {"rows": place_all(), "likeliest": found}
    write_json(RESULTS, results)
    print(table(results["rows"]), likeliest_table(found), sep="\n\n")


if __name__ == "__main__":
    main()
