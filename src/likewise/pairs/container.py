"""Judgements: who was said to be the same as whom.

Items are stored once, elsewhere; a judgement is two indices into them and an answer. A complete
set of judgements (every pair of N items) made from perceived classes is kept as a partition of the
items, never as a list: all pairs of 60,000 items are 1.8 billion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.pairs.answers import parse_answers
from likewise.pairs.columns import (
    BoolArray,
    Column,
    IndexArray,
    annotator_codes,
    as_indices,
    as_item_ids,
    as_weights,
    check_chosen,
    check_lengths,
    check_range,
    index_dtype,
    refuse_no_weight,
    refuse_self_pairs,
)
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.sampling import random_pairs
from likewise.pairs.table import JudgementTable, taken

if TYPE_CHECKING:
    from likewise.pairs.description import Description

NOTHING_LEFT_OUT = {"dropped": 0, "shortened": 0, "unknown": 0}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Pairs(JudgementTable):
    """Same-or-different judgements about items, validated once and never changed after.

    The arrays are read-only views of what was handed in, where that had the right type: a hundred
    million judgements are not copied.

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
        How much each judgement counts; one of weight 0 is no judgement (`likewise.pairs.graph`).
    n_items : int, optional
        The number of items; by default as many as ``item_ids``, or one more than the largest index.
    annotator_names : (A,) strings, optional
        The names behind annotator codes.
    item_ids : (N,) strings, optional
        The items' own names.
    """

    n_items: int
    """Items there are, judged or not."""
    annotator_names: NDArray[np.str_] | None
    """(A,) the names behind ``annotator``."""
    item_ids: NDArray[np.str_] | None
    """(N,) the items' own names, where they are known; "" for one that came without."""
    dropped: int
    """Rows without an answer that were left out."""
    shortened: int
    """Ids of a file that were matched to an item's by a shorter form."""
    unknown: int
    """Judgements of a file that were left out, because they name an item that is not there."""

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
        item_ids: ArrayLike | None = None,
    ) -> None:
        answer, answered = parse_answers(same)
        codes, names = annotator_codes(annotator, annotator_names)
        ids = None if item_ids is None else as_item_ids(item_ids, n_items)
        left_, right_ = as_indices(left, "left"), as_indices(right, "right")
        given: dict[str, Column | None] = {
            "left": left_,
            "right": right_,
            "same": answer,
            "annotator": codes,
            "weight": None if weight is None else as_weights(weight),
        }
        check_lengths(given)
        count = check_range(left_, right_, n_items if ids is None else len(ids))
        refuse_self_pairs(left_, right_, answered, ids)
        dropped = int(len(answer) - np.count_nonzero(answered))
        narrow = index_dtype(count)
        given |= {
            "left": left_.astype(narrow, copy=False),
            "right": right_.astype(narrow, copy=False),
        }
        columns = taken(given, answered) if dropped else given
        refuse_no_weight(columns["weight"])
        about = {"n_items": count, "annotator_names": names, "item_ids": ids}
        self._set(columns | about | NOTHING_LEFT_OUT | {"dropped": dropped})

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
        """Read a file of judgements, in any format that `likewise.pairs.formats` knows."""
        from likewise.pairs.formats import read_pairs

        return read_pairs(path, **options)

    # -- looking at them -----------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether every pair of items was judged, consistently, and is kept as a partition."""
        return False

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        people = "" if self.annotator_names is None else f", {len(self.annotator_names)} annotators"
        return f"Pairs({len(self):,} judgements about {self.n_items:,} items{people})"

    @property
    def n_same(self) -> int:
        """The number of "same" answers."""
        return int(np.count_nonzero(self.same))

    def describe(self, n_classes: int | None = None) -> Description:
        """What the judgements say about themselves; see `likewise.pairs.description.describe`."""
        from likewise.pairs.description import describe

        return describe(self, n_classes)

    @cached_property
    def graph(self) -> JudgementGraph:
        """The judgements that count, as a graph."""
        return JudgementGraph.of(self)

    def components(self) -> NDArray[np.int32]:
        """(N,) component of each item in the graph of "same" judgements, numbered from 0."""
        return self.graph.component.copy()

    def is_consistent(self) -> bool:
        """Whether no "different" judgement falls inside a component of "same" judgements.

        True of judgements that come from one perceived class an item, whatever that class.
        """
        return self.graph.contradictions == 0

    # -- cutting them --------------------------------------------------------------------------

    def subset(self, items: ArrayLike) -> Pairs:
        """The judgements among ``items`` only, re-indexed to positions in ``items``."""
        chosen = check_chosen(items, self.n_items)
        position = np.full(self.n_items, -1, index_dtype(self.n_items))
        position[chosen] = np.arange(len(chosen))
        left, right = position[self.left], position[self.right]
        keep = (left >= 0) & (right >= 0)
        columns = taken(self.columns() | {"left": left, "right": right}, keep)
        ids = None if self.item_ids is None else self.item_ids[chosen]
        return self._like(columns, n_items=len(chosen), item_ids=ids, **NOTHING_LEFT_OUT)

    def select(self, mask: ArrayLike) -> Pairs:
        """The judgements where ``mask`` (M,) is true (or at those positions), of the same items."""
        keep = np.asarray(mask)
        if keep.size == 0:
            keep = keep.astype(np.int64)  # an empty list of positions arrives as floats
        return self._like(taken(self.columns(), keep), **NOTHING_LEFT_OUT)

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

    def that_count(self) -> Pairs:
        """Without those of weight 0, which are no judgements; these themselves where all count."""
        if self.weight is None or self.weight.all():
            return self
        return self.select(np.flatnonzero(self.weight))

    # -- the same, but for one thing -----------------------------------------------------------

    def about(self, n_items: int) -> Pairs:
        """The same judgements, of that many items (some of which no judgement may name)."""
        if n_items == self.n_items:
            return self
        if n_items < self.n_items or self.is_complete:
            raise InputError(
                f"the judgements are about {self.n_items} items, but there are {n_items}."
            )
        ids = self.item_ids
        if ids is not None:
            ids = np.concatenate([ids, np.full(n_items - len(ids), "", ids.dtype)])
        return self._like(self.columns(), n_items=n_items, item_ids=ids)

    def with_answers(self, same: BoolArray) -> Pairs:
        """The same questions with other answers (M,)."""
        if len(same) != len(self):
            raise InputError(f"there are {len(self)} judgements, but {len(same)} answers.")
        listed = self.explicit()
        answers = np.asarray(same, dtype=bool)
        return listed._like(listed.columns() | {"same": answers})

    def with_item_ids(self, item_ids: ArrayLike | None) -> Pairs:
        """The same judgements, of items with these names (N,)."""
        ids = None if item_ids is None else as_item_ids(item_ids, self.n_items)
        return self._like(self.columns(), item_ids=ids)

    def explicit(self) -> Pairs:
        """The same judgements as a list."""
        return self

    def write(self, path: str | Path) -> None:
        """Write CSV or Parquet, by the name's ending; see `likewise.pairs.formats.write_pairs`."""
        from likewise.pairs.formats import write_pairs

        write_pairs(self, path)

    def _like(self, columns: Mapping[str, Column | None], **changes: object) -> Pairs:
        """Judgements in checked ``columns``, otherwise like these but for the ``changes``."""
        own = {field.name: getattr(self, field.name) for field in fields(Pairs)}
        made = Pairs.__new__(Pairs)
        made._set(own | dict(columns) | changes)
        return made
