"""The columns of judgements: what is taken, at its boundaries, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.errors import InputError, RowError
from likewise.pairs.columns import (
    MAX_ITEMS,
    annotator_codes,
    as_indices,
    as_item_ids,
    as_weights,
    check_chosen,
    check_lengths,
    check_range,
    for_torch,
    index_dtype,
    read_only,
    refuse_no_weight,
    refuse_self_pairs,
)

NAN = float("nan")


class TestIndices:
    @pytest.mark.parametrize(
        ("given", "dtype"),
        [
            ([0, 5], np.int64),
            (np.array([0, 5], np.uint8), np.uint8),
            ([0.0, 5.0], np.int64),
            (np.array([0, 5], object), np.int64),
            (np.array([0.0, 5], object), np.int64),
        ],
    )
    def test_whole_numbers_of_any_type(self, given: Any, dtype: type) -> None:
        found = as_indices(given, "left")
        assert found.tolist() == [0, 5]
        assert found.dtype == dtype

    def test_none_at_all(self) -> None:
        for empty in ([], np.array([], object)):
            assert as_indices(empty, "left").dtype == np.int32

    @pytest.mark.parametrize(
        ("given", "row", "words"),
        [
            ([1.0, 0.5, 0.25], 1, "left is 0.5, which is not the index"),
            ([1.0, 2.0, np.inf], 2, "left is inf, which is not the index"),
            ([1.0, 2.0**63, 2.0**64], 1, "left is 9223372036854775808, too large for an item's"),
            ([1.0, -(2.0**63)], 1, "left is -9223372036854775808, too large"),
        ],
    )
    def test_other_numbers_name_their_row(self, given: list[float], row: int, words: str) -> None:
        with pytest.raises(RowError, match=words) as caught:
            as_indices(given, "left")
        assert caught.value.row == row

    def test_text_and_tables_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"^right must hold whole numbers .* holds .*'cat'"):
            as_indices(np.array(["cat", 1], object), "right")
        with pytest.raises(InputError, match=r"but holds None; .* item_ids="):
            as_indices([None, 1], "right")
        with pytest.raises(InputError, match=r"right must be one index .* shape \(1, 2\)"):
            as_indices([[1, 2]], "right")
        with pytest.raises(InputError, match=r"whole numbers"):
            as_indices(np.array([(1, 2), (3, 4)], "i4,i4").astype(object), "right")


class TestRange:
    def test_the_number_of_items(self) -> None:
        left, right = np.array([0, 7]), np.array([3, 2])
        assert check_range(left, right, None) == check_range(right, left, None) == 8
        assert check_range(left, right, 8) == 8
        assert check_range(left, right, 99) == 99
        none = np.array([], int)
        assert check_range(none, none, None) == 0
        assert check_range(none, none, 5) == 5

    @pytest.mark.parametrize(
        ("left", "right", "n_items", "row", "words"),
        [
            ([0, -2], [1, -1], None, 1, "left is -2, but item indices start at 0"),
            ([0, 1], [-1, 2], None, 0, "right is -1, but item"),
            ([0, 8, 9], [1, 1, 1], 8, 1, r"left is 8, but there are only 8 items \(0 to 7\)"),
            ([0, 1], [1, 9], 9, 1, "right is 9, but there are only 9 items"),
            ([0], [1], 0, 0, "left is 0, but there are no items"),
            ([0], [MAX_ITEMS], None, 0, "right is 2147483647, too large for an item's position"),
        ],
    )
    def test_what_lies_outside_names_its_row(
        self, left: list[int], right: list[int], n_items: int | None, row: int, words: str
    ) -> None:
        with pytest.raises(RowError, match=words) as caught:
            check_range(np.array(left), np.array(right), n_items)
        assert caught.value.row == row

    def test_an_item_that_makes_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.001")
        left, right = np.array([0]), np.array([41_666])
        with pytest.raises(InputError, match=r"numbered 41,667, which makes 41,668 items, would"):
            check_range(left, right + 1, None)
        assert check_range(left, right, None) == 41_667
        assert check_range(left, right + 1, 10**6) == 10**6

    def test_four_bytes_where_they_do(self) -> None:
        assert index_dtype(MAX_ITEMS) is np.int32
        assert index_dtype(MAX_ITEMS + 1) is np.int64


class TestPeople:
    def test_nobody(self) -> None:
        assert annotator_codes(None) == (None, None)
        assert annotator_codes(None, ["a"]) == (None, None)

    @pytest.mark.parametrize(
        ("given", "names"),
        [
            (["b", "a", "b"], ["b", "a", "b"]),
            ([10, 9, 10], ["10", "9", "10"]),
            (np.array(["b", None, NAN, 7], object), ["b", "", "", "7"]),
        ],
    )
    def test_names_are_sorted_once(self, given: Any, names: list[str]) -> None:
        codes, found = annotator_codes(given)
        assert codes is not None
        assert found is not None
        assert codes.dtype == np.int32
        assert found.dtype.kind == "U"
        assert found[codes].tolist() == names
        assert len(set(found.tolist())) == len(found) == len(set(names))

    def test_codes_into_names(self) -> None:
        codes, names = annotator_codes([1, 0, 2], ["x", "y", "x"])
        assert codes is not None
        assert names is not None
        assert (codes.tolist(), codes.dtype, names.tolist()) == (
            [1, 0, 2],
            np.int32,
            ["x", "y", "x"],
        )
        assert annotator_codes([], ["x"])[0].tolist() == []
        for wrong in ([0, 3], [-1, 0], [0.0, 1.0]):
            with pytest.raises(InputError, match="must hold codes below 3, the number of names"):
                annotator_codes(wrong, ["x", "y", "z"])


class TestWeights:
    def test_numbers_as_four_bytes(self) -> None:
        found = as_weights([0, 2.5])
        assert (found.tolist(), found.dtype) == ([0, 2.5], np.float32)

    @pytest.mark.parametrize("bad", [-0.5, NAN, np.inf])
    def test_others_name_their_row(self, bad: float) -> None:
        with pytest.raises(RowError, match=rf"weight is {bad}, but .* at least 0") as caught:
            as_weights([0, bad, bad])
        assert caught.value.row == 1

    def test_what_is_no_column_of_numbers(self) -> None:
        for wrong in (["heavy"], [None, {}]):
            with pytest.raises(InputError, match=r"^weight must hold numbers, but some of it"):
                as_weights(wrong)
        with pytest.raises(InputError, match=r"one number per judgement, but has shape \(\)"):
            as_weights(1.0)

    def test_some_judgement_must_count(self) -> None:
        refuse_no_weight(None)
        refuse_no_weight(np.array([], np.float32))
        refuse_no_weight(np.array([0, 0.5], np.float32))
        with pytest.raises(InputError, match=r"^every judgement has weight 0, so that none"):
            refuse_no_weight(np.zeros(2, np.float32))


def test_names_of_items() -> None:
    assert as_item_ids([3, 4], 2).tolist() == as_item_ids(["3", "4"], None).tolist() == ["3", "4"]
    with pytest.raises(InputError, match=r"must be 3 names, one per item, but has shape \(2,\)"):
        as_item_ids(["a", "b"], 3)
    for n_items in (None, 1):
        with pytest.raises(InputError, match=r"one .*per item, but has shape \(1, 1\)"):
            as_item_ids([["a"]], n_items)


def test_columns_of_unequal_length() -> None:
    three, two = np.zeros(3), np.zeros(2)
    check_lengths({"left": three, "right": three, "weight": None})
    with pytest.raises(InputError, match=r"equally long, but have left 3, same 2\.$"):
        check_lengths({"left": three, "weight": None, "same": two})


def test_an_item_compared_with_itself() -> None:
    left, right = np.array([0, 4, 2, 3]), np.array([1, 4, 2, 3])
    refuse_self_pairs(left, right, np.array([True, False, False, False]))
    words = r"item 2 is compared with itself; remove such rows \(2 of 4\)"
    with pytest.raises(RowError, match=words) as caught:
        refuse_self_pairs(left, right, np.array([True, False, True, True]))
    assert caught.value.row == 2


class TestChosen:
    def test_indices_and_masks(self) -> None:
        assert check_chosen([2, 0], 3).tolist() == [2, 0]
        assert check_chosen(np.array([True, False, True]), 3).tolist() == [0, 2]
        assert check_chosen([], 3).dtype == np.int64

    @pytest.mark.parametrize(
        ("items", "words"),
        [
            ([True, False], "a mask of items must have 3 entries, but has 2"),
            ([[0, 1]], "list of indices, or a mask"),
            ([0.0, 1.0], "list of indices, or a mask"),
            ([0, 3], "indices below 3"),
            ([-1, 0], "indices below 3"),
            ([1, 0, 1], "must not name an item twice"),
        ],
    )
    def test_others_are_refused(self, items: list[Any], words: str) -> None:
        with pytest.raises(InputError, match=words):
            check_chosen(items, 3)


def test_memory_is_shared_with_torch_where_it_may_be_written(tmp_path: Path) -> None:
    array = np.arange(3)
    view = read_only(array)
    assert not view.flags.writeable
    assert array.flags.writeable
    given = for_torch(view)
    assert given.flags.writeable
    assert np.shares_memory(given, array)
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    copied = for_torch(mapped)
    assert copied.flags.writeable
    assert copied.tolist() == [0, 1, 2]
    assert not np.shares_memory(copied, mapped)
