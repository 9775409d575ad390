"""Every pair of N items, consistently judged, as a partition of the items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.pairs.columns import BoolArray, IndexArray, as_item_ids, check_chosen
from likewise.pairs.container import NOTHING_LEFT_OUT, Pairs

# A complete set is turned into a list only up to this many judgements (about half a GB).
MAX_EXPLICIT = 60_000_000


class CompletePairs(Pairs):
    """Every pair of N items, consistent: the partition into perceived classes, behind `Pairs`.

    The classes are renumbered by first appearance, so that nothing but "same" and "different"
    is left of the labels.
    """

    _ids: NDArray[np.int32]
    """(N,) the perceived class of each item."""

    def __init__(self, labels: ArrayLike, item_ids: ArrayLike | None = None) -> None:
        _, first, ids = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
        order = np.empty(len(first), np.int32)
        order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        names = None if item_ids is None else as_item_ids(item_ids, len(ids))
        about = {"n_items": len(ids), "annotator_names": None, "item_ids": names}
        self._set({"_ids": order[ids], "annotator": None, "weight": None, **about})
        self._set(NOTHING_LEFT_OUT)

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
        chosen = check_chosen(items, self.n_items)
        return CompletePairs(
            self._ids[chosen], None if self.item_ids is None else self.item_ids[chosen]
        )

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
        same = self._ids[left] == self._ids[right]
        return Pairs(left, right, same, n_items=n, item_ids=self.item_ids)

    def with_item_ids(self, item_ids: ArrayLike | None) -> Pairs:
        return CompletePairs(self._ids, item_ids)
