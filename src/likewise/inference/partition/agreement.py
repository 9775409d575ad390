"""One partition for many draws: the one whose expected pairwise F1 over the draws is highest.

Of two items that share a group with probability p, F1 counts 2p if they are put together, and its
denominator grows by 1; so at the highest expected F1, f, those with p > f / 2 gain by being
together (as with the expected adjusted Rand index, Fritsch & Ickstadt 2009). Where draws agree
that is Binder's (1978) one half; where little is known items are not all left alone.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from likewise.inference.partition.arrays import IntArray
from likewise.inference.partition.moves import Mover
from likewise.inference.partition.search import WeightedGraph, canonical

MAX_PAIRS = 2_000_000  # of items that share a group in some draw; beyond it no item is moved
AGREED = 1.0  # pairs
MAX_TURNS = 8


def agreed_partition(drawn: IntArray, fixed: bool, rng: np.random.Generator) -> IntArray:
    """(N,) groups from draws (S, N), the first of them a guess; ``fixed`` keeps its number."""
    n_draws, n = drawn.shape
    expected = sum(_pairs(np.bincount(labels)) for labels in drawn) / n_draws
    scores = [_expected_f1(drawn, labels, expected) for labels in drawn]
    best = int(np.argmax(scores))
    labels, score = canonical(drawn[best]), scores[best]
    if sum(_pairs(np.bincount(draw)) for draw in drawn) > MAX_PAIRS * n_draws:
        return labels
    together = sparse.csr_array((n, n))
    for draw in drawn:
        rows = sparse.csr_array((np.full(n, 1 / n_draws), draw, np.arange(n + 1)))
        together = together + sparse.triu(rows @ (rows > 0).T, 1)
    pairs = together.tocoo()
    graph = WeightedGraph.build(
        pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data, n
    )
    size = np.arange(n + 1.0)
    for _ in range(MAX_TURNS):  # Dinkelbach's iteration for a ratio
        mover = Mover(graph, labels, -score / 2 * size * (size - 1) / 2, fixed)
        mover.settle(rng)
        found = mover.labels
        value = _expected_f1(drawn, found, expected)
        if value <= score + 1e-9:
            break
        labels, score = found, value
    return labels


def _pairs(sizes: IntArray) -> float:
    return float((sizes * (sizes - 1.0)).sum() / 2)


def _expected_f1(drawn: IntArray, labels: IntArray, expected: float) -> float:
    """2 E[pairs together in both] / (pairs together + E[pairs together in a draw]), with one pair
    more that all are agreed on: so all may be alone in their groups where draws mostly say so."""
    both = 0.0
    for draw in drawn:
        cell = labels * (int(draw.max()) + 1) + draw
        both += _pairs(np.unique(cell, return_counts=True)[1])
    together = _pairs(np.bincount(labels)) + expected
    return (2 * both / len(drawn) + AGREED) / (together + AGREED)
