"""Looks of one class: groups that cells tell apart and people call the same.

With a cell for every two groups the finest groups explain answers best, down to the looks in which
a class comes and the parts into which chance and people's sight divide it. What people call the
same is one class nevertheless. So groups are merged as components of a mixture are that stand for
one cluster (Hennig 2010): where people say "same" across the two more often than not, and rather as
often as they do inside groups than across; few answers count little against what is usual across.
The surest two come first, and what lies between them and a third is added up.
"""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.answers import Answers, fit_rates
from likewise.inference.partition.arrays import FloatArray, IntArray
from likewise.inference.partition.blocks import CellPrior
from likewise.inference.partition.pairs import effective_counts

MORE_OFTEN_THAN_NOT = 0.5
STRENGTH = 20.0  # answers that a rate counts as, before it has any of its own
TOLERANCE = 1e-9  # answers


def merge_looks(drawn: IntArray, counts: FloatArray, prior: CellPrior) -> IntArray:
    """(S, N) classes of draws (S, N) of groups; ``counts`` (2, N, N) of "same", "different"."""
    merged = np.empty_like(drawn)
    for draw, labels in enumerate(drawn):
        one_hot = np.eye(int(labels.max()) + 1)[labels]
        cells = np.einsum("nk,cnl->ckl", one_hot, counts @ one_hot)
        merged[draw] = classes_of(cells, prior)[labels]
    return merged


def merge_alike(labels: IntArray, answers: Answers) -> IntArray:
    """(N,) classes of groups (N,) that are believed, by what answers are worth."""
    own, other = labels[answers.left], labels[answers.right]
    belief = (own == other).astype(np.float64)
    counted = effective_counts(answers, fit_rates(answers, belief), belief)
    k = int(labels.max()) + 1
    cells = np.zeros((2, k, k))
    for side, count in zip(cells, counted, strict=True):
        np.add.at(side, (own, other), count)
        np.add.at(side, (other, own), count)
    across = cells[:, ~np.eye(k, dtype=bool)].sum(1) / 2
    a, b = STRENGTH * (across + 1) / (across.sum() + 2)
    return np.asarray(classes_of(cells, CellPrior((a, a), (b, b)))[labels])


def classes_of(cells: FloatArray, prior: CellPrior) -> IntArray:
    """(K,) the class of each group. ``cells`` (2, K, K) symmetric counts of "same" and "different"
    across groups, and on the diagonal twice those inside."""
    least = least_share(cells)
    weight = (cells[0] + prior.alpha[1]) * (1 - least) - (cells[1] + prior.beta[1]) * least
    np.fill_diagonal(weight, -np.inf)
    classes = np.arange(len(weight))
    while weight.max() > TOLERANCE:
        one, other = sorted(divmod(int(weight.argmax()), len(weight)))
        weight[one] += weight[other]
        weight[:, one] += weight[:, other]
        weight = np.delete(np.delete(weight, other, 0), other, 1)
        weight[one, one] = -np.inf
        classes[classes == other] = one
        classes[classes > other] -= 1
    return classes


def least_share(cells: FloatArray) -> float:
    """Of "same", above which two groups are one: half, or where that is more, the share that is as
    likely at the rate inside groups as at the rate across."""
    upper = np.triu_indices(cells.shape[1], 1)
    sides = cells.diagonal(axis1=1, axis2=2).sum(1) / 2, cells[:, *upper].sum(1)
    inside, across = ((same + 1) / (same + different + 2) for same, different in sides)
    if inside <= across:
        return 1.0
    different = np.log((1 - across) / (1 - inside))
    return max(float(different / (different + np.log(inside / across))), MORE_OFTEN_THAN_NOT)
