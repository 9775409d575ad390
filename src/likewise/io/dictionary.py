"""Columns of text as small numbers: a hundred million answers are a handful of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import RowError
from likewise.io.limits import text_array
from likewise.io.npy import Array

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = -1


@dataclass(frozen=True)
class Coded:
    """A text column (M,): ``names[codes]``."""

    codes: NDArray[np.int32]
    """(M,) which name each row has; `MISSING` where it is blank."""
    names: NDArray[np.str_]
    """(U,) the distinct texts, sorted."""

    @classmethod
    def from_list(cls, values: Sequence[object]) -> Coded:
        """From Python values; None is blank."""
        text = text_array(["" if value is None else str(value) for value in values], "a column")
        names, codes = np.unique(text, return_inverse=True)
        return cls(codes.astype(np.int32), names).without_blank()

    @classmethod
    def from_numbers(cls, values: NDArray[np.integer[Any]]) -> Coded:
        """Whole numbers as their text."""
        numbers, codes = np.unique(values, return_inverse=True)
        names = numbers.astype(np.str_)
        order = np.argsort(names)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        return cls(rank[codes], names[order])

    def __len__(self) -> int:
        return len(self.codes)

    def without_blank(self) -> Coded:
        """The same column with the empty text counted as missing."""
        if not len(self.names) or self.names[0] != "":  # sorted: the empty text comes first
            return self
        codes = np.where(self.codes == MISSING, MISSING, self.codes - 1).astype(np.int32)
        return Coded(codes, self.names[1:])

    def with_blank(self) -> Coded:
        """The same column with missing values as the empty text, so that every code is valid."""
        if not np.any(self.codes == MISSING):
            return self
        names = np.concatenate([np.array([""], np.str_), self.names])
        return Coded(self.codes + np.int32(1), names)

    def refuse_missing(self, name: str) -> None:
        """Say in which row a required value is blank."""
        blank = self.codes == MISSING
        if blank.any():
            raise RowError(int(np.argmax(blank)), f"{name} is blank, but must name an item.")


class CodedBuilder:
    """Collects a text column from Arrow arrays, keeping codes and each distinct text once."""

    def __init__(self) -> None:
        self._codes: list[NDArray[np.int32]] = []
        self._words: list[pa.Array] = []
        self._rows = 0

    def append(self, column: pa.Array) -> None:
        """Add the column of one record batch: text, dictionary-encoded text, numbers, booleans."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        codes = pc.fill_null(column.indices.cast(pa.int32()), MISSING).to_numpy()
        if len(codes) and (codes.max() >= len(column.dictionary) or codes.min() < MISSING):
            bad = (codes >= len(column.dictionary)) | (codes < MISSING)
            row = self._rows + int(np.argmax(bad))
            raise RowError(
                row, "the file is damaged: it refers to a text that it lacks. Write it anew."
            )
        self._rows += len(codes)
        self._codes.append(codes)
        self._words.append(column.dictionary.cast(pa.string()))

    def finish(self) -> Coded:
        """The whole column; the builder is empty afterwards."""
        import pyarrow as pa
        import pyarrow.compute as pc

        every = pa.chunked_array(self._words, type=pa.string())
        names = pc.unique(every).drop_null()
        names = names.take(pc.sort_indices(names))
        rank = pc.fill_null(pc.index_in(every, value_set=names), MISSING).to_numpy()
        starts = np.cumsum([0, *(len(words) for words in self._words)])
        parts: list[NDArray[np.int32]] = []
        while self._codes:
            own = rank[starts[len(parts)] : starts[len(parts) + 1]].astype(np.int32)
            # One entry more, so that a missing value (code -1) finds itself at the end.
            parts.append(np.append(own, np.int32(MISSING))[self._codes.pop(0)])
        self._words.clear()
        codes = np.concatenate(parts) if parts else np.empty(0, np.int32)
        return Coded(codes, text_array(names.to_pylist(), "a column")).without_blank()


class NumberBuilder:
    """Collects a column of numbers from Arrow arrays, in four bytes where the values allow it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts: list[Array] = []
        self._rows = 0

    def append(self, column: pa.Array) -> None:
        """Add the column of one record batch; a null is the row's mistake."""
        if column.null_count:
            row = self._rows + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise RowError(row, f"{self._name} is blank.")
        values = self._numbers(column).to_numpy(zero_copy_only=False)
        self._rows += len(values)
        self._parts.append(_narrow(values))

    def _numbers(self, column: pa.Array) -> pa.Array:
        import pyarrow as pa

        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            return column
        try:
            return column.cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            bad = _first_unread(column)
            problem = f"{self._name} is {column[bad].as_py()!r}, which is not a number."
            raise RowError(self._rows + bad, problem) from None

    def finish(self) -> Array:
        """The whole column; the builder is empty afterwards."""
        parts, self._parts = self._parts, []
        return np.concatenate(parts) if parts else np.empty(0, np.int32)


def _first_unread(column: pa.Array) -> int:
    """The first row that is no number to Arrow; Python's float() takes some that Arrow does not."""
    import pyarrow as pa

    first, end = 0, len(column)  # it is at ``first`` or later, and before ``end``
    while end - first > 1:
        middle = (first + end) // 2
        try:
            column.slice(first, middle - first).cast(pa.float64())
            first = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            end = middle
    return first


def _narrow(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    limits = np.iinfo(np.int32)
    if len(values) and (values.min() < limits.min or values.max() > limits.max):
        return values.astype(np.int64, copy=False)
    return values.astype(np.int32, copy=False)
