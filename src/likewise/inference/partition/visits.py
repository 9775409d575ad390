"""Visits of items one after the other, worked out for stretches of them.

Most items stay where they are: what a stretch of items would do is worked out at once, and counts
up to the first that moves. Behind it the groups are others, and the rest is visited anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from likewise.inference.partition.answers import softmax_rows
from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray

TOLERANCE = 1e-9
SHORTEST, LONGEST = 2, 256  # stretches


class Movable(Protocol):
    """A partition whose items can be moved."""

    def gains_of(self, items: IndexArray) -> FloatArray:
        """(n, K) the objective that each item adds in every group; -inf where it may not go."""

    def groups_of(self, items: IndexArray) -> IntArray:
        """(n,) where they are."""

    def may_leave(self, groups: IndexArray) -> BoolArray:
        """(n,) whether an item may leave these groups."""

    def move(self, item: int, target: int) -> None:
        """Put an item into another group."""


def visit(
    partition: Movable,
    order: IndexArray,
    rng: np.random.Generator,
    temperature: float,
    seen: Callable[[IndexArray, FloatArray], None] | None = None,
) -> IntArray:
    """The items of ``order`` that moved: each to its best group at temperature 0, else to one drawn
    from softmax(gain / temperature). ``seen`` is told the items visited and their gains."""
    moved, at, length = list[int](), 0, SHORTEST
    while at < len(order):
        items = order[at : at + length]
        gain, own = partition.gains_of(items), partition.groups_of(items)
        best, moves = _chosen(gain, own, rng, temperature)
        moves &= partition.may_leave(own)
        first = int(moves.argmax())
        found = bool(moves[first])
        done = first + 1 if found else len(items)
        if seen is not None:
            seen(items[:done], gain[:done])
        if found:
            partition.move(int(items[first]), int(best[first]))
            moved.append(int(items[first]))
        length = max(length // 2, SHORTEST) if found else min(2 * length, LONGEST)
        at += done
    return np.array(moved, np.int64)


def own_chances(partition: Movable, n_items: int) -> FloatArray:
    """(N,) P(each item is in its group), all others where they are."""
    found = np.empty(n_items)
    for at in range(0, n_items, LONGEST):
        items = np.arange(at, min(at + LONGEST, n_items))
        chances = softmax_rows(partition.gains_of(items))
        found[items] = chances[np.arange(len(items)), partition.groups_of(items)]
    return found


def _chosen(
    gain: FloatArray, own: IntArray, rng: np.random.Generator, temperature: float
) -> tuple[IntArray, BoolArray]:
    """(n,) the group that each item would go to, and whether it is another than its own."""
    if temperature > 0:
        # With Gumbel noise the largest is a draw. What is drawn for items behind the first that
        # moves is not used: they draw again.
        open_to = np.isfinite(gain)
        noisy = gain.copy()
        noisy[open_to] += temperature * rng.gumbel(size=np.count_nonzero(open_to))
        best = noisy.argmax(1)
        return best, best != own
    best, rows = gain.argmax(1), np.arange(len(gain))
    return best, gain[rows, best] > gain[rows, own] + TOLERANCE
