"""Judgements: who was said to be the same as whom.

Items are stored once, elsewhere; a judgement is two indices into them and an answer. A complete
set of judgements (every pair of N items) made from perceived classes is kept as a partition of the
items, never as a list: all pairs of 60,000 items are 1.8 billion.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from likewise.answers import parse_answers
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.diagnose import Description

IndexArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

# A complete set is turned into a list only up to this many judgements (about 1 GB of indices).
MAX_EXPLICIT = 60_000_000


class Pairs:
    """Same-or-different judgements about items, validated once.

    Parameters
    ----------
    left, right : (M,) integers
        Indices of the two items of each judgement.
    same : (M,)
        Answers: 1/0, True/False, 1/-1, "same"/"different" and their usual spellings; blank, NaN or
        "unsure" is no answer: the judgement is dropped and counted in ``dropped``.
    annotator : (M,), optional
        Who gave each judgement: any hashable names.
    weight : (M,) non-negative numbers, optional
        How much each judgement counts; 0 drops it from every loss.
    n_items : int, optional
        The number of items; by default one more than the largest index.
    """

    def __init__(
        self,
        left: ArrayLike,
        right: ArrayLike,
        same: ArrayLike,
        annotator: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        *,
        n_items: int | None = None,
    ) -> None:
        left_ = _indices(left, "left")
        right_ = _indices(right, "right")
        answer, answered = parse_answers(same)
        codes, names = _annotator_codes(annotator)
        weight_ = None if weight is None else _weights(weight)
        lengths = {"left": len(left_), "right": len(right_), "same": len(answer)}
        if codes is not None:
            lengths["annotator"] = len(codes)
        if weight_ is not None:
            lengths["weight"] = len(weight_)
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InputError(f"the columns of a judgement must be equally long, but have {found}.")

        self.n_items = _check_range(left_, right_, n_items)
        self.dropped = int(len(answer) - np.count_nonzero(answered))
        if self.dropped:
            left_, right_, answer = left_[answered], right_[answered], answer[answered]
            codes = None if codes is None else codes[answered]
            weight_ = None if weight_ is None else weight_[answered]
        if (loop := left_ == right_).any():
            m = int(np.argmax(loop))
            raise InputError(
                f"judgement {m} compares item {left_[m]} with itself; remove such rows "
                f"({int(loop.sum())} of {len(left_)})."
            )
        dtype = np.int32 if self.n_items <= np.iinfo(np.int32).max else np.int64
        self._left: IndexArray = left_.astype(dtype, copy=False)
        self._right: IndexArray = right_.astype(dtype, copy=False)
        self._same: BoolArray = answer
        self.annotator: NDArray[np.int32] | None = codes
        self.annotator_names: NDArray[np.str_] | None = names
        self.weight: NDArray[np.float32] | None = weight_

    # -- making them ---------------------------------------------------------------------------

    @classmethod
    def from_labels(
        cls,
        labels: ArrayLike,
        per_item: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Pairs:
        """Judgements made from perceived classes: same where the labels agree.

        With ``per_item=None`` every pair, kept as a partition of the items; otherwise a list of
        ``len(labels) * per_item / 2`` distinct random pairs, so that an item has ``per_item``
        judgements on average. Only "same" and "different" survive: not which class was which.
        """
        z = np.asarray(labels)
        if z.ndim != 1:
            raise InputError(f"labels must be one per item, shape (N,), but have shape {z.shape}.")
        if len(z) < 2:
            raise InputError(f"judgements need at least two items, but there are {len(z)} labels.")
        if per_item is None:
            return CompletePairs(z)
        n = len(z)
        if not 0 < per_item <= n - 1:
            raise InputError(f"per_item must be between 1 and {n - 1}, but is {per_item}.")
        left, right = random_pairs(n, n * per_item // 2, np.random.default_rng(random_state))
        return cls(left, right, z[left] == z[right], n_items=n)

    @staticmethod
    def concatenate(parts: Sequence[Pairs]) -> Pairs:
        """All judgements of several sets about the same items."""
        if not parts:
            raise InputError("there is nothing to concatenate: give at least one Pairs.")
        if len(parts) == 1:
            return parts[0]
        listed = [part.explicit() for part in parts]
        annotator = weight = None
        if any(part.annotator is not None for part in listed):
            annotator = np.concatenate([part._names_column() for part in listed])
        if any(part.weight is not None for part in listed):
            weight = np.concatenate(
                [np.ones(len(p), np.float32) if p.weight is None else p.weight for p in listed]
            )
        joined = Pairs(
            np.concatenate([part.left for part in listed]),
            np.concatenate([part.right for part in listed]),
            np.concatenate([part.same for part in listed]),
            annotator,
            weight,
            n_items=max(part.n_items for part in listed),
        )
        joined.dropped = sum(part.dropped for part in listed)
        return joined

    @staticmethod
    def read(path: str | Path, **options: Any) -> Pairs:
        """Read a CSV, Parquet or SQLite file of judgements; see `likewise.reading.read_pairs`."""
        from likewise.reading import read_pairs

        return read_pairs(path, **options)

    # -- looking at them -----------------------------------------------------------------------

    @property
    def left(self) -> IndexArray:
        """(M,) index of the first item of each judgement."""
        return self._left

    @property
    def right(self) -> IndexArray:
        """(M,) index of the second item of each judgement."""
        return self._right

    @property
    def same(self) -> BoolArray:
        """(M,) the answers."""
        return self._same

    @property
    def is_complete(self) -> bool:
        """Whether every pair of items was judged, consistently, and is kept as a partition."""
        return False

    def __len__(self) -> int:
        return len(self._left)

    def __repr__(self) -> str:
        people = "" if self.annotator_names is None else f", {len(self.annotator_names)} annotators"
        return f"Pairs({len(self):,} judgements about {self.n_items:,} items{people})"

    @property
    def n_same(self) -> int:
        """The number of "same" answers."""
        return int(np.count_nonzero(self._same))

    def describe(self) -> Description:
        """What the judgements say about themselves; see `likewise.diagnose.describe`."""
        from likewise.diagnose import describe

        return describe(self)

    def components(self) -> NDArray[np.int32]:
        """(N,) component of each item in the graph of "same" judgements, numbered from 0."""
        i, j = self.left[self.same], self.right[self.same]
        graph = sparse.coo_array(
            (np.ones(len(i), np.int8), (i, j)), shape=(self.n_items, self.n_items)
        )
        _, ids = connected_components(graph, directed=False)
        return ids.astype(np.int32, copy=False)

    def is_consistent(self) -> bool:
        """Whether no "different" judgement falls inside a component of "same" judgements.

        True of judgements that come from one perceived class an item, whatever that class.
        """
        ids = self.components()
        different = ~self.same
        return not np.any(ids[self.left[different]] == ids[self.right[different]])

    # -- cutting them --------------------------------------------------------------------------

    def subset(self, items: ArrayLike) -> Pairs:
        """The judgements among ``items`` only, re-indexed to positions in ``items``."""
        chosen = self._check_items(items)
        position = np.full(self.n_items, -1, np.int64)
        position[chosen] = np.arange(len(chosen))
        left, right = position[self._left], position[self._right]
        keep = (left >= 0) & (right >= 0)
        return self._take(keep, left[keep], right[keep], len(chosen))

    def select(self, mask: ArrayLike) -> Pairs:
        """The judgements where ``mask`` (M,) is true (or at those positions), of the same items."""
        keep = np.asarray(mask)
        return self._take(keep, self._left[keep], self._right[keep], self.n_items)

    def split(
        self, fraction: float, rng: np.random.Generator
    ) -> tuple[IndexArray, IndexArray, Pairs, Pairs]:
        """Set a fraction of the items aside so that no judgement crosses.

        Returns ``(train_items, held_items, train_pairs, held_pairs)``: sorted item indices, and
        the judgements inside each part, indexed within it. Judgements across are left out.
        """
        if not 0 < fraction < 1:
            raise InputError(f"the held-out fraction must lie between 0 and 1, but is {fraction}.")
        held_count = min(max(round(self.n_items * fraction), 2), self.n_items - 2)
        if held_count < 2:
            raise InputError(f"{self.n_items} items are too few to set some aside.")
        order = rng.permutation(self.n_items)
        held, train = np.sort(order[:held_count]), np.sort(order[held_count:])
        return train, held, self.subset(train), self.subset(held)

    def explicit(self) -> Pairs:
        """The same judgements as a list."""
        return self

    def write(self, path: str | Path) -> None:
        """Write CSV or Parquet, by the name's ending; see `likewise.reading.write_pairs`."""
        from likewise.reading import write_pairs

        write_pairs(self, path)

    # -- inside --------------------------------------------------------------------------------

    def _take(self, keep: ArrayLike, left: IndexArray, right: IndexArray, n_items: int) -> Pairs:
        """A part of already validated judgements, without validating them again."""
        part = Pairs.__new__(Pairs)
        part.n_items, part.dropped = n_items, 0
        part._left, part._right = left.astype(np.int32 if n_items < 2**31 else np.int64), right
        part._right = right.astype(part._left.dtype)
        part._same = self.same[keep]
        part.annotator = None if self.annotator is None else self.annotator[keep]
        part.annotator_names = self.annotator_names
        part.weight = None if self.weight is None else self.weight[keep]
        return part

    def _names_column(self) -> NDArray[Any]:
        if self.annotator is None or self.annotator_names is None:
            return np.full(len(self), "", dtype=np.str_)
        return self.annotator_names[self.annotator]

    def _check_items(self, items: ArrayLike) -> IndexArray:
        chosen = np.asarray(items)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= self.n_items):
            raise InputError(f"items must be indices below {self.n_items}.")
        return chosen


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
        self.dropped = 0
        self.annotator = self.annotator_names = self.weight = None

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
        if len(self) > MAX_EXPLICIT:
            raise InputError(
                f"all pairs of {self.n_items:,} items are {len(self):,} judgements, too many for a "
                f"list; draw some with Pairs.from_labels(labels, per_item=k)."
            )
        left, right = np.triu_indices(self.n_items, 1)
        return Pairs(left, right, self._ids[left] == self._ids[right], n_items=self.n_items)


