"""The default fit on crowds made by hand, beside k-means and the judgements alone.

Seeds below 100 are for development: constants may be chosen by them. Those of the check are not
looked at before everything is decided. Nothing is scored on real people here. Writes
results/crowd_simulated.json, a row a crowd, as soon as each is done:

    python benchmarks/crowd_simulated.py [--check] [--seeds 2] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.cluster import KMeans

from likewise import SimilarityClassifier
from likewise.inference.em import Options
from likewise.inference.problem import make_problem
from likewise.inference.selection.start_selection import from_graph, select_starts
from likewise.inference.selection.trials import fit_with
from likewise.io.atomic import write_json
from likewise.metrics import matched_accuracy
from likewise.noise.annotators import AnnotatorChannel
from likewise.pairs.rates import moment_rates
from simulated_crowds import SCENARIOS, Crowd, make

RESULTS = Path(__file__).parents[1] / "results" / "crowd_simulated.json"
FIRST_CHECK_SEED = 100


def judge(name: str, seed: int) -> dict[str, Any]:
    crowd = make(SCENARIOS[name], seed)
    began = time.process_time()
    model = SimilarityClassifier(n_classes=crowd.n_classes, random_state=seed)
    model.fit(crowd.items, crowd.pairs)
    seconds = time.process_time() - began
    pairs = crowd.pairs
    right = (crowd.truth[pairs.left] == crowd.truth[pairs.right]) == pairs.same
    rows = crowd.items / np.linalg.norm(crowd.items, axis=1, keepdims=True).clip(1e-9)
    clusters = KMeans(crowd.n_classes, n_init=10, random_state=seed).fit(rows).labels_
    return {
        "crowd": name,
        "seed": seed,
        "part": "check" if seed >= FIRST_CHECK_SEED else "development",
        "wrong_judgements": float(1 - right.mean()),
        "accuracy": matched_accuracy(model.predict(crowd.items), crowd.truth),
        "k_means": matched_accuracy(clusters, crowd.truth),
        **alternatives(crowd, seed),
        "reliability_spearman": _ranking(model.annotators_, pairs, right),
        "cpu_seconds": round(seconds, 1),
        "choice": model.choice_,
    }


def alternatives(crowd: Crowd, seed: int) -> dict[str, float]:
    """The judgements alone, and, scored by the truth, the best candidate that could be chosen."""
    rng = np.random.default_rng(seed)
    arguments = (crowd.items, crowd.pairs, crowd.n_classes, None, "estimate", rng, "cpu", Options())
    problem = make_problem(*arguments)
    rates = moment_rates(crowd.pairs, crowd.n_classes, rng)
    people = AnnotatorChannel.from_rates(rates.a, rates.b, problem.n_annotators)
    starts = select_starts(problem, people)
    items = torch.from_numpy(crowd.items)
    best = 0.0
    for start, head in product(starts, problem.heads()):
        state = fit_with(problem, head, start)
        module = head.finish(state.targets, problem.generator)
        with torch.no_grad():
            best = max(best, matched_accuracy(module(items).argmax(1).numpy(), crowd.truth))
    # With Gaussian heads, what begins from the graph has settled by the judgements alone.
    graph, _ = from_graph(problem, people) if problem.features is None else starts[0]
    alone = matched_accuracy(graph.argmax(1).numpy(), crowd.truth)
    return {"judgements_alone": alone, "best_candidate": best}


def _ranking(table: Any, pairs: Any, right: np.ndarray) -> float:
    """Spearman's rank correlation of estimated reliability and the true share of right answers."""
    share = np.bincount(pairs.annotator, right) / np.bincount(pairs.annotator)
    by_name = dict(zip(map(str, pairs.annotator_names), share))
    found = spearmanr(table["reliability"], [by_name[str(who)] for who in table["annotator"]])
    return float(found.statistic)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| crowd | wrong judgements | accuracy | worst | best candidate | k-means "
        "| judgements alone | people ranked | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["crowd"] for row in rows):
        mine = [row for row in rows if row["crowd"] == name]
        keys = [key for key, value in mine[0].items() if isinstance(value, int | float)]
        mean = {key: float(np.mean([row[key] for row in mine])) for key in keys}
        lines.append(
            f"| {name} | {mean['wrong_judgements']:.2f} | {mean['accuracy']:.3f} "
            f"| {min(row['accuracy'] for row in mine):.3f} | {mean['best_candidate']:.3f} "
            f"| {mean['k_means']:.3f} | {mean['judgements_alone']:.3f} "
            f"| {mean['reliability_spearman']:.2f} | {mean['cpu_seconds']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="the seeds kept for the check")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    first = FIRST_CHECK_SEED if options.check else 0
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in options.only:
        for seed in range(first, first + options.seeds):
            kept = [row for row in kept if (row["crowd"], row["seed"]) != (name, seed)]
            kept.append(judge(name, seed))
            write_json(RESULTS, kept)
    for part in ("development", "check"):
        print(f"{part}\n\n{table([row for row in kept if row['part'] == part])}\n")


if __name__ == "__main__":
    main()
