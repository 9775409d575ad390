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

from likewise.errors import InputError, RowError
from likewise.pairs.answers import parse_answers
from likewise.pairs.columns import (
    annotator_codes,
    as_indices,
    as_weights,
    check_lengths,
    check_range,
    index_dtype,
)
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.sampling import random_pairs

if TYPE_CHECKING:
    from likewise.pairs.description import Description

IndexArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]


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
        Who gave each judgement: any names, or codes into ``annotator_names`` where that is given.
    weight : (M,) non-negative numbers, optional
        How much each judgement counts; 0 drops it from every loss.
    n_items : int, optional
        The number of items; by default one more than the largest index.
    annotator_names : (A,) strings, optional
        The names behind annotator codes.

    Attributes
    ----------
    item_ids : (N,) strings or None
        The items' own names, where the judgements were read from a file that uses names.
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
        annotator_names: ArrayLike | None = None,
    ) -> None:
        left_, right_ = as_indices(left, "left"), as_indices(right, "right")
        answer, answered = parse_answers(same)
        codes, names = annotator_codes(annotator, annotator_names)
        weight_ = None if weight is None else as_weights(weight)
        check_lengths(left=left_, right=right_, same=answer, annotator=codes, weight=weight_)
        self.n_items = check_range(left_, right_, n_items)
        _refuse_self_pairs(left_, right_, answered)

        self.shortened = 0
        self.dropped = int(len(answer) - np.count_nonzero(answered))
        if self.dropped:
            left_, right_, answer = left_[answered], right_[answered], answer[answered]
            codes = None if codes is None else codes[answered]
            weight_ = None if weight_ is None else weight_[answered]
        dtype = index_dtype(self.n_items)
        self._left: IndexArray = left_.astype(dtype, copy=False)
        self._right: IndexArray = right_.astype(dtype, copy=False)
        self._same: BoolArray = answer
        self.annotator: NDArray[np.int32] | None = codes
        self.annotator_names: NDArray[np.str_] | None = names
        self.weight: NDArray[np.float32] | None = weight_
        self.item_ids: NDArray[np.str_] | None = None

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
            from likewise.pairs.complete import CompletePairs

            return CompletePairs(z)
        n = len(z)
        if not 0 < per_item <= n - 1:
            raise InputError(f"per_item must be between 1 and {n - 1}, but is {per_item}.")
        left, right = random_pairs(n, n * per_item // 2, np.random.default_rng(random_state))
        return cls(left, right, z[left] == z[right], n_items=n)

    @staticmethod
    def concatenate(parts: Sequence[Pairs]) -> Pairs:
        """All judgements of several sets about the same items."""
        from likewise.pairs.concatenation import join

        return join(parts)

    @staticmethod
    def read(path: str | Path, **options: Any) -> Pairs:
        """Read a file of judgements in any format we know; see `likewise.pairs.formats.read_pairs`."""
        from likewise.pairs.formats import read_pairs

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

    def describe(self, n_classes: int | None = None) -> Description:
        """What the judgements say about themselves; see `likewise.pairs.description.describe`."""
        from likewise.pairs.description import describe

        return describe(self, n_classes)

    def components(self) -> NDArray[np.int32]:
        """(N,) component of each item in the graph of "same" judgements, numbered from 0."""
        return JudgementGraph.of(self).component

    def is_consistent(self) -> bool:
        """Whether no "different" judgement falls inside a component of "same" judgements.

        True of judgements that come from one perceived class an item, whatever that class.
        """
        return JudgementGraph.of(self).contradictions == 0

    # -- cutting them --------------------------------------------------------------------------

    def subset(self, items: ArrayLike) -> Pairs:
        """The judgements among ``items`` only, re-indexed to positions in ``items``."""
        chosen = self._check_items(items)
        position = np.full(self.n_items, -1, index_dtype(self.n_items))
        position[chosen] = np.arange(len(chosen))
        left, right = position[self._left], position[self._right]
        keep = (left >= 0) & (right >= 0)
        part = self._take(keep, left[keep], right[keep], len(chosen))
        part.item_ids = None if self.item_ids is None else self.item_ids[chosen]
        return part

    def select(self, mask: ArrayLike) -> Pairs:
        """The judgements where ``mask`` (M,) is true (or at those positions), of the same items."""
        keep = np.asarray(mask)
        if keep.size == 0:
            keep = keep.astype(np.int64)  # an empty list of positions arrives as floats
        part = self._take(keep, self._left[keep], self._right[keep], self.n_items)
        part.item_ids = self.item_ids
        return part

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

    def about(self, n_items: int) -> Pairs:
        """The same judgements, of that many items (some of which no judgement may name)."""
        if n_items == self.n_items:
            return self
        if n_items < self.n_items or self.is_complete:
            raise InputError(
                f"the judgements are about {self.n_items} items, but there are {n_items}."
            )
        return self._take(slice(None), self._left, self._right, n_items)

    def explicit(self) -> Pairs:
        """The same judgements as a list."""
        return self

    def write(self, path: str | Path) -> None:
        """Write CSV or Parquet, by the name's ending; see `likewise.pairs.formats.write_pairs`."""
        from likewise.pairs.formats import write_pairs

        write_pairs(self, path)

    # -- inside --------------------------------------------------------------------------------

    def _take(
        self, keep: NDArray[Any] | slice, left: IndexArray, right: IndexArray, n_items: int
    ) -> Pairs:
        """A part of already validated judgements, without validating them again."""
        part = Pairs.__new__(Pairs)
        part.n_items, part.dropped, part.shortened = n_items, 0, 0
        dtype = index_dtype(n_items)
        part._left = left.astype(dtype, copy=False)
        part._right = right.astype(dtype, copy=False)
        part._same = self.same[keep]
        part.annotator = None if self.annotator is None else self.annotator[keep]
        part.annotator_names = self.annotator_names
        part.weight = None if self.weight is None else self.weight[keep]
        part.item_ids = None
        return part

    def _check_items(self, items: ArrayLike) -> IndexArray:
        chosen = np.asarray(items)
        if chosen.dtype == bool:
            if len(chosen) != self.n_items:
                raise InputError(
                    f"a mask of items must have {self.n_items} entries, but has {len(chosen)}."
                )
            return np.flatnonzero(chosen)
        if chosen.size == 0:
            return chosen.astype(np.int64)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise InputError("items must be a list of indices, or a mask with an entry per item.")
        if chosen.min() < 0 or chosen.max() >= self.n_items:
            raise InputError(f"items must be indices below {self.n_items}.")
        if np.bincount(chosen).max() > 1:
            raise InputError("items must not name an item twice.")
        return chosen


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
        return _from_frame(pairs, n_items)
    if same is None and isinstance(pairs, tuple) and len(pairs) == 2:
        pairs, same = pairs
    index = np.asarray(pairs)
    if same is None or index.ndim != 2 or index.shape[1] != 2:
        raise InputError(
            "judgements must be a Pairs, a data frame with columns left, right, same, "
            f"or a tuple ((M, 2) indices, (M,) answers), not {type(pairs).__name__}."
        )
    return Pairs(index[:, 0], index[:, 1], same, n_items=n_items)


def _from_frame(frame: Any, n_items: int | None) -> Pairs:
    columns = [str(name) for name in frame.columns]
    if missing := [name for name in ("left", "right", "same") if name not in columns]:
        raise InputError(
            f"the judgements lack the column {', '.join(missing)}; "
            f"the columns there are {', '.join(columns)}."
        )
    given = {
        name: np.asarray(frame[name])
        for name in ("left", "right", "same", "annotator", "weight")
        if name in columns
    }
    return Pairs(**given, n_items=n_items)


def _refuse_self_pairs(left: IndexArray, right: IndexArray, answered: BoolArray) -> None:
    loop = (left == right) & answered
    if loop.any():
        m = int(np.argmax(loop))
        raise RowError(
            m,
            f"item {left[m]} is compared with itself; remove such rows "
            f"({int(np.count_nonzero(loop))} of {len(left)}).",
        )
