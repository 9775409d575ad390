"""Groups from judgements alone, beside the simple procedures on the same answers.

    OMP_NUM_THREADS=1 python benchmarks/groups.py [--part crowds] [--seeds 1]
        [--workers 1] [--out results/groups.json]
    python benchmarks/groups.py --render

Two parts. *crowds*: simulated crowds, and the real judgements that lie in the folder LIKEWISE_DATA
(crowd-birds20, crowd-product; skipped where they are not). *suggested*: see `suggested_pairs`.
*Components*: connected components of the pairs that a majority calls the same. *Greedy*:
correlation clustering of the votes by greedy contraction. Truth only scores what was found.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.metrics import adjusted_rand_score

from likewise import Groups, Pairs, group
from likewise.inference.partition.search import WeightedGraph, contract
from records import append
from suggested_pairs import CASES, informed, simulate

ROOT = Path(__file__).parents[1]
N_PEOPLE = 50


@dataclass(frozen=True)
class Case:
    """Judgements with the truth about their items."""

    name: str
    """What the table calls it."""
    pairs: Pairs
    """What people said."""
    truth: np.ndarray
    """(N,) the true group of each item."""
    items: np.ndarray | None = None
    """(N, D) features, where they are used."""
    pair_truth: np.ndarray | None = None
    """(M,) whether the two are the same, where truth is about pairs."""


def answers(
    truth: np.ndarray, asked: np.ndarray, per_pair: int, rng: np.random.Generator, unlike: float
) -> Pairs:
    """What 50 people say, a tenth of whom toss a coin, each pair (P, 2) ``per_pair`` times.

    ``unlike`` is the deviation of a pair's own effect on the logit, the same to everybody.
    """
    hit = np.clip(rng.normal(0.85, 0.1, N_PEOPLE), 0.05, 0.98)
    false_alarm = np.clip(rng.normal(0.1, 0.1, N_PEOPLE), 0.02, 0.95)
    careless = rng.random(N_PEOPLE) < 0.1
    hit[careless] = false_alarm[careless] = 0.5
    left, right = np.repeat(asked, per_pair, axis=0).T
    who = rng.integers(N_PEOPLE, size=len(left))
    p = np.where(truth[left] == truth[right], hit[who], false_alarm[who])
    effect = np.repeat(unlike * rng.standard_normal(len(asked)), per_pair)
    p = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + effect)))
    said = rng.random(len(left)) < p
    return Pairs(left, right, said, [f"w{k:02d}" for k in who], n_items=len(truth))


def simulated(seed: int) -> Iterator[Case]:
    """86 groups in 267 items; 1,000 groups in 2,500, asked where a similarity suggests it."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.concatenate([np.arange(86), rng.integers(86, size=181)]))
    left, right = np.triu_indices(267, 1)
    every = np.stack([left, right], axis=1)
    alike = truth[left] == truth[right]
    asked = every[alike | np.isin(np.arange(len(every)), rng.choice(len(every), 2500, False))]
    for per_pair in (10, 5, 3):
        pairs = answers(truth, asked, per_pair, rng, 0.0)
        yield Case(f"86 groups, 267 items, {per_pair} answers a pair", pairs, truth)
    truth = rng.permutation(np.concatenate([np.arange(1000), rng.integers(1000, size=1500)]))
    place = rng.standard_normal((1000, 6))[truth] + 0.25 * rng.standard_normal((2500, 6))
    _, near = cKDTree(place).query(place, 13)
    edges = np.stack([np.repeat(np.arange(2500), 12), near[:, 1:].ravel()], axis=1)
    asked = np.unique(np.sort(edges, axis=1), axis=0)
    yield Case("1,000 groups, 2,500 items", answers(truth, asked, 3, rng, 0.8), truth)


def real(folder: Path) -> Iterator[Case]:
    """The real sets that are there."""
    birds, product = folder / "crowd-birds20", folder / "crowd-product"
    if birds.is_dir():
        truth = _column(birds / "truth.csv", "class")
        for file in ("pairs.csv", "pairs_once.csv"):
            pairs = Pairs.read(birds / file, n_items=len(truth))
            yield Case(f"birds20, {file}", pairs, truth)
    if product.is_dir():
        truth = _column(product / "truth.csv", "class")
        pairs = Pairs.read(product / "pairs.csv", n_items=len(truth))
        same = _pair_truth(product / "truth_pairs.csv", pairs)
        items = np.load(product / "items.npy", allow_pickle=False)
        yield Case("product", pairs, truth, pair_truth=same)
        yield Case("product, with features", pairs, truth, items, same)


def _column(path: Path, name: str) -> np.ndarray:
    """(N,) codes of a column, in the order of the items."""
    with path.open(newline="", encoding="utf-8") as file:
        values = [row[name] for row in csv.DictReader(file)]
    return np.unique(values, return_inverse=True)[1]


def _pair_truth(path: Path, pairs: Pairs) -> np.ndarray:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = {frozenset((int(r["left"]), int(r["right"]))): r["same"] == "1" for r in rows}
    ends = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    return np.array([known[frozenset(pair)] for pair in ends])


