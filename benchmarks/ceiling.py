"""What judgements alone could carry: each item placed with the true class of every other known.

    LIKEWISE_DATA=... python benchmarks/ceiling.py

For every item of a real crowd the classes of all others and the (C, C) shares of "same" between
classes are given, the latter counted without the item; the item goes where its own answers are
likeliest. A yardstick, not a bound, for methods that have to find the classes of the others, too;
nothing is fitted or chosen by it. n answers about one pair count as n / (1 + (n - 1) / 4), since
they err together. Writes results/ceiling.json.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from groups import _column
from likewise import Pairs
from likewise.io.atomic import write_json

RESULTS = Path(__file__).parents[1] / "results" / "ceiling.json"
CROWDS = {
    "birds20, adaptive": ("crowd-birds20", "pairs.csv"),
    "birds20, every pair once": ("crowd-birds20", "pairs_once.csv"),
    "birds20, majority of three": ("crowd-birds20", "pairs_majority3.csv"),
    "dogs3": ("crowd-dogs3", "pairs.csv"),
}
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


def table(rows: list[dict[str, float | str]]) -> str:
    """A line a crowd."""
    lines = ["| crowd | items placed | ARI |", "|---|---|---|"]
    lines += [f"| {row['crowd']} | {row['accuracy']:.3f} | {row['ari']:.3f} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    rows: list[dict[str, float | str]] = []
    for name, (where, file) in CROWDS.items():
        folder = Path(os.environ["LIKEWISE_DATA"]) / where
        truth = np.unique(_column(folder / "truth.csv", "class"), return_inverse=True)[1]
        pairs = Pairs.read(folder / file, n_items=len(truth)).explicit()
        found = placed(counts(pairs), truth)
        accuracy, ari = float((found == truth).mean()), adjusted_rand_score(truth, found)
        rows.append({"crowd": name, "accuracy": round(accuracy, 4), "ari": round(float(ari), 4)})
    write_json(RESULTS, {"rows": rows})
    print(table(rows))


if __name__ == "__main__":
    main()
