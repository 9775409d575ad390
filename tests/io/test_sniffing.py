"""What a file is, by what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io.sniffing import file_kind

HEADS = {
    "csv": b"left,right\n",
    "parquet": b"PAR1....",
    "sqlite": b"SQLite format 3\x00",
    "json": b" \n[1]",
}
WORDS = {"csv": "CSV", "parquet": "Parquet", "sqlite": "an SQLite database", "json": "JSON"}
ENDINGS = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "sqlite": (".db", ".sqlite", ".sqlite3"),
    "json": (".json",),
}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", HEADS)
def test_by_content_whatever_the_name(tmp_path: Path, kind: str) -> None:
    assert file_kind(write(tmp_path / "x", HEADS[kind])) == kind
    assert file_kind(write(tmp_path / "x.other", HEADS[kind])) == kind
    for ending in ENDINGS[kind]:
        assert file_kind(write(tmp_path / f"x{ending.upper()}", HEADS[kind])) == kind


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("other", HEADS)
def test_a_name_that_lies(tmp_path: Path, kind: str, other: str) -> None:
    if kind == other:
        return
    for ending in ENDINGS[other]:
        path = write(tmp_path / f"x{ending}", HEADS[kind])
        right = f"rename it to x{ENDINGS[kind][0]}."
        words = f"x{ending} is named like {WORDS[other]} but holds {WORDS[kind]}; {right}"
        with pytest.raises(InputError) as caught:
            file_kind(path)
        assert str(caught.value) == words


def test_json_and_text_behind_a_mark_of_their_order(tmp_path: Path) -> None:
    assert file_kind(write(tmp_path / "x", b'\xef\xbb\xbf  {"a": 1}')) == "json"
    assert file_kind(write(tmp_path / "x", b"\xef\xbb\xbfleft,right")) == "csv"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x93NUMPY\x01", "a NumPy array"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b\x08", "compressed (gzip)"),
        (b"ARROW1", "an Arrow or Feather file"),
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"%PDF-1.4", "a PDF"),
        (b"\xd0\xcf\x11\xe0", "an old Excel or Word file"),
        (b"\xff\xfea\x00", "text in UTF-16"),
        (b"\xfe\xff\x00a", "text in UTF-16"),
        (b"a,b\n\x00", "not text"),
        (b"\x80\x05K\x01", "a pickle, which could run code when opened"),
        (b"\x80\x00", "a pickle"),
        (b" \n\t", "empty"),
        (b"", "empty"),
    ],
)
def test_other_files_are_named_for_what_they_are(
    tmp_path: Path, content: bytes, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        file_kind(write(tmp_path / "x.csv", content))
    assert str(caught.value).startswith(f"x.csv is {words}")


def test_text_that_only_begins_like_a_pickle(tmp_path: Path) -> None:
    assert file_kind(write(tmp_path / "x", b"\x80")) == "csv"
    assert file_kind(write(tmp_path / "x", b"\x80\x06")) == "csv"


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib", ".PT", ".pth"])
def test_pickles_by_name(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match="is a pickle"):
        file_kind(write(tmp_path / f"x{ending}", b"left,right"))


def test_a_folder_of_parts_is_one_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder without Parquet files; judgements are a CSV"):
        file_kind(tmp_path)
    (tmp_path / "part-0.parquet").write_bytes(b"")
    assert file_kind(tmp_path) == "parquet"
    with pytest.raises(InputError, match=r"there is no file .*none"):
        file_kind(tmp_path / "none")


def test_only_the_beginning_is_looked_at(tmp_path: Path) -> None:
    """A file of any size is told in no time: the rest is for whoever reads it."""
    beginning = b"left,right\n".ljust(1 << 16, b"x")
    assert file_kind(write(tmp_path / "x", beginning + b"\x00")) == "csv"
    with pytest.raises(InputError, match="is not text"):
        file_kind(write(tmp_path / "x", beginning[:-1] + b"\x00"))
