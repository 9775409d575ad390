"""Columns of text as small numbers: the same as a list of texts, in less room."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import RowError
from likewise.io.dictionary import MISSING, Coded, CodedBuilder, NumberBuilder, _narrow

TEXTS = st.lists(st.none() | st.sampled_from(["", "a", "b", "10", "9", "ä", "longer"]), max_size=12)


def texts(column: Coded) -> list[str | None]:
    return [None if code == MISSING else str(column.names[code]) for code in column.codes]


def blank_as_none(values: list[str | None]) -> list[str | None]:
    return [value or None for value in values]


def check(column: Coded) -> None:
    assert column.codes.dtype == np.int32
    assert column.names.tolist() == sorted(set(column.names.tolist()))
    assert set(column.codes.tolist()) - {MISSING} == set(range(len(column.names)))


@given(TEXTS)
def test_a_list_of_texts(values: list[str | None]) -> None:
    column = Coded.from_list(values)
    check(column)
    assert len(column) == len(values)
    assert texts(column) == blank_as_none(values)
    filled = column.with_blank()
    assert filled.codes.dtype == np.int32
    assert texts(filled) == [value or "" for value in values]
    assert texts(filled.without_blank()) == texts(column)


def test_values_that_are_no_text_are_written_out() -> None:
    assert texts(Coded.from_list([3, None, True, 2.5])) == ["3", None, "True", "2.5"]


@given(st.lists(st.integers(-(2**40), 2**40) | st.integers(-12, 12), max_size=12))
def test_whole_numbers_as_text(values: list[int]) -> None:
    column = Coded.from_numbers(np.array(values, np.int64))
    check(column)
    assert texts(column) == [str(value) for value in values]


@given(st.lists(TEXTS, max_size=4), st.booleans())
def test_a_column_collected_from_batches(batches: list[list[str | None]], coded: bool) -> None:
    builder = CodedBuilder()
    for batch in batches:
        array = pa.array(batch, pa.string())
        builder.append(array.dictionary_encode() if coded else array)
    column = builder.finish()
    check(column)
    assert texts(column) == blank_as_none([value for batch in batches for value in batch])
    assert len(builder.finish()) == 0


def test_numbers_and_truth_become_text() -> None:
    for values, expected in (
        ([10, 9, None], ["10", "9", None]),
        ([True, False], ["true", "false"]),
    ):
        builder = CodedBuilder()
        builder.append(pa.array(values))
        assert texts(builder.finish()) == expected


@pytest.mark.parametrize("code", [2, 3, -2])
def test_a_code_without_a_text_names_its_row(code: int) -> None:
    builder = CodedBuilder()
    builder.append(pa.array(["a", "b"]))
    builder.append(pa.array(["a"]))
    damaged = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, code], pa.int32()), pa.array(["x", "y"]), safe=False
    )
    with pytest.raises(RowError, match="damaged: it refers to a text that it lacks") as caught:
        builder.append(damaged)
    assert caught.value.row == 5


def test_a_required_value_that_is_blank_names_its_row() -> None:
    Coded.from_list(["a", "b"]).refuse_missing("left")
    with pytest.raises(RowError, match="left is blank, but must name an item") as caught:
        Coded.from_list(["a", "", None]).refuse_missing("left")
    assert caught.value.row == 1


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, -(2**31), 2**31 - 1], np.int32),
        ([0, 2**31], np.int64),
        ([0, -(2**31) - 1], np.int64),
        ([0.5, 2.0], np.float64),
        (["1.5", "-2"], np.float64),
        ([True, False], np.float64),
    ],
)
def test_numbers_take_four_bytes_where_they_can(values: list[object], dtype: type) -> None:
    builder = NumberBuilder("same")
    for value in values:
        builder.append(pa.array([value]))
    builder.append(pa.array(values)[:0])
    found = builder.finish()
    assert found.dtype == dtype
    assert found.tolist() == [float(value) for value in values]
    assert builder.finish().dtype == np.int32
    assert len(builder.finish()) == 0


def test_short_fractions_are_widened() -> None:
    builder = NumberBuilder("weight")
    builder.append(pa.array([0.5], pa.float32()))
    assert builder.finish().dtype == np.float64


@pytest.mark.parametrize("bad", range(5))
def test_the_first_that_is_no_number_is_named(bad: int) -> None:
    values = [*map(str, range(bad)), "x", *["y"] * (4 - bad)]
    builder = NumberBuilder("weight")
    builder.append(pa.array([1.5, 2.5, 3.5]))
    with pytest.raises(RowError, match="weight is 'x', which is not a number") as caught:
        builder.append(pa.array(values))
    assert caught.value.row == 3 + bad


def test_a_number_that_is_blank_names_its_row() -> None:
    builder = NumberBuilder("same")
    builder.append(pa.array([1, 0]))
    builder.append(pa.array([1]))
    with pytest.raises(RowError, match="same is blank") as caught:
        builder.append(pa.array([1, None, None]))
    assert caught.value.row == 4


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_numbers_of_the_right_width_are_not_copied(dtype: type) -> None:
    values = np.array([2**40 if dtype == np.int64 else 7], dtype)
    assert _narrow(values) is values