def random_pairs(
    n_items: int, count: int, rng: np.random.Generator
) -> tuple[IndexArray, IndexArray]:
    """``count`` distinct unordered pairs of items, uniformly, as sorted ``(left, right)``."""
    total = n_items * (n_items - 1) // 2
    if count > total:
        raise InputError(f"{n_items} items have only {total} pairs, but {count} were asked for.")
    if count > total // 3:  # rejection would repeat itself: choose among all of them
        codes = rng.choice(total, size=count, replace=False)
    else:
        codes = np.unique(rng.integers(total, size=count))
        while len(codes) < count:
            codes = np.unique(np.append(codes, rng.integers(total, size=count - len(codes))))
    # A code counts the pairs (left < right) column by column: right*(right-1)/2 + left.
    right = ((1 + np.sqrt(1 + 8 * codes.astype(np.float64))) / 2).astype(np.int64)
    right -= right * (right - 1) // 2 > codes  # the root may be off by one at large codes
    right += (right + 1) * right // 2 <= codes
    return codes - right * (right - 1) // 2, right


def as_pairs(pairs: Any, same: ArrayLike | None = None, n_items: int | None = None) -> Pairs:
    """Accept what people have: a `Pairs`, ``((M, 2), (M,))``, or a frame with the columns.

    A frame is anything with ``columns`` and ``frame[name]`` (pandas, Polars): left, right, same
    and, where there, annotator and weight.
    """
    if isinstance(pairs, Pairs):
        if n_items is not None and pairs.n_items > n_items:
            raise InputError(
                f"a judgement names item {pairs.n_items - 1}, but there are only {n_items} items."
            )
        return pairs
    if hasattr(pairs, "columns"):
        columns = [str(name) for name in pairs.columns]
        if missing := [name for name in ("left", "right", "same") if name not in columns]:
            raise InputError(
                f"the judgements lack the column {', '.join(missing)}; "
                f"the columns there are {', '.join(columns)}."
            )
        optional = {n: np.asarray(pairs[n]) for n in ("annotator", "weight") if n in columns}
        return Pairs(
            np.asarray(pairs["left"]),
            np.asarray(pairs["right"]),
            np.asarray(pairs["same"]),
            n_items=n_items,
            **optional,
        )
    if same is None and isinstance(pairs, tuple) and len(pairs) == 2:
        pairs, same = pairs
    index = np.asarray(pairs)
    if same is None or index.ndim != 2 or index.shape[1] != 2:
        raise InputError(
            "judgements must be a Pairs, a data frame with columns left, right, same, "
            f"or a tuple ((M, 2) indices, (M,) answers), not {type(pairs).__name__}."
        )
    return Pairs(index[:, 0], index[:, 1], same, n_items=n_items)


