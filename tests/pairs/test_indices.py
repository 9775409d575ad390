"""Columns of plain whole numbers, of any type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.pairs.formats.indices import IndexBuilder, NotPlain, _digits


def built(*batches: pa.Array) -> list[int]:
    builder = IndexBuilder("left")
    for batch in batches:
        builder.append(batch)
    return builder.finish().tolist()


class TestPlainNumbers:
    @pytest.mark.parametrize(
        "column",
        [
            pa.array([0, 12, 7]),
            pa.array([0, 12, 7], pa.uint8()),
            pa.array(["0", "12", "7"]),
            pa.array(["0", "12", "7"], pa.large_string()),
            pa.array(["0", "12", "7"]).dictionary_encode(),
            pa.array(["0.0", "12.00", "7"]),
            pa.array([0.0, 12.0, 7.0]),
        ],
    )
    def test_of_any_type(self, column: pa.Array) -> None:
        assert built(column, column) == [0, 12, 7, 0, 12, 7]

    @pytest.mark.parametrize("word", ["007", "+7", "7.5", "x", "", "-0", "1e3", " 7", "9" * 19])
    def test_others_are_not_plain(self, word: str) -> None:
        for values in (["1", word], [word]):
            with pytest.raises(NotPlain):
                built(pa.array(values))

    def test_long_blank_and_other_columns(self) -> None:
        long = pa.array(["1" + "0" * 40]).dictionary_encode()
        for column in (long, pa.array([None, "1"]), pa.array([True])):
            with pytest.raises(NotPlain):
                built(column)
        assert built(pa.array(["1." + "0" * 38]).dictionary_encode()) == [1]
        assert built(pa.array([], pa.string())) == []

    @given(st.lists(st.integers(-(10**17), 10**17) | st.integers(-1000, 1000)))
    def test_digits_are_those_that_are_written(self, numbers: list[int]) -> None:
        found = _digits(np.array(numbers, np.int64))
        assert found.tolist() == [len(str(number)) for number in numbers]
