"""What goes to spreadsheets and terminals: shown there, never run."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from likewise.cli.output import cell_text, emit, facts, say, table
from likewise.errors import InputError
from likewise.io.spreadsheets import check_target, harmless, write_csv
from likewise.io.terminal import printable

STARTS = ("=", "+", "-", "@", "\t", "\r", "＝")


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "x;=1+1", 'x;"=1+1"', "x; -2", "a\n@b", "a\r=b", " =1", "x\t+1", "＝1", "x;;=1"],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_runs_whatever_the_spreadsheet_takes_for_a_separator(
    tmp_path: Path, cell: str, delimiter: str
) -> None:
    path = tmp_path / "x.csv"
    write_csv(path, {"a": ["one"], "b": [cell]})
    with path.open(newline="", encoding="utf-8") as file:
        # As a spreadsheet may: quotes that do not begin a field are text like any other.
        rows = list(csv.reader(file, delimiter=delimiter))
    for row in rows:
        for field in row:
            assert not field.strip(' "').startswith(STARTS)


def test_other_text_and_numbers_stay() -> None:
    for cell in ("a-b", "x;y", "a=b", "1;2", "'=1", "", -3, 2.5, None):
        assert harmless(cell) == cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢", "plain ä 漢"),
        ("two\nlines\tand", "two\nlines\tand"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b31m\x7f\r", "\\x9b31m\\x7f\\x0d"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_a_terminal_is_told_nothing(
    text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printable(text) == cell_text(text) == shown
    say(text)
    emit(False, {}, table(text, [text], [[text]]), facts(text, [(text, text)]), text)
    both = capsys.readouterr()
    assert not set("\x1b\x9b\x07\x7f\r\u202e") & set(both.out + both.err)


def test_lines_end_as_everywhere_and_columns_are_equally_long(tmp_path: Path) -> None:
    write_csv(tmp_path / "x.csv", {"a": [1, 2], "b": ["x", "y"]})
    assert (tmp_path / "x.csv").read_bytes() == b"a,b\n1,x\n2,y\n"
    with pytest.raises(ValueError, match=r"shorter|longer"):
        write_csv(tmp_path / "y.csv", {"a": [1, 2], "b": ["x"]})
    assert not (tmp_path / "y.csv").exists()


def test_a_place_where_no_file_can_be_written(tmp_path: Path) -> None:
    check_target(None)
    check_target(tmp_path / "new.csv")
    with pytest.raises(InputError, match="is a folder; give the name of a CSV file"):
        check_target(tmp_path)
    with pytest.raises(InputError, match=r"there is no folder .*none to write x\.csv to"):
        write_csv(tmp_path / "none" / "x.csv", {"a": [1]})


def test_names_of_columns_are_harmless_too_and_text_is_utf8(tmp_path: Path) -> None:
    write_csv(str(tmp_path / "x.csv"), {"=a": ["ä\n漢"]})
    assert (tmp_path / "x.csv").read_bytes() == '\'=a\n"ä\n漢"\n'.encode()
