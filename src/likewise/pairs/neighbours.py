"""Whom an item was judged with: lists of partners, from judgements that come in pieces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.columns import IndexArray
from likewise.pairs.edges import chunks


class Neighbours:
    """The partners of chosen items, from judgements that come in pieces."""

    def __init__(self, centres: IndexArray, n_items: int) -> None:
        self._centres = np.sort(centres)
        self._is_centre = np.zeros(n_items, bool)  # a byte an item: most of it stays in the cache
        self._is_centre[centres] = True
        self._owners: list[IndexArray] = [np.empty(0, np.int32)]
        self._partners: list[IndexArray] = [np.empty(0, np.int32)]

    def add(self, left: IndexArray, right: IndexArray) -> None:
        """Judgements (n,) between these items."""
        for here, there in ((left, right), (right, left)):
            for part in chunks(len(here)):
                chosen = np.flatnonzero(self._is_centre[here[part]])
                owner = np.searchsorted(self._centres, here[part][chosen])
                self._owners.append(owner.astype(np.int32))
                self._partners.append(there[part][chosen])

    def lists(self) -> tuple[NDArray[np.int64], IndexArray]:
        """``(start, neighbour)``: ``neighbour[start[k] : start[k + 1]]`` are those of centre k.

        In the order in which they came; what was added is gone afterwards.
        """
        number = np.zeros(len(self._centres), np.int64)
        for owner in self._owners:
            number += np.bincount(owner, minlength=len(number))
        start = np.concatenate([[0], np.cumsum(number)])
        neighbour = np.empty(start[-1], np.result_type(*self._partners))
        free = start[:-1].copy()
        while self._owners:  # a counting sort, piece by piece
            owner, partner = self._owners.pop(0), self._partners.pop(0)
            order = np.argsort(owner, kind="stable")
            number = np.bincount(owner, minlength=len(free))
            first = np.cumsum(number) - number
            owner = owner[order]
            neighbour[free[owner] + np.arange(len(owner)) - first[owner]] = partner[order]
            free += number
        return start, neighbour
