"""Which judgement to ask for next: `suggest` against chance, at equal numbers of judgements.

Crowds: answers that people really gave (crowd-dogs3), or would give (two crowds made by hand), are
revealed a thousand at a time out of all of them; a question comes with the person who answered it.
Digits: class flips .2, any pair may be asked. Both arms begin with the same random judgements. Fits
see revealed judgements alone; the true classes score. Finished seeds are kept in
results/asking.json and not repeated:

    python benchmarks/asking.py [crowd-dogs3 digits ...] [--seeds 5]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from crowd import CROWDS
from likewise import Pairs, SimilarityClassifier
from likewise.active.suggestion import choose, suggest
from likewise.inference import JointResult, fit_joint
from likewise.io.atomic import write_json
from likewise.metrics import matched_accuracy
from likewise.noise import corrupt_labels, symmetric

RESULTS = Path(__file__).parents[1] / "results" / "asking.json"
CROWDS_ASKED = ("crowd-dogs3", "misleading pictures", "features that blur")
FIRST, STEP, STEPS = 1500, 1000, 4  # judgements of a crowd
HOW = ("suggest", "random")
Row = dict[str, Any]


def ask_crowd(name: str, seed: int) -> Iterator[Row]:
    """Answers that exist already, revealed by choice or by chance."""
    crowd = CROWDS[name](seed)
    if crowd is None:
        return
    answers = crowd.pairs
    assert answers.annotator_names is not None
    pool = np.stack([answers.left, answers.right], axis=1).astype(np.int64)
    people = answers.annotator_names[answers.annotator]
    settled = placed_by_all(name, 0 if name == "crowd-dogs3" else seed)
    for how in HOW:
        rng = np.random.default_rng(seed)
        asked = np.zeros(len(pool), bool)
        asked[rng.choice(len(pool), FIRST, replace=False)] = True
        for step in range(STEPS):
            known = answers.select(asked)
            result = fit_joint(crowd.items, known, crowd.n_classes, random_state=seed)
            predicted = result.module(torch.from_numpy(crowd.items)).argmax(1).numpy()
            yield row(name, how, seed, len(known)) | {
                "accuracy": matched_accuracy(predicted, crowd.truth),
                "perceived": matched_accuracy(result.posterior.argmax(1), settled),
            }
            free = np.flatnonzero(~asked)
            taken = rng.choice(len(free), STEP, replace=False)
            if how == "suggest" and step < STEPS - 1:
                offered, who = pool[free], people[free]
                taken = choose(
                    result, crowd.items, known, STEP, offered, annotators=who, random_state=rng
                )
            asked[free[taken]] = True


@cache
def placed_by_all(name: str, seed: int) -> np.ndarray:
    """(N,) perceived class of each item by all judgements of a crowd together: no truth in it."""
    crowd = CROWDS[name](seed)
    assert crowd is not None
    result = fit_joint(crowd.items, crowd.pairs, crowd.n_classes, random_state=seed)
    return np.asarray(result.posterior.argmax(1))


def ask_about_digits(name: str, seed: int) -> Iterator[Row]:
    """Class flips .2; five judgements an item at first, then three more an item a step."""
    X, y = load_digits(return_X_y=True)
    items = (X / 16).astype(np.float32)
    train, test, y_train, y_test = train_test_split(
        items, y, test_size=0.2, random_state=seed, stratify=y
    )
    for how in HOW:
        rng = np.random.default_rng(seed)
        z = corrupt_labels(y_train, symmetric(10, 0.2), rng)
        asked = drawn(z, 5, rng)
        for step in range(STEPS):
            left, right = asked.T
            pairs = Pairs(left, right, z[left] == z[right], n_items=len(z))
            result = fit_joint(train, pairs, 10, noise="class", random_state=seed)
            model = SimilarityClassifier(10, noise="class", random_state=seed, verbose=False)
            predicted = model.fit(train, pairs).predict(test)
            yield row(name, how, seed, len(pairs)) | {
                "accuracy": matched_accuracy(predicted, y_test),
                "perceived": matched_accuracy(result.posterior.argmax(1), z),
            }
            if step < STEPS - 1:
                asked = np.concatenate([asked, more(how, result, train, pairs, z, rng)])


def drawn(z: np.ndarray, per_item: int, rng: np.random.Generator) -> np.ndarray:
    pairs = Pairs.from_labels(z, per_item, rng)
    return np.stack([pairs.left, pairs.right], axis=1).astype(np.int64)


def more(
    how: str,
    result: JointResult,
    items: np.ndarray,
    pairs: Pairs,
    z: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    count = 3 * len(z) // 2
    by_chance = drawn(z, 3, rng)[:count]
    if how == "random":
        return by_chance
    return suggest(result, items, pairs, count, random_state=rng)


def row(data: str, how: str, seed: int, judgements: int) -> Row:
    return {"data": data, "how": how, "seed": seed, "judgements": judgements}


TABLES: dict[str, Callable[[str, int], Iterator[Row]]] = {
    "digits": ask_about_digits,
    **dict.fromkeys(CROWDS_ASKED, ask_crowd),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--print", action="store_true", help="print what is there, run nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[Row] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    done = {(row["data"], row["seed"]) for row in rows}
    for seed in range(0 if options.print else options.seeds):
        for name in options.tables:
            if (name, seed) not in done:
                rows += list(TABLES[name](name, seed))
                write_json(RESULTS, rows)
    print(table(rows))


def table(rows: list[Row]) -> str:
    """Means over seeds by data and number of judgements, as Markdown."""
    lines = [
        "| data | judgements | seeds | class: suggested | random | perceived: suggested | random |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, count in sorted({(row["data"], row["judgements"]) for row in rows}):
        mine = [row for row in rows if (row["data"], row["judgements"]) == (data, count)]
        shown = [
            f"{np.mean([row[key] for row in mine if row['how'] == how]):.3f}"
            for key in ("accuracy", "perceived")
            for how in HOW
        ]
        seeds = len({row["seed"] for row in mine})
        lines.append(f"| {data} | {count} | {seeds} | {' | '.join(shown)} |")
    lines += [
        "",
        "| data | ahead, class | in seeds | perceived | in seeds |",
        "|---|---|---|---|---|",
    ]
    for data in sorted({row["data"] for row in rows}):
        shown = [ahead(rows, data, key) for key in ("accuracy", "perceived")]
        lines.append(f"| {data} | {' | '.join(shown)} |")
    return "\n".join(lines)


def ahead(rows: list[Row], data: str, key: str) -> str:
    """Mean lead of `suggest` after the common start, its standard error, and in how many seeds."""
    found = {(r["seed"], r["judgements"], r["how"]): r[key] for r in rows if r["data"] == data}
    seeds, counts = sorted({k[0] for k in found}), sorted({k[1] for k in found})[1:]
    leads = [
        np.mean([found[seed, count, "suggest"] - found[seed, count, "random"] for count in counts])
        for seed in seeds
    ]
    error = np.std(leads, ddof=min(1, len(leads) - 1)) / np.sqrt(len(leads))
    won = sum(lead > 0 for lead in leads)
    return f"{np.mean(leads):+.3f} ± {error:.3f} | {won} of {len(leads)}"


if __name__ == "__main__":
    main()
