"""`auto` beside simple procedures on the same judgements, set by set, real and simulated.

    OMP_NUM_THREADS=1 python benchmarks/beside_simple.py [--only NAME ...] [--seeds 1] [--workers 1]
        [--check] [--out results/beside_simple.json]

`auto` is the classifier with its defaults where items have features, told the number of classes (as
k-means is), its ``labels_`` the answer about the judged items; `likewise.group` where they have
none. "Number" is how many classes, or groups, are found where nobody tells. The simple procedures:
connected components of what a majority calls the same, greedy correlation clustering of the votes,
k-means of the features. Truth makes the simulated answers and scores. Seeds below 100 are for
development; ``--check`` takes others. Real sets are looked for under LIKEWISE_DATA and left out
where they are absent. `measured.py` writes the table into docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import crowd
from crowd_kinds import KINDS, Made, make_kind
from groups import _column, components, greedy
from likewise import Pairs, SimilarityClassifier, group
from likewise.inference.selection.n_classes import count_classes
from likewise.metrics import matched_accuracy
from perceived_crowds import PERCEIVED, make_perceived
from records import append
from simulated_crowds import SCENARIOS, make

RESULTS = Path(__file__).parents[1] / "results" / "beside_simple.json"
FIRST_CHECK_SEED = 100
BY_HAND = ("misleading pictures", "misleading, visibly", "features that blur", "poor features")
REAL = {
    "dogs3": ("crowd-dogs3", "pairs.csv", True),
    "dogs3, without features": ("crowd-dogs3", "pairs.csv", False),
    "birds20": ("crowd-birds20", "pairs.csv", False),
    "birds20, features": ("crowd-birds20", "pairs.csv", True),
    "birds20, once": ("crowd-birds20", "pairs_once.csv", False),
    "birds20, once, features": ("crowd-birds20", "pairs_once.csv", True),
    "birds20, majority of three": ("crowd-birds20", "pairs_majority3.csv", False),
    "product": ("crowd-product", "pairs.csv", False),
}
SIMPLE = ("components", "greedy", "k_means")
SETS = list(dict.fromkeys([*REAL, *BY_HAND, *KINDS, *SCENARIOS, *PERCEIVED]))
TWO_POINTS = 0.02
ALL_SETS = 50  # rows, at least, of a run that is none of a few sets only


def load_set(name: str, seed: int) -> Made | None:
    """One set; None where it is real and not there."""
    if name in KINDS:
        return make_kind(KINDS[name], seed)
    if name in PERCEIVED:
        return make_perceived(PERCEIVED[name], seed)
    if name in SCENARIOS:
        made = make(SCENARIOS[name], seed)
        return Made(made.items, made.truth, made.pairs)
    if name in BY_HAND:
        by_hand = crowd.CROWDS[name](seed)
        assert by_hand is not None
        return Made(by_hand.items, by_hand.truth, by_hand.pairs)
    where, file, features = REAL[name]
    folder = Path(os.environ.get("LIKEWISE_DATA", "")) / where
    if not (folder / file).exists():
        return None
    truth = _column(folder / "truth.csv", "class")
    items = np.load(folder / "items.npy", allow_pickle=False) if features else None
    return Made(items, truth, Pairs.read(folder / file, n_items=len(truth)))


def scored(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy under the best matching, ARI and the number of groups, of the items with one."""
    kept = labels >= 0
    found = np.unique(labels[kept], return_inverse=True)[1]
    return {
        "accuracy": round(matched_accuracy(found, truth[kept]), 4),
        "ari": round(float(adjusted_rand_score(truth[kept], found)), 4),
        "groups": len(np.unique(found)),
    }


def k_means(made: Made, seed: int) -> np.ndarray:
    """(N,) clusters of the features, each scaled to length 1, as many as there are classes."""
    assert made.items is not None
    rows = made.items / np.linalg.norm(made.items, axis=1, keepdims=True).clip(1e-9)
    count = len(np.unique(made.truth))
    return np.asarray(KMeans(count, n_init=10, random_state=seed).fit(rows).labels_)


def measure(task: tuple[str, int]) -> dict[str, Any] | None:
    """A row: `auto` and the simple procedures on one set."""
    torch.set_num_threads(1)
    name, seed = task
    made = load_set(name, seed)
    if made is None:
        return None
    row: dict[str, Any] = {"set": name, "seed": seed, "judgements": len(made.pairs)}
    row |= {"items": len(made.truth), "classes": len(np.unique(made.truth))}
    began = time.process_time()
    if made.items is None:
        found = group(made.pairs, random_state=seed)
        row["auto"] = scored(found.labels, made.truth)
        row["counted"] = row["auto"]["groups"]
    else:
        model = SimilarityClassifier(
            n_classes=row["classes"], random_state=seed, device="cpu", verbose=False
        ).fit(made.items, made.pairs)
        labels = model.labels_ if model.labels_ is not None else model.predict(made.items)
        row["auto"] = scored(labels, made.truth)
        row["predicted"] = scored(model.predict(made.items), made.truth)
        row["choice"] = model.choice_
        row["k_means"] = scored(k_means(made, seed), made.truth)
    row["cpu_seconds"] = round(time.process_time() - began, 1)
    if made.items is not None:
        row["counted"], row["counted_by"] = count_classes(made.pairs, seed, items=made.items)
    row["components"] = scored(components(made.pairs), made.truth)
    row["greedy"] = scored(greedy(made.pairs), made.truth)
    for measure_name in ("accuracy", "ari"):
        best = max(row[simple][measure_name] for simple in SIMPLE if simple in row)
        row[f"{measure_name}_ahead"] = round(row["auto"][measure_name] - best, 4)
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds, a line a set; sets on which `auto` falls behind are marked."""
    lines = [
        "| set | classes | items | judgements | `auto` | components | greedy | k-means | ahead "
        "| ARI ahead | number | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        ahead = [min(row[key] for row in mine) for key in ("accuracy_ahead", "ari_ahead")]
        behind = " **behind**" if min(ahead) < -TWO_POINTS else ""
        seconds = np.mean([row["cpu_seconds"] for row in mine])
        first = mine[0]
        lines.append(
            f"| {name}{behind} | {first['classes']} | {first['items']} | {first['judgements']:,} | "
            + " | ".join(_mean(mine, who) for who in ("auto", *SIMPLE))
            + f" | {ahead[0]:+.3f} | {ahead[1]:+.3f} | {first['counted']:,} | {seconds:.0f} |"
        )
    return "\n".join(lines)


def _mean(rows: list[dict[str, Any]], who: str) -> str:
    have = [row[who]["accuracy"] for row in rows if who in row]
    return f"{np.mean(have):.3f}" if have else "–"


def newest() -> list[dict[str, Any]]:
    """The rows of the newest run of all sets."""
    runs = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = [run["rows"] for run in runs if len(run["rows"]) >= ALL_SETS][-1]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="seeds kept for the check")
    parser.add_argument("--first", type=int, help="the first seed, where it is another")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    first = options.first if options.first is not None else FIRST_CHECK_SEED * options.check
    tasks = [(name, first + k) for name in options.only for k in range(options.seeds)]
    rows = []
    with ProcessPoolExecutor(options.workers) as pool:
        for row in pool.map(measure, tasks):
            if row is not None:
                rows.append(row)
                print({key: row[key] for key in row if key != "choice"}, flush=True)
    print(table(rows))
    part = "check" if first >= FIRST_CHECK_SEED else "development"
    append(options.out, {"part": part, "rows": rows})


if __name__ == "__main__":
    main()
