"""Which groups the answers tell apart, and which are one.

A fit to more groups than there are cuts some in two, or sets a few items aside that people happened
to see badly. Neither is a kind of its own: its items are called the same no oftener among
themselves than with those of some other group. So groups are made one, those that answers tell
apart least first, as long as a rate of its own explains the answers inside one of the two hardly
better than the rate across does: by less than `STRONG` evidence (Kass & Raftery 1995), or where
answers are few by less than a good part of what tells a usual group from the one most like it.
"""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray
from likewise.inference.partition.cells import cell_counts, shrunken_rates

STRENGTH = 20.0  # answers that a rate counts as, before it has any of its own
STRONG = 3.0  # nats, odds of twenty to one
GOOD_PART = 1 / 8  # of what tells a usual group apart
SLACK = 1e-9  # where there is no answer inside a group, nothing tells it from another


def merge_untold(
    labels: IntArray,
    left: IndexArray,
    right: IndexArray,
    same: BoolArray,
    weight: FloatArray | None = None,
) -> IntArray:
    """(N,) groups, those made one that answers ``same`` (M,) about the pairs do not tell apart."""
    group = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    every = np.ones(len(same)) if weight is None else weight
    ends, k = (group[left], group[right]), int(group.max()) + 1
    asked, said = cell_counts(*ends, every, k), cell_counts(*ends, every * same, k)
    while len(asked) > 1:
        gain = told_apart(asked, said)
        usual = max(float(np.median(gain.min(axis=1))), 0.0)
        first, second = divmod(int(gain.argmin()), len(gain))
        if gain[first, second] > min(STRONG, GOOD_PART * usual) + SLACK:
            break
        one, other = min(first, second), max(first, second)
        asked, said = _merged(asked, one, other), _merged(said, one, other)
        group[group == other] = one
        group[group > other] -= 1
    return group


def told_apart(asked: FloatArray, said: FloatArray) -> FloatArray:
    """(K, K) by how many nats answers inside a group (row) tell it from another (column).

    ``asked`` (K, K) answers inside (the diagonal) and across groups, ``said`` those of them that
    are "same". 0 where they are said oftener across than inside.
    """
    rate = shrunken_rates(said, asked, STRENGTH)
    own = rate.diagonal()[:, None]
    yes, total = said.diagonal()[:, None], asked.diagonal()[:, None]
    gain = yes * np.log(own / rate) + (total - yes) * np.log((1 - own) / (1 - rate))
    gain[rate >= own] = 0.0
    np.fill_diagonal(gain, np.inf)
    return np.asarray(gain)


def _merged(counts: FloatArray, one: int, other: int) -> FloatArray:
    """The same with two groups made one."""
    inside = counts[one, one] + counts[other, other] + counts[one, other]
    total = counts.copy()
    total[one] += total[other]
    total[:, one] += total[:, other]
    total[one, one] = inside
    return np.delete(np.delete(total, other, axis=0), other, axis=1)
