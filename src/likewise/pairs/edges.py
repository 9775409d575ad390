"""The graph of judgements, in compiled code and in pieces: a hundred million edges are ordinary."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from likewise.pairs.columns import BoolArray, IndexArray

# Judgements handled at a time: temporary arrays stay near 10 MB whatever the number of judgements.
CHUNK = 1 << 18


def chunks(length: int, size: int | None = None) -> Iterator[slice]:
    """Slices that cover ``range(length)``, of ``CHUNK`` by default."""
    step = CHUNK if size is None else size
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def components(left: IndexArray, right: IndexArray, n_items: int) -> NDArray[np.int32]:
    """(N,) component of each item in the graph with these edges, numbered by first appearance."""
    ones = np.ones(len(left), np.int8)
    graph = sparse.coo_array((ones, (left, right)), shape=(n_items, n_items)).tocsr()
    _, ids = connected_components(graph, directed=False)
    return np.asarray(ids, dtype=np.int32)


def count_inside(ids: IndexArray, left: IndexArray, right: IndexArray, chosen: BoolArray) -> int:
    """How many of the chosen edges join two items of one component."""
    total = 0
    for part in chunks(len(left)):
        total += int(np.count_nonzero((ids[left[part]] == ids[right[part]]) & chosen[part]))
    return total


def degrees(left: IndexArray, right: IndexArray, n_items: int) -> NDArray[np.int64]:
    """(N,) number of judgements of each item."""
    total = np.zeros(n_items, np.int64)
    for index in (left, right):
        for part in chunks(len(index), max(CHUNK, n_items)):
            total += np.bincount(index[part], minlength=n_items)
    return total
