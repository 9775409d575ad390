"""Whether everybody's two rates explain the answers, whichever classes two items are of."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from likewise.inference.propagation.graph_beliefs import weight_unit
from likewise.pairs import Pairs
from likewise.pairs.edges import chunks
from likewise.pairs.shards import exchange_of, own_items, summed, total_of, within

LEAST = 1.0  # of a cell's variance, to be looked at


def cells_differ(pairs: Pairs, labels: NDArray[np.integer], p_same: NDArray[np.float64]) -> bool:
    """Whether some two classes are taken for each other more, or less, often than others: by the
    Bayesian information criterion (Schwarz 1978) of what `cell_gain` tells."""
    gain, n_rates = cell_gain(pairs, labels, p_same)
    return gain > 0.5 * n_rates * math.log(max(_counted(pairs), 2))


def _counted(pairs: Pairs) -> int:
    """Judgements that count, those of other processes too, each once."""
    if pairs.weight is None:
        return total_of(pairs)
    exchange = exchange_of(pairs)
    ours = within(pairs.left, own_items(pairs.n_items, exchange))
    return summed(exchange, int(np.count_nonzero(pairs.weight[ours])))


def cell_gain(
    pairs: Pairs, labels: NDArray[np.integer], p_same: NDArray[np.float64]
) -> tuple[float, int]:
    """What a rate of "same" for every two classes would explain, in nats, and how many those are.

    By how far "same" is from what rates ``p_same`` (R, 2) of everybody, or (1, 2) of all, foretell
    inside and across classes (N,), beyond what they are off by everywhere (a score test). Weights
    are 1 on average, as where the rates were found (`weight_unit`).
    Processes that have the judgements between them must ask together.
    """
    exchange = exchange_of(pairs)
    own = own_items(pairs.n_items, exchange)
    n_classes = int(labels.max()) + 1
    unit = 1.0
    if pairs.weight is not None:
        unit = weight_unit(pairs.weight[within(pairs.left, own)], exchange)  # each judgement once
    sums = np.zeros((2, n_classes * n_classes))  # "same" beyond what was foretold, its variance
    for part in chunks(len(pairs)):
        first = within(pairs.left[part], own)  # each judgement once
        left, right = labels[pairs.left[part][first]], labels[pairs.right[part][first]]
        people = 0 if len(p_same) == 1 or pairs.annotator is None else pairs.annotator[part][first]
        chance = p_same[people, (left != right).astype(np.int64)]
        cell = np.minimum(left, right) * n_classes + np.maximum(left, right)
        weight = 1.0 if pairs.weight is None else pairs.weight[part][first] / unit
        for row, value in enumerate((pairs.same[part][first] - chance, chance * (1 - chance))):
            sums[row] += np.bincount(cell, weight * value, minlength=sums.shape[1])
    excess, variance = exchange.gather_rows(sums[None]).sum(axis=0)
    gain, n_rates = 0.0, 0
    inside = np.eye(n_classes, dtype=bool).ravel()
    for side in (inside, ~inside):
        asked = side & (variance >= LEAST)
        if asked.any():
            usual = excess[asked].sum() / variance[asked].sum()
            gain += 0.5 * float(np.square(excess - usual * variance)[asked] @ (1 / variance[asked]))
            n_rates += int(np.count_nonzero(asked)) - 1
    return gain, n_rates
