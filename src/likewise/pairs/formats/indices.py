"""Columns of ids that are positions: plain whole numbers, all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.io.dictionary import NumberBuilder
from likewise.pairs.formats.ids import WHOLE

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 40  # characters of a whole number, as a table of floats writes it
_POWERS = 10 ** np.arange(1, 19)


class NotPlain(Exception):
    """A column of ids holds something else than plain whole numbers."""


class IndexBuilder(NumberBuilder):
    """Collects ids that are plain whole numbers; raises `NotPlain` at the first other one."""

    def append(self, column: pa.Array) -> None:
        """Add the column of one record batch: numbers, or text as numbers are written."""
        import pyarrow as pa

        kind = column.type
        if pa.types.is_dictionary(kind):
            _refuse_long(column.dictionary)
            column, kind = column.dictionary_decode(), kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = _parsed(column)
        elif not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
        ):
            raise NotPlain
        super().append(column)


def _refuse_long(words: pa.Array) -> None:
    """A text that is too long for a number is not copied into every row first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(words.type)
    if is_text and (pc.max(pc.binary_length(words)).as_py() or 0) > LONGEST:
        raise NotPlain


def _parsed(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise NotPlain
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return _parsed_floats(column)
    written = pc.binary_length(column).to_numpy(zero_copy_only=False)
    # As long as the number is: no leading zero was lost.
    if not np.array_equal(written, _digits(numbers.to_numpy(zero_copy_only=False))):
        raise NotPlain
    return numbers


def _parsed_floats(column: pa.Array) -> pa.Array:
    """Whole numbers as a table of floats writes them, 3.0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.all(pc.match_substring_regex(column, f"^{WHOLE}$"), min_count=0).as_py():
        raise NotPlain
    try:
        return pc.replace_substring_regex(column, r"\.0+$", "").cast(pa.int64())
    except pa.ArrowInvalid:  # more digits than that
        raise NotPlain from None


def _digits(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) characters that each whole number takes, its sign included."""
    negative = numbers < 0
    return np.searchsorted(_POWERS, np.where(negative, -numbers, numbers), "right") + 1 + negative
