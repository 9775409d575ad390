"""Items that are alone only because draws of partitions put them here and there.

What draws agree on leaves such an item by itself, and each counts as a group. Whether groups of one
are of that kind is a matter of all of them together: a few singletons among large groups are
unlikely, where groups are mostly of one or two they are as many as one would expect. So they join
the group that draws put them with, the surest first, as many of them as make the answers and the
partition likeliest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from likewise.inference.partition.arrays import FloatArray, IntArray
from likewise.inference.partition.search import canonical

GROWTH = 1.5  # so many times as many are placed at the next step: evidence takes a while


def place_leftovers(
    labels: IntArray, drawn: IntArray, evidence: Callable[[IntArray], float]
) -> IntArray:
    """(N,) groups, of the items alone in theirs as many placed as have the highest ``evidence``.

    ``drawn`` (S, N): draws of partitions, by which an item's place and its turn are found.
    """
    item, target, share = _places(labels, drawn)
    order = np.argsort(-share, kind="stable")
    item, target = item[order], target[order]
    best, highest = canonical(labels), -np.inf
    for count in _steps(len(item)):
        placed = labels.copy()
        placed[item[:count]] = target[:count]
        placed = canonical(placed)
        value = evidence(placed)
        if value > highest:
            best, highest = placed, value
    return best


def _places(labels: IntArray, drawn: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Items alone in their group that are with others in some draw, the group of several items with
    which they are most, and the share of draws and members."""
    size = np.bincount(labels)
    alone, others = np.flatnonzero(size[labels] == 1), np.flatnonzero(size[labels] > 1)
    together = sparse.csr_array((len(alone), len(size)))
    for draw in drawn:
        member = 1 / (len(drawn) * size[labels[others]])
        shape = (int(draw.max()) + 1, len(size))
        table = sparse.coo_array((member, (draw[others], labels[others])), shape=shape).tocsr()
        together = together + table[draw[alone]]
    if not len(alone) or not len(others):
        return alone[:0], alone[:0], np.zeros(0)
    share = np.asarray(together.max(axis=1).todense(), np.float64).reshape(-1)
    target = np.asarray(together.argmax(axis=1), np.int64).reshape(-1)
    return alone[share > 0], target[share > 0], share[share > 0]


def _steps(most: int) -> list[int]:
    """0, 1, 2, 3, 5 … and ``most``; none where there is nothing to place."""
    steps, count = [], 0
    while count < most:
        steps.append(count)
        count = int(np.ceil(max(count, 0.5) * GROWTH))
    return [*steps, most] if most else []
