"""Lists of links, and questions to ask."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.pairs.formats import read_links
from likewise.pairs.formats.links import read_questions
from pair_files import rows, write

IDS = ["a", "b", "c", "d"]


class TestLinks:
    @pytest.mark.parametrize("mark", [",", ";", "\t", "|", " "])
    @pytest.mark.parametrize("header", ["", "left{0}right\n", "ID1{0}Id2\n", "source{0}to\n"])
    def test_both_lists(self, tmp_path: Path, mark: str, header: str) -> None:
        must = write(tmp_path, (header + "k{0}l\n\nm{0}n\n").format(mark), "must.csv")
        cannot = write(tmp_path, ("\ufeff" + header + "l{0}m\n").format(mark), "cannot.csv")
        expected = [("k", "l", True), ("m", "n", True), ("l", "m", False)]
        assert rows(read_links(must, cannot)) == expected
        assert rows(read_links(cannot=cannot, item_ids=[*"klmn"])) == expected[2:]

    def test_words_above_numbers_are_a_header(self, tmp_path: Path) -> None:
        assert rows(read_links(write(tmp_path, "one,two\n0,1\n2,0\n"), n_items=3)) == [
            ("0", "1", True), ("2", "0", True),
        ]  # fmt: skip
        assert len(read_links(write(tmp_path, "one,two\n"))) == 1
        assert len(read_links(write(tmp_path, "one,two\n0,1\nx,y\n"))) == 3
        with pytest.raises(InputError, match=r"link 0: left is -1, but item indices start at 0"):
            read_links(write(tmp_path, "one,two\n-1,2\n"))
        with pytest.raises(InputError, match=r"x\.csv, link 0"):
            read_links(write(tmp_path, "one,7\n0,1\n2,3\n4,5\n"))
        with pytest.raises(InputError, match=r"link 1: .*only 3 items"):
            read_links(write(tmp_path, "0,1\n2,3\n"), n_items=3)

    def test_words_that_come_again_are_items(self, tmp_path: Path) -> None:
        found = read_links(write(tmp_path, "a,b\nc,a\n"))
        assert rows(found) == [("a", "b", True), ("c", "a", True)]
        assert rows(read_links(write(tmp_path, "a,b\nc,d\n"))) == [("c", "d", True)]

    @pytest.mark.parametrize(
        ("text", "found"),
        [("a,b\nc\n", "1 in line 2"), ("a,b,c\n", "3 in line 1"), ("a,b\n\nc,\n", "2 in line 3")],
    )
    def test_two_columns_are_needed(self, tmp_path: Path, text: str, found: str) -> None:
        words = f"x.csv must have two columns, the two items of a link, not {found}."
        with pytest.raises(InputError) as caught:
            read_links(write(tmp_path, text))
        assert str(caught.value) == words

    def test_what_holds_none(self, tmp_path: Path) -> None:
        with pytest.raises(
            InputError, match=r"^give a must-link file, a cannot-link file, or both"
        ):
            read_links()
        with pytest.raises(InputError, match=r"^x\.csv holds no pair\.$"):
            read_links(cannot=write(tmp_path, "left,right\n"))
        with pytest.raises(InputError, match=r"^x\.json is not a list of pairs: give two columns"):
            read_links(write(tmp_path, "[1]", "x.json"))
        pq.write_table(pa.table({"p": ["a"], "q": [1], "r": [1]}), tmp_path / "x.parquet")
        with pytest.raises(
            InputError, match=r"^x\.parquet must have two columns, .* not p, q, r\.$"
        ):
            read_links(tmp_path / "x.parquet")
        pq.write_table(pa.table({"p": ["a", "c"], "q": ["b", "d"]}), tmp_path / "x.parquet")
        assert rows(read_links(tmp_path / "x.parquet")) == [("a", "b", True), ("c", "d", True)]


class TestQuestions:
    def test_of_a_table_with_other_columns(self, tmp_path: Path) -> None:
        path = write(tmp_path, "why,left,right,same\ndoubt,c,a,1\nnew,b,d,\n")
        left, right = read_questions(path, IDS)
        assert (left.tolist(), right.tolist()) == ([2, 1], [0, 3])
        pq.write_table(pa.table({"left": ["d"], "right": ["a"]}), tmp_path / "x.parquet")
        left, right = read_questions(str(tmp_path / "x.parquet"), IDS)
        assert (left.tolist(), right.tolist()) == ([3], [0])

    def test_of_two_columns(self, tmp_path: Path) -> None:
        left, right = read_questions(write(tmp_path, "c a\nb d\n"), IDS)
        assert (left.tolist(), right.tolist()) == ([2, 1], [0, 3])

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("left,right\n", r"^x\.csv holds no pair"),
            ("left,right\na,b\nc,c\n", r"^x\.csv, line 3: item 'c' is compared with itself"),
            ("left,right\na,b\nc,\n", r"^x\.csv, line 3: right is blank"),
            ("left,right\na,b\nz,a\n", r"^x\.csv, line 3: left is 'z', which is none of the 4 it"),
            ("a,b,c\n", r"^x\.csv must have two columns"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            read_questions(write(tmp_path, text), IDS)
