"""Other machines than ours: another encoding by default, and calls that a system lacks."""

from __future__ import annotations

import locale
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io import lock
from likewise.io.atomic import write_json, write_jsons, write_text
from likewise.io.json import read_json
from likewise.io.quotes import refuse_open_quote
from likewise.io.regular import hole_bytes, open_regular
from likewise.io.spreadsheets import write_csv
from likewise.io.tables import CsvTable
from likewise.items.labels import read_matrix
from likewise.pairs import Pairs
from likewise.pairs.formats import read_links


@pytest.fixture
def plain_ascii() -> Iterator[None]:
    """Where files are opened without saying how, only ASCII passes; as on some clusters."""
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    yield
    locale.setlocale(locale.LC_CTYPE, before)


@pytest.mark.usefixtures("plain_ascii")
class TestAnotherEncoding:
    def test_what_is_written(self, tmp_path: Path) -> None:
        write_text(tmp_path / "a.txt", "ä\r\n漢\n")
        assert (tmp_path / "a.txt").read_bytes() == "ä\r\n漢\n".encode()
        write_csv(tmp_path / "a.csv", {"ä": ["漢"]})
        assert (tmp_path / "a.csv").read_bytes() == "ä\n漢\n".encode()
        for write in (write_json, lambda path, value: write_jsons({path: value})):
            write(tmp_path / "a.json", ["ä漢"])
            assert read_json(tmp_path / "a.json") == ["ä漢"]

    def test_tables(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes('\ufeffä;b\n1;"漢\nx"\n2;y\n'.encode())
        assert CsvTable(path).columns == ["ä", "b"]
        path.write_bytes('\ufeff"ä\nx",b\n1,"漢\nx"\n2,y\n'.encode())
        assert [CsvTable(path).where(row) for row in range(2)] == ["line 4", "line 5"]

    def test_links_and_matrices(self, tmp_path: Path) -> None:
        (tmp_path / "links.csv").write_bytes("\ufeffä,ö\nö,漢\n".encode())
        pairs = read_links(tmp_path / "links.csv", item_ids=["ä", "ö", "漢"])
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 1], [1, 2])
        (tmp_path / "t.csv").write_bytes("\ufeff0.9 0.1\n0 1\n".encode())
        assert read_matrix(tmp_path / "t.csv").tolist() == [[0.9, 0.1], [0, 1]]

    def test_judgements(self, tmp_path: Path) -> None:
        (tmp_path / "p.csv").write_bytes("left,right,same\nä,漢,1\n漢,ö,0\n".encode())
        pairs = Pairs.read(tmp_path / "p.csv", item_ids=["ä", "ö", "漢"])
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 2], [2, 1])


class TestQuotes:
    """A quote that opens a cell depends on how the file is read."""

    @pytest.mark.parametrize(
        ("content", "delimiter", "line"),
        [
            ('\ufeff"a\nb",c\n1,"2\n'.encode(), ",", 3),  # the first cell begins behind a mark
            (b'a;b\n1;"2\n3;4\n', ";", 2),
            (b'"a,b\n1,2\n', ",", 1),
            (b'a,b\n\xff,1\n2,"\xff\n', ",", 3),
        ],
    )
    def test_the_line_that_opens_it(
        self, tmp_path: Path, content: bytes, delimiter: str, line: int
    ) -> None:
        (tmp_path / "x.csv").write_bytes(content)
        with pytest.raises(InputError, match=rf"x\.csv, line {line}: a quote .*, or remove it\.$"):
            refuse_open_quote(tmp_path / "x.csv", delimiter)

    def test_what_is_no_opening_quote_under_this_delimiter(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_bytes(b'a;b\n1;"2\n')
        refuse_open_quote(tmp_path / "x.csv", ",")

    def test_quotes_are_counted_across_blocks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("likewise.io.quotes._BLOCK_BYTES", 4)
        (tmp_path / "x.csv").write_bytes(b'a,b\n"1",2\n3,"4\n')
        with pytest.raises(InputError, match="line 3"):
            refuse_open_quote(tmp_path / "x.csv", ",")


class TestWithoutCalls:
    def test_files_are_opened_where_there_is_no_flag_against_waiting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "x").write_bytes(b"abc")
        monkeypatch.delattr(os, "O_NONBLOCK")
        monkeypatch.delattr(os, "O_NOFOLLOW")
        for follow in (True, False):
            with open_regular(tmp_path / "x", follow_links=follow) as file:
                assert file.read() == b"abc"

    def test_no_holes_where_nobody_can_find_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with (tmp_path / "x").open("wb") as file:
            file.truncate(1 << 20)
        monkeypatch.delattr(os, "SEEK_HOLE")
        assert hole_bytes(tmp_path / "x") == 0

    def test_a_lock_is_a_file_where_the_system_has_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lock, "_HAS_LOCKS", False)
        with lock.exclusive(tmp_path / "x", "is in use"):
            assert (tmp_path / ".x.lock").stat().st_mode & 0o777 == 0o600
        assert list(tmp_path.iterdir()) == []