def _indices(values: ArrayLike, name: str) -> IndexArray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one index per judgement, but has shape {array.shape}.")
    if array.size == 0:
        return array.astype(np.int32)
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.trunc(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must hold whole numbers (item indices), but holds {array.dtype}; "
            "match string ids to items with Pairs.read(..., item_ids=ids)."
        )
    return array


def _check_range(left: IndexArray, right: IndexArray, n_items: int | None) -> int:
    for name, index in (("left", left), ("right", right)):
        if len(index) and index.min() < 0:
            m = int(np.argmin(index))
            raise InputError(f"{name}[{m}] is {index[m]}, but item indices start at 0.")
    largest = max((int(index.max()) for index in (left, right) if len(index)), default=-1)
    if n_items is None:
        return largest + 1
    if largest >= n_items:
        name, index = ("left", left) if largest in left[-len(left) :] else ("right", right)
        m = int(np.argmax(index))
        raise InputError(
            f"{name}[{m}] names item {largest}, but there are only {n_items} items "
            f"(0 to {n_items - 1})."
        )
    return int(n_items)


def _annotator_codes(
    annotator: ArrayLike | None,
) -> tuple[NDArray[np.int32] | None, NDArray[np.str_] | None]:
    if annotator is None:
        return None, None
    array = np.asarray(annotator)
    if array.dtype.kind == "O":
        array = array.astype(str)
    names, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.int32), names.astype(np.str_)


def _weights(weight: ArrayLike) -> NDArray[np.float32]:
    array = np.asarray(weight, dtype=np.float32)
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        m = int(np.argmax(bad))
        raise InputError(f"weight[{m}] is {array[m]}, but weights must be finite and at least 0.")
    return array