def votes(pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct pairs, and "same" minus "different" answers about each."""
    n = pairs.n_items
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    code, inverse = np.unique(low.astype(np.int64) * n + high, return_inverse=True)
    return code // n, code % n, np.bincount(inverse, np.where(pairs.same, 1.0, -1.0))


def components(pairs: Pairs) -> np.ndarray:
    """(N,) connected components of the pairs that a majority calls the same."""
    left, right, vote = votes(pairs)
    ends = (left[vote > 0], right[vote > 0])
    shape = (pairs.n_items, pairs.n_items)
    graph = sparse.coo_array((np.ones(len(ends[0])), ends), shape=shape)
    return connected_components(graph, directed=False)[1]


def greedy(pairs: Pairs) -> np.ndarray:
    """(N,) greedy correlation clustering of the votes."""
    left, right, vote = votes(pairs)
    n = pairs.n_items
    return contract(WeightedGraph.build(left, right, vote, n), np.arange(n), np.zeros(n + 1))


def scores(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """ARI, F1 over all pairs of items, and the number of groups."""
    kept = labels >= 0
    labels, truth = labels[kept], truth[kept]
    table = sparse.coo_array((np.ones(len(truth)), (labels, truth))).tocsr()
    both, said, are = (
        float((np.square(counts) - counts).sum() / 2)
        for counts in (table.data, table.sum(axis=1), table.sum(axis=0))
    )
    return {
        "ari": round(float(adjusted_rand_score(truth, labels)), 4),
        "f1": round(2 * both / (said + are), 4),
        "groups": len(np.unique(labels)),
    }


def pair_scores(said: np.ndarray, truth: np.ndarray, pairs: Pairs) -> dict[str, float]:
    """Accuracy and F1 over the distinct judged pairs."""
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    _, first = np.unique(low.astype(np.int64) * pairs.n_items + high, return_index=True)
    said, truth = said[first], truth[first]
    f1 = 2 * np.count_nonzero(said & truth) / (said.sum() + truth.sum())
    return {
        "pair_accuracy": round(float((said == truth).mean()), 4),
        "pair_f1": round(float(f1), 4),
    }


def measure(case: Case, seed: int) -> dict[str, object]:
    started = time.process_time()
    found: Groups = group(case.pairs, case.items, random_state=seed)
    seconds = round(time.process_time() - started, 1)
    methods = {
        "group": scores(found.labels, case.truth),
        "greedy": scores(greedy(case.pairs), case.truth),
        "components": scores(components(case.pairs), case.truth),
    }
    if case.pair_truth is not None:
        methods["group"] |= pair_scores(found.judgements_proba > 0.5, case.pair_truth, case.pairs)
    return {
        "case": case.name,
        "seed": seed,
        "items": len(case.truth),
        "judgements": len(case.pairs),
        "true_groups": len(np.unique(case.truth)),
        "cpu_seconds": seconds,
        **methods,
    }


def measure_suggested(task: tuple[str, int]) -> dict[str, object]:
    name, seed = task
    pairs, truth = simulate(CASES[name], np.random.default_rng([seed, 23]))
    row = measure(Case(name, pairs, truth), seed)
    limit = informed(pairs, truth, np.random.default_rng(seed))
    return row | {"informed": scores(limit, truth)}


def measure_crowds(n_seeds: int) -> Iterator[dict[str, object]]:
    data = os.environ.get("LIKEWISE_DATA")
    for seed in range(n_seeds):
        for case in [*simulated(seed), *(real(Path(data)) if data else ())]:
            yield measure(case, seed)


def table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds as Markdown, the lowest ARI beside."""
    lines = [
        "| judgements | groups | `group` | lowest | found | greedy | components |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == name]
        ari = {who: [row[who]["ari"] for row in mine] for who in ("group", "greedy", "components")}
        means = {who: f"{np.mean(values):.2f}" for who, values in ari.items()}
        found = sorted({row["group"]["groups"] for row in mine})
        between = f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"
        lines.append(
            f"| {name} | {mine[0]['true_groups']:,} | {means['group']} | {min(ari['group']):.2f} | "
            f"{between} | {means['greedy']} | {means['components']} |"
        )
    return "\n".join(lines)


def suggested_table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds as Markdown, the lowest F1 beside."""
    lines = [
        "| pairs | groups | found | `group` | lowest | informed | greedy | components |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == name]
        f1 = {
            who: [row[who]["f1"] for row in mine]
            for who in ("group", "informed", "greedy", "components")
        }
        means = {who: f"{np.mean(values):.2f}" for who, values in f1.items()}
        true = np.mean([row["true_groups"] for row in mine])
        found = np.mean([row["group"]["groups"] for row in mine])
        lines.append(
            f"| {name} | {true:.0f} | {found:.0f} | {means['group']} | {min(f1['group']):.2f} | "
            f"{means['informed']} | {means['greedy']} | {means['components']} |"
        )
    return "\n".join(lines)


def filled(page: str) -> str:
    """The page with the tables of the newest results of each part."""
    runs = json.loads((ROOT / "results" / "groups.json").read_text())
    for part, made in (("crowds", table), ("suggested", suggested_table)):
        rows = [run["rows"] for run in runs if run.get("part", "crowds") == part][-1]
        begin, end = f"<!-- groups {part} -->\n", f"\n<!-- /groups {part} -->"
        before, _, rest = page.partition(begin)
        page = before + begin + "\n" + made(rows) + "\n" + end + rest.partition(end[1:])[2]
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["crowds", "suggested"], default="crowds")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="processes, for suggested pairs")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "groups.json")
    parser.add_argument("--render", action="store_true", help="only write docs/group.md's tables")
    options = parser.parse_args()
    page = ROOT / "docs" / "group.md"
    if options.render:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
        return
    rows = []
    tasks = [(name, seed) for seed in range(options.seeds) for name in CASES]
    with ProcessPoolExecutor(options.workers) as pool:
        suggested = options.part == "suggested"
        made = pool.map(measure_suggested, tasks) if suggested else measure_crowds(options.seeds)
        for row in made:
            rows.append(row)
            print(row, flush=True)
    append(options.out, {"part": options.part, "rows": rows})


if __name__ == "__main__":
    main()
