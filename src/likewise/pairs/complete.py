"""Every pair of N items, consistently judged, as a partition of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.pairs.container import Pairs

IndexArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

# A complete set is turned into a list only up to this many judgements (about half a GB).
MAX_EXPLICIT = 60_000_000


class CompletePairs(Pairs):
    """Every pair of N items, consistent: the partition into perceived classes, behind `Pairs`.

    The classes are renumbered by first appearance, so that nothing but "same" and "different"
    is left of the labels.
    """

    def __init__(self, labels: ArrayLike) -> None:
        _, first, ids = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
        order = np.empty(len(first), np.int32)
        order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        self._ids: NDArray[np.int32] = order[ids]
        self.n_items = len(self._ids)
        self.dropped = self.shortened = 0
        self.annotator = self.annotator_names = self.weight = self.item_ids = None

    @property
    def left(self) -> IndexArray:
        return self.explicit().left

    @property
    def right(self) -> IndexArray:
        return self.explicit().right

    @property
    def same(self) -> BoolArray:
        return self.explicit().same

    @property
    def is_complete(self) -> bool:
        return True

    def __len__(self) -> int:
        return self.n_items * (self.n_items - 1) // 2

    @property
    def n_same(self) -> int:
        sizes = np.bincount(self._ids)
        return int((sizes * (sizes - 1) // 2).sum())

    def components(self) -> NDArray[np.int32]:
        return self._ids.copy()

    def is_consistent(self) -> bool:
        return True

    def subset(self, items: ArrayLike) -> Pairs:
        return CompletePairs(self._ids[self._check_items(items)])

    def select(self, mask: ArrayLike) -> Pairs:
        return self.explicit().select(mask)

    def explicit(self) -> Pairs:
        n = self.n_items
        if len(self) > MAX_EXPLICIT:
            raise InputError(
                f"all pairs of {n:,} items are {len(self):,} judgements, too many for a "
                f"list; draw some with Pairs.from_labels(labels, per_item=k)."
            )
        items = np.arange(n, dtype=np.int32)
        left = np.repeat(items, n - 1 - items)
        right = np.concatenate([items[i + 1 :] for i in range(n)]) if n else items
        return Pairs(left, right, self._ids[left] == self._ids[right], n_items=n)
