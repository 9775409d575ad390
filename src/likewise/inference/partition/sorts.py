"""Sorts: one person puts many items into piles at once, and all their pairs are judged by that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from likewise.inference.partition.arrays import BoolArray, IndexArray, IntArray

FEWEST_SORTED = 4  # items, below which a sort says hardly more than its pairs
MOST_UNSORTED = 0.05  # share of judgements outside of sorts that may be left out


@dataclass(frozen=True)
class Sorts:
    """Items in piles, one row for each time that an item was sorted (E rows)."""

    item: IntArray
    """(E,) the item."""
    pile: IntArray
    """(E,) its pile, numbered across all sorts."""
    sort_of_pile: IntArray
    """(P,) the sort of each pile."""
    n_items: int
    """N, sorted or not."""

    @cached_property
    def piles_of_sort(self) -> IntArray:
        """(S,) how many piles each sort has."""
        return np.bincount(self.sort_of_pile)

    @cached_property
    def sort(self) -> IntArray:
        """(E,) the sort of each row."""
        return np.asarray(self.sort_of_pile[self.pile])

    @cached_property
    def by_item(self) -> sparse.csr_array:
        """(N, E) adds up the rows of each item."""
        return _sums(self.item, self.n_items)

    @cached_property
    def by_pile(self) -> sparse.csr_array:
        """(P, E) adds up the rows of each pile."""
        return _sums(self.pile, len(self.sort_of_pile))

    @cached_property
    def by_sort(self) -> sparse.csr_array:
        """(S, P) adds up the piles of each sort."""
        return _sums(self.sort_of_pile, len(self.piles_of_sort))

    def select(self, kept: BoolArray) -> Sorts:
        """The same sorts with some of their rows only."""
        return Sorts(self.item[kept], self.pile[kept], self.sort_of_pile, self.n_items)


def find_sorts(
    left: IndexArray, right: IndexArray, same: BoolArray, annotator: IndexArray | None, n_items: int
) -> Sorts | None:
    """The sorts that judgements (M,) were made from; None where they are not (nearly all) sorts.

    Items that one person has compared, directly or by others, are a sort where every pair of them
    was judged and no two answers contradict each other.
    """
    if annotator is None or not len(left):
        return None
    place = np.concatenate([annotator, annotator]).astype(np.int64) * n_items
    place += np.concatenate([left, right])
    node, end = np.unique(place, return_inverse=True)
    a, b = np.split(end.reshape(-1), 2)
    sort = _components(a, b, len(node))
    pile = _components(a[same], b[same], len(node))
    pairs = np.unique(np.minimum(a, b) * len(node) + np.maximum(a, b))
    size = np.bincount(sort)
    judged = np.bincount(sort[pairs // len(node)], minlength=len(size))
    whole = (judged == size * (size - 1) // 2) & (size >= FEWEST_SORTED)
    whole[sort[a[~same & (pile[a] == pile[b])]]] = False
    if whole[sort[a]].mean() < 1 - MOST_UNSORTED:
        return None
    kept = whole[sort]
    numbered, code = np.unique(pile[kept], return_inverse=True)
    first = np.unique(pile, return_index=True)[1]
    of_pile = np.unique(sort[first[numbered]], return_inverse=True)[1]
    return Sorts(node[kept] % n_items, code.reshape(-1), of_pile.reshape(-1), n_items)


def _sums(group: IntArray, n_groups: int) -> sparse.csr_array:
    """(n_groups, n) a matrix that adds up what has each group (n,)."""
    ones, order = np.ones(len(group)), np.arange(len(group))
    return sparse.csr_array((ones, (group, order)), shape=(n_groups, len(group)))


def _components(a: IntArray, b: IntArray, n: int) -> IntArray:
    graph = sparse.coo_array((np.ones(len(a), bool), (a, b)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)
