"""From what a file calls its items to their positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded
from likewise.pairs.formats.ids import resolve_ids


class TestResolving:
    def test_numbers_are_positions_unless_named(self) -> None:
        left, right = np.array([3, 10]), np.array([1, 3])
        plain = resolve_ids(left, right, None)
        assert (plain.left is left, plain.right is right, plain.names) == (True, True, None)
        named = resolve_ids(left, right, None, named=True)
        assert named.names.tolist() == ["1", "10", "3"]
        assert (named.left.tolist(), named.right.tolist()) == ([2, 1], [0, 2])
        words = Coded.from_list(["3", "10"]), Coded.from_list(["1", "3.0"])
        found = resolve_ids(*words, None)
        assert (found.left.tolist(), found.right.tolist(), found.names) == ([3, 10], [1, 3], None)

    def test_words_are_numbered_in_their_order(self) -> None:
        found = resolve_ids(Coded.from_list(["c", "a"]), Coded.from_list(["b", "c"]), None)
        assert found.names.tolist() == ["a", "b", "c"]
        assert (found.left.tolist(), found.right.tolist()) == ([2, 0], [1, 2])

    def test_numbers_beyond_any_position_are_names(self) -> None:
        for digits, is_name in ((18, False), (19, True)):
            word = "1" * digits
            found = resolve_ids(Coded.from_list([word]), Coded.from_list(["2"]), None)
            assert (found.names is not None) == is_name

    @pytest.mark.parametrize(
        ("left", "right", "row", "words"),
        [
            (
                ["1", "x", "3"],
                ["4", "5", "6"],
                1,
                "left is 'x', not a whole number like the others",
            ),
            (
                ["1", "2", "3"],
                ["4", "5", "y"],
                2,
                "right is 'y', not a whole number like the others",
            ),
            (["1", None, "3"], ["4", "5", "6"], 1, "left is blank, but must name an item"),
            (["1", "2"], ["", "5"], 0, "right is blank"),
        ],
    )
    def test_slips_name_their_row(self, left: Any, right: Any, row: int, words: str) -> None:
        with pytest.raises(RowError, match=words) as caught:
            resolve_ids(Coded.from_list(left), Coded.from_list(right), None)
        assert caught.value.row == row

    def test_half_of_each_are_names(self) -> None:
        found = resolve_ids(Coded.from_list(["1", "x"]), Coded.from_list(["y", "2"]), None)
        assert found.names.tolist() == ["1", "2", "x", "y"]

    @pytest.mark.parametrize(
        ("left", "right", "row", "words"),
        [
            (
                ["a", "z"],
                ["b", "a"],
                1,
                r"^judgement 1: left is 'z', which is none of the 2 items \(c",
            ),
            (["a", "y"], ["z", "a"], 0, r"right is 'z', .* \(called 'a' and the like\)"),
        ],
    )
    def test_the_first_unknown_id(self, left: Any, right: Any, row: int, words: str) -> None:
        with pytest.raises(RowError, match=words) as caught:
            resolve_ids(Coded.from_list(left), Coded.from_list(right), ["a", "b"])
        assert caught.value.row == row

    def test_items_without_names_or_of_one_name(self) -> None:
        column = Coded.from_list(["a"])
        with pytest.raises(RowError, match=r"left is 'a', which is none of the 0 items\.$"):
            resolve_ids(column, column, [])
        with pytest.raises(InputError, match=r"^item_ids must be distinct, but 'b' stands for two"):
            resolve_ids(column, column, ["a", "b", "b"])
        with pytest.raises(InputError, match=r"^item_ids must be one name per item, .*\(1, 1\)"):
            resolve_ids(column, column, [["a"]])

    def test_as_many_as_half_may_be_gone(self) -> None:
        left, right = Coded.from_list(["a", "z", "a", "z"]), Coded.from_list(["b", "a", "b", "b"])
        with pytest.warns(UserWarning, match=r"^2 of 4 judgements .* name 1 items .* such as 'z'"):
            found = resolve_ids(left, right, ["a", "b"], may_lack=True)
        assert found.unknown.tolist() == [False, True, False, True]
        assert (found.left.tolist(), found.right.tolist()) == ([0, 0, 0, 0], [1, 0, 1, 0])
        with pytest.raises(RowError, match="left is 'z'"):
            resolve_ids(left, Coded.from_list(["b", "a", "z", "b"]), ["a", "b"], may_lack=True)

    def test_long_ids_beside_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.00001")
        left, right = Coded.from_list(["x" * 50]), Coded.from_list([str(k) for k in range(30)])
        with pytest.raises(
            InputError, match=r"^comparing 31 ids of up to 50 characters would take"
        ):
            resolve_ids(left, right, None)
        with pytest.raises(InputError, match=r"^comparing 33 ids of up to 50 characters"):
            resolve_ids(left, right, ["a", "b"])
