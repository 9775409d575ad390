"""What a file calls its items: never another item, never a position in disguise."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.formats import read_links, read_pairs
from likewise.pairs.formats.shortening import match_ids


def table(path: Path, *rows: tuple[Any, Any, Any]) -> Path:
    path.write_text("left,right,same\n" + "".join(f"{a},{b},{s}\n" for a, b, s in rows))
    return path


def names(pairs: Pairs) -> list[tuple[str, str]]:
    assert pairs.item_ids is not None
    left, right = pairs.item_ids[pairs.left], pairs.item_ids[pairs.right]
    return list(zip(left.tolist(), right.tolist(), strict=True))


class TestWithItemIds:
    PETS = ("pets/cat.jpg", "pets/dog.png", "wild/wolf.jpg")

    def test_one_unknown_id_is_an_error_and_turns_none_into_a_position(
        self, tmp_path: Path
    ) -> None:
        ids = [str(k) for k in range(100, 120)]
        path = table(tmp_path / "p.csv", *((ids[k], ids[k + 1], 1) for k in range(19)))
        assert read_pairs(path, item_ids=ids).left.tolist() == list(range(19))
        with path.open("a") as file:
            file.write("100,7,0\n")
        with pytest.raises(InputError, match=r"line 21: right is '7', which is none of the 20 it"):
            read_pairs(path, item_ids=ids)

    def test_judgements_of_items_that_are_gone_are_left_out_counted_and_told_of(
        self, tmp_path: Path
    ) -> None:
        rows = [("a", "b", 1), ("gone", "c", 1), ("b", "c", 0), ("c", "off", ""), ("c", "a", 0)]
        path = table(tmp_path / "p.csv", *rows)
        with pytest.warns(UserWarning, match="2 of 5 judgements .* 2 items that are not there, su"):
            pairs = read_pairs(path, item_ids=["a", "b", "c"], may_lack=True)
        assert names(pairs) == [("a", "b"), ("b", "c"), ("c", "a")]
        assert pairs.same.tolist() == [True, False, False]
        assert (pairs.unknown, pairs.dropped) == (2, 0)
        assert "2 of items that are not there left out" in repr(pairs.describe())
        assert Pairs.concatenate([pairs, pairs]).unknown == 4
        assert pairs.select([True, False, False]).unknown == 0

    def test_where_most_are_gone_or_one_is_in_doubt_nothing_is_left_out(
        self, tmp_path: Path
    ) -> None:
        path = table(tmp_path / "p.csv", ("x", "y", 1), ("y", "z", 0), ("a", "b", 1))
        with pytest.raises(InputError, match="line 2: left is 'x', which is none of the 3 items"):
            read_pairs(path, item_ids=["a", "b", "c"], may_lack=True)
        path = table(tmp_path / "q.csv", ("1/a", "1/b", 1), ("1/b", "2/b", 0), ("a", "1/b", 1))
        with pytest.raises(InputError, match="line 4: left is 'a', which may be '1/a' or '2/a'"):
            read_pairs(path, item_ids=["1/a", "2/a", "1/b", "2/b"], may_lack=True)

    def test_numbers_are_no_positions_and_leading_zeros_are_part_of_an_id(
        self, tmp_path: Path
    ) -> None:
        padded = [f"{k:03}" for k in range(1, 6)]
        path = table(tmp_path / "p.csv", (1, 2, 1), (2, 3, 0))
        with pytest.raises(InputError, match=r"left is '1', which is none .*called '001'"):
            read_pairs(path, item_ids=padded)
        with pytest.raises(InputError, match=r"left is '1', which is none .*'pets/cat\.jpg'"):
            read_pairs(path, item_ids=self.PETS)
        pairs = read_pairs(table(tmp_path / "q.csv", ("007", 1, 1)), item_ids=["1", "007"])
        assert (pairs.left[0], pairs.right[0]) == (1, 0)

    @pytest.mark.parametrize(
        ("id", "item"),
        [
            ("3.1", "3.9"),
            ("3", "3.1"),
            ("ann@x.com", "ann@x.org"),
            ("http://a.org/1", "http://b.org/1"),
            ("cats/01.jpg", "dogs/01.jpg"),
            ("cat.jpg", "cat.png"),
            ("/a/cats/01.jpg", "dogs/01.jpg"),
            ("Cat", "cat"),
            (" cat", "cat"),
            ("1f2e3d4c-cats", "1f2e3d4c-dogs"),
        ],
    )
    def test_ids_that_differ_are_not_matched(self, tmp_path: Path, id: str, item: str) -> None:
        path = table(tmp_path / "p.csv", ("x", id, 1))
        with pytest.raises(InputError, match="which is none of the 2 items"):
            read_pairs(path, item_ids=["x", item])

    @pytest.mark.parametrize("cat", ["cat.jpg", "cat", "C:\\mine\\pets\\cat.jpg", "./pets/cat"])
    def test_what_is_shortened_without_doubt_is_counted_and_said(
        self, tmp_path: Path, cat: str
    ) -> None:
        path = table(tmp_path / "p.csv", ("wild/wolf.jpg", cat, 1), ("wild/wolf.jpg", cat, 1))
        with pytest.warns(UserWarning, match="1 of 2 ids are not the items' own") as caught:
            pairs = read_pairs(path, item_ids=self.PETS)
        assert f"such as {cat!r} to 'pets/cat.jpg'" in str(caught[0].message)
        assert (pairs.left[0], pairs.right[0], pairs.n_items) == (2, 0, 3)
        assert pairs.shortened == pairs.describe().shortened == 1
        assert "1 ids matched by a shorter form" in repr(pairs.describe())

    def test_whole_ids_are_matched_in_silence(self, tmp_path: Path) -> None:
        path = table(tmp_path / "p.csv", ("wild/wolf.jpg", "pets/cat.jpg", 1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_pairs(path, item_ids=self.PETS).shortened == 0

    def test_two_items_of_one_short_form(self, tmp_path: Path) -> None:
        path = table(tmp_path / "p.csv", ("cat", "b/cat.jpg", 1))
        message = r"p\.csv, line 2: left is 'cat', which may be 'a/cat\.jpg' or 'b/cat\.jpg'; write"
        with pytest.raises(InputError, match=message):
            read_pairs(path, item_ids=["a/cat.jpg", "b/cat.jpg"])

    @pytest.mark.parametrize("rival", ["dogs/01.jpg", "01.jpg", "01"])
    def test_two_ids_of_one_item(self, tmp_path: Path, rival: str) -> None:
        path = table(tmp_path / "p.csv", ("x", "cats/01.jpg", 1), ("x", rival, 0))
        message = rf"right is 'cats/01.jpg', but '{rival}' would then be the same item, '01\.jpg'"
        with pytest.raises(InputError, match=message):
            read_pairs(path, item_ids=["x", "01.jpg"])

    def test_number_ids(self, tmp_path: Path) -> None:
        for kind in (pa.int64(), pa.float64(), pa.string()):
            columns = {"left": pa.array([70]).cast(kind), "right": pa.array([50]), "same": [1]}
            pq.write_table(pa.table(columns), tmp_path / "p.parquet")
            pairs = read_pairs(tmp_path / "p.parquet", item_ids=np.array([50, 60, 70]))
            assert (pairs.left[0], pairs.right[0], pairs.n_items) == (2, 0, 3)

    def test_the_first_unknown_name_is_told_with_its_line(self, tmp_path: Path) -> None:
        path = tmp_path / "p.csv"
        path.write_text("left,right,same\ncat,dog,1\n\ndog,eel,0\nfox,cat,0\n")
        with pytest.raises(InputError, match=r"p\.csv, line 4: right is 'eel'.* 3 items"):
            read_pairs(path, item_ids=self.PETS)

    def test_repeated_item_ids(self, tmp_path: Path) -> None:
        path = table(tmp_path / "p.csv", ("a", "b", 1))
        with pytest.raises(InputError, match="item_ids must be distinct, but 'a'"):
            read_pairs(path, item_ids=["a", "b", "a"])


path_texts = st.lists(st.sampled_from(["a", "b", "1", "2"]), min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from(["", ".jpg", ".png", ".1"]).map(lambda end: "/".join(parts) + end)
)


@given(
    words=st.lists(path_texts, min_size=1, max_size=6, unique=True),
    items=st.lists(path_texts, min_size=1, max_size=6, unique=True),
)
def test_no_two_ids_are_ever_one_item_and_whole_ids_are_always_found(
    words: list[str], items: list[str]
) -> None:
    found = match_ids(np.array(words), np.array(items))
    matched = found.position[found.position >= 0].tolist()
    assert len(matched) == len(set(matched))
    whole = [word in items for word in words]
    assert [items[k] for k in found.position[whole]] == [w for w in words if w in items]
    assert found.shortened == len(matched) - sum(whole)
    assert set(found.doubt) <= {w for w, k in zip(words, found.position, strict=True) if k < 0}


class TestWithoutItemIds:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("008", "009"),
            ("01:30", "02:00"),
            ("2024-01-05", "2024-02-01"),
            ("2024-01-05 10:00", "2024-02-01 11:30"),
            ("1e3", "2e3"),
            ("0.50", "0.75"),
            ("true", "false"),
        ],
    )
    def test_an_item_is_one_whatever_else_its_column_holds(
        self, tmp_path: Path, one: str, other: str
    ) -> None:
        """Guessed column by column, 008 was 8 on the left and 008 on the right."""
        pairs = read_pairs(table(tmp_path / "p.csv", (one, "a", 1), (other, one, 0)))
        assert names(pairs) == [(one, "a"), (other, one)]
        assert pairs.n_items == 3

    def test_padded_numbers_are_names(self, tmp_path: Path) -> None:
        pairs = read_pairs(table(tmp_path / "p.csv", ("001", "002", 1), ("002", "010", 0)))
        assert names(pairs) == [("001", "002"), ("002", "010")]
        links = tmp_path / "must.txt"
        links.write_text("001 002\n002 010\n")
        assert names(read_links(links)) == [("001", "002"), ("002", "010")]
        message = "right is '01', not a whole number like the others; if these are the items' names"
        with pytest.raises(InputError, match=message):
            read_pairs(table(tmp_path / "q.csv", (0, 1, 1), (1, 2, 0), (0, "01", 1)))

    @pytest.mark.parametrize("rows", [[(0, 1, 1), (2, 1, 0)], [("0.0", 1, 1), ("2.0", 1, 0)]])
    def test_plain_numbers_are_positions(self, tmp_path: Path, rows: list[Any]) -> None:
        pairs = read_pairs(table(tmp_path / "p.csv", *rows))
        assert pairs.item_ids is None
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 2], [1, 1])
        assert pairs.left.dtype == np.int32

    def test_typed_columns_of_two_kinds(self, tmp_path: Path) -> None:
        """Numbers on one side and text on the other: text, unless the text is numbers too."""
        path = tmp_path / "p.parquet"
        pq.write_table(pa.table({"left": [8, 9], "right": ["008", "8"], "same": [1, 0]}), path)
        assert names(read_pairs(path)) == [("8", "008"), ("9", "8")]
        pq.write_table(pa.table({"left": [8, 9], "right": ["7", "8"], "same": [1, 0]}), path)
        pairs = read_pairs(path)
        assert (pairs.item_ids, pairs.right.tolist()) == (None, [7, 8])
        records = [{"left": 8, "right": "a", "same": 1}, {"left": "b", "right": 8, "same": 0}]
        (tmp_path / "p.json").write_text(json.dumps(records))
        assert names(read_pairs(tmp_path / "p.json")) == [("8", "a"), ("b", "8")]

    def test_names_of_other_items_than_there_are(self, tmp_path: Path) -> None:
        """Numbered in sorted order they would be others, as soon as one is missing."""
        path = table(tmp_path / "p.csv", ("000", "001", 1), ("001", "003", 0))
        message = r"name 3 items, such as '000', but there are 4 items that have no names; give"
        with pytest.raises(InputError, match=message):
            read_pairs(path, n_items=4)
        assert read_pairs(path, n_items=3).right.tolist() == [1, 2]


@pytest.mark.parametrize("rows", [[(-3, 10, 1)], [(0, -1, 1)]])
def test_negative_numbers_are_whole_and_refused_as_such(tmp_path: Path, rows: list[Any]) -> None:
    with pytest.raises(InputError, match="item indices start at 0"):
        read_pairs(table(tmp_path / "p.csv", *rows))


def test_zero_and_powers_of_ten_are_positions(tmp_path: Path) -> None:
    pairs = read_pairs(table(tmp_path / "p.csv", (0, 10, 1), (100, 1, 0), (9, 99, 1)))
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 100, 9], [10, 1, 99])
    (tmp_path / "p.json").write_text('[{"left": "0", "right": "2.0", "same": 1}]')
    assert read_pairs(tmp_path / "p.json").right.tolist() == [2]


def test_blanks_after_the_separators_are_part_of_no_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left; right; same; annotator\na; b; yes; ann\nb; c ; no;ann\n 10;a;no; bob\n")
    pairs = Pairs.read(path)
    assert pairs.item_ids is not None
    assert pairs.item_ids.tolist() == ["10", "a", "b", "c"]
    assert pairs.annotator_names is not None
    assert pairs.annotator_names.tolist() == ["ann", "bob"]
    known = Pairs.read(path, item_ids=["c", "b", "a", "10"])
    assert known.right.tolist() == [1, 0, 2]


def test_a_blank_may_be_part_of_an_items_own_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,same\n x,x,0\nx,y,1\n")
    pairs = Pairs.read(path, item_ids=["x", " x", "y"])
    assert pairs.left.tolist() == [1, 0]
