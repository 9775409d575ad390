"""Asking what is worth asking: suggested pairs against random ones, at equal cost.

    python examples/suggestion.py [--quick]

Both start from the same few random judgements and then buy the same number more, round by round;
one buys random pairs, the other those that `lw.suggest` expects to tell most.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import likewise as lw
from likewise.pairs.sampling import random_pairs

QUICK = "--quick" in sys.argv
ITEMS, START, BOUGHT, ROUNDS = (80, 200, 100, 1) if QUICK else (240, 500, 300, 3)
CLASSES = 4


def ask(
    kind: np.ndarray, left: np.ndarray, right: np.ndarray, rng: np.random.Generator
) -> lw.Pairs:
    """What people say of the pairs: one answer in twenty is wrong."""
    same = (kind[left] == kind[right]) ^ (rng.random(len(left)) < 0.05)
    return lw.Pairs(left, right, same, n_items=len(kind))


def fit(X: np.ndarray, pairs: lw.Pairs) -> lw.SimilarityClassifier:
    return lw.SimilarityClassifier(CLASSES, random_state=0, verbose=False).fit(X, pairs)


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    kind = rng.integers(CLASSES, size=ITEMS)
    X = (rng.normal(size=(CLASSES, 8)) * 0.6)[kind] + rng.normal(size=(ITEMS, 8))
    start = ask(kind, *random_pairs(ITEMS, START, rng), rng)
    first = fit(X, start)
    for way in ("random", "suggested"):
        pairs, model = start, first
        scores = [model.score(X, kind)]
        for _ in range(ROUNDS):
            if way == "random":
                left, right = random_pairs(ITEMS, BOUGHT, rng)
            else:
                left, right = lw.suggest(model, X, pairs, BOUGHT).T
            pairs = lw.Pairs.concatenate([pairs, ask(kind, left, right, rng)])
            model = fit(X, pairs)
            scores.append(model.score(X, kind))
        print(f"{way:9}", "  ".join(f"{score:.0%}" for score in scores), f"({len(pairs):,} asked)")


if __name__ == "__main__":
    main()
