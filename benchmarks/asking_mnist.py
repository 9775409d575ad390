"""How many answers until 1,000 digits are grouped: the protocol of Active Correlation Clustering.

Aronsson & Chehreghani, "Correlation Clustering with Active Learning of Pairwise Similarities":
1,000 MNIST items of 10 classes, every answer flipped with probability .1 or .2, adjusted Rand index
over all items. Here `suggest` asks a hundred pairs at a time, never one twice, and `group` goes on
from the groups before: without features, with pixels, or with the 3-dimensional features that were
published with the protocol. The number of classes is not told. The data, `asking-mnist1000.npz`, is
looked for under $LIKEWISE_DATA or ../shared/data. Finished curves are kept and not repeated:

    python benchmarks/asking_mnist.py [--seeds 3] [--workers 2] [--out results/asking_mnist.json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import likewise as lw
from likewise.io.atomic import write_json

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "asking_mnist.json"
FEATURES = {"none": None, "pixels": "pix", "published": "x3"}
FLIPS = (0.1, 0.2)
BATCH = 100
GOAL = 0.95
BEYOND = 1000  # answers asked after the goal: does the curve stay there?
MOST = {0.1: 20_000, 0.2: 40_000}
# Answers until ARI .95, as published: the best method, and uniform sampling.
PUBLISHED = {0.1: (28_500, 133_000), 0.2: (46_500, 172_000)}
Row = dict[str, Any]


def curve(features: str, flips: float, seed: int) -> Row:
    """ARI over all items after every batch, until well past the goal."""
    folder = Path(os.environ.get("LIKEWISE_DATA", ROOT.parent / "shared" / "data"))
    data = np.load(folder / "asking-mnist1000.npz")
    truth, column = data["y"], FEATURES[features]
    X = None if column is None else data[column]
    rng = np.random.default_rng(seed)
    pairs = lw.Pairs([], [], [], n_items=len(truth))
    groups: lw.Groups | None = None
    counts, scores, seconds, waits = [], [], [], []
    reached: int | None = None
    while len(pairs) < (MOST[flips] if reached is None else reached + BEYOND):
        began = time.process_time()
        asked = lw.suggest(groups, X, pairs, BATCH, random_state=rng)
        waits.append(time.process_time() - began)
        left, right = (np.concatenate(ends) for ends in zip((pairs.left, pairs.right), asked.T))
        said = (truth[asked[:, 0]] == truth[asked[:, 1]]) ^ (rng.random(len(asked)) < flips)
        pairs = lw.Pairs(left, right, np.append(pairs.same, said), n_items=len(truth))
        began = time.process_time()
        groups = lw.group(pairs, X, random_state=seed, start=groups)
        seconds.append(time.process_time() - began)
        counts.append(len(pairs))
        scores.append(float(adjusted_rand_score(truth, groups.labels)))
        if reached is None and scores[-1] >= GOAL:
            reached = len(pairs)
    return {
        "features": features,
        "flips": flips,
        "seed": seed,
        "reached": reached,
        "groups": groups.n_groups if groups is not None else 0,
        "largest_fall": float(np.max(np.maximum.accumulate(scores) - scores)),
        "longest_suggest_cpu_seconds": round(max(waits[1:]), 3),  # the first one imports
        "median_group_cpu_seconds": round(float(np.median(seconds)), 3),
        "judgements": counts,
        "ari": [round(score, 4) for score in scores],
    }


def table(rows: list[Row]) -> str:
    """Answers until the goal by features and flips, mean and worst over seeds, as Markdown."""
    lines = [
        "| features | flips | seeds | answers to ARI .95 | at worst | largest fall | groups "
        "| published best | uniform |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for features in FEATURES:
        for flips in FLIPS:
            mine = [row for row in rows if (row["features"], row["flips"]) == (features, flips)]
            if not mine:
                continue
            reached = [row["reached"] for row in mine]
            known = [count for count in reached if count is not None]
            mean = f"{np.mean(known):,.0f}" if len(known) == len(reached) else "not in all"
            worst = f"{max(known):,}" if len(known) == len(reached) else f"over {MOST[flips]:,}"
            fall = max(row["largest_fall"] for row in mine)
            found = sorted({row["groups"] for row in mine})
            best, uniform = PUBLISHED[flips]
            lines.append(
                f"| {features} | {flips} | {len(mine)} | {mean} | {worst} | {fall:.3f} "
                f"| {', '.join(map(str, found))} | {best:,} | {uniform:,} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="*", default=list(FEATURES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by the workers as they start
    rows: list[Row] = json.loads(options.out.read_text()) if options.out.exists() else []
    done = {(row["features"], row["flips"], row["seed"]) for row in rows}
    cells = [
        (features, flips, seed)
        for seed in range(options.seeds)
        for flips in reversed(FLIPS)  # the longest first
        for features in options.features
        if (features, flips, seed) not in done
    ]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for job in as_completed([pool.submit(curve, *cell) for cell in cells]):
            row = job.result()
            rows.append(row)
            rows.sort(key=lambda row: (row["features"], row["flips"], row["seed"]))
            write_json(options.out, rows)
            told = {name: value for name, value in row.items() if not isinstance(value, list)}
            print(json.dumps(told), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
