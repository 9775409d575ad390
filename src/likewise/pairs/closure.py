"""Who compares a with b: did that person compare both with the same others? A cheap look at sorts.

Where judgements were made from sorts (`likewise.inference.partition.sorts`), every pair of the
sorted items was judged, so that this holds of nearly all judgements; of single questions it hardly
ever does. A few judgements are looked at, among those that one process holds.
"""

from __future__ import annotations

import numpy as np

from likewise.pairs.columns import IndexArray
from likewise.pairs.container import Pairs

LOOKED_AT = 400  # judgements, or up to twice as many
ENOUGH = 0.5  # share of them; of sorts it is 0.95


def may_be_sorts(pairs: Pairs) -> bool:
    """Whether judgements with people look like sorts: False where they are certainly none."""
    tried, closed = count_closed(pairs, slice(0, pairs.n_items))
    return closed >= ENOUGH * tried


def count_closed(pairs: Pairs, block: slice) -> tuple[int, int]:
    """``(tried, closed)``: judgements between items of a block, and how many of them are of two
    items that the same person compared with the same others.

    All judgements of the block's items must be among ``pairs``.
    """
    assert pairs.annotator is not None
    left, right = pairs.left, pairs.right
    inside = np.flatnonzero(
        (np.minimum(left, right) >= block.start) & (np.maximum(left, right) < block.stop)
    )
    chosen = inside[:: max(1, len(inside) // LOOKED_AT)]
    touched = np.zeros(pairs.n_items, bool)
    touched[left[chosen]] = touched[right[chosen]] = True
    near = np.flatnonzero(touched[left] | touched[right])
    person = pairs.annotator[near].astype(np.int64) * pairs.n_items
    ends = np.concatenate([person + left[near], person + right[near]])
    order = np.argsort(ends, kind="stable")
    ends, partners = ends[order], np.concatenate([right[near], left[near]])[order]

    def others(one: int, item: int, but: int) -> IndexArray:
        """Items that a person compared with ``item``, less one of them."""
        first, last = np.searchsorted(ends, one * pairs.n_items + item + np.arange(2))
        found = np.unique(partners[first:last])
        return np.asarray(found[found != but])

    closed = 0
    for one, a, b in np.stack([pairs.annotator[chosen], left[chosen], right[chosen]], 1).tolist():
        with_a = others(one, a, but=b)
        closed += len(with_a) > 0 and np.array_equal(with_a, others(one, b, but=a))
    return len(chosen), closed
