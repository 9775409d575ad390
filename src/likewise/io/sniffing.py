"""What a file is, by what it holds: a name may lie, and a pickle is never opened."""

from __future__ import annotations

from pathlib import Path

from likewise.errors import InputError
from likewise.io.regular import open_regular

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".json": "json",
}
_NAMES = {"csv": "CSV", "parquet": "Parquet", "sqlite": "an SQLite database", "json": "JSON"}
_ENDINGS = {"csv": ".csv", "parquet": ".parquet", "sqlite": ".db", "json": ".json"}
_PICKLES = {".pkl", ".pickle", ".joblib", ".pt", ".pth"}
_KNOWN = "a CSV, Parquet, SQLite or JSON file"

_MAGIC = {b"PAR1": "parquet", b"SQLite format 3\x00": "sqlite"}
_FOREIGN = {
    b"\x93NUMPY": "a NumPy array",
    b"PK\x03\x04": "a ZIP archive (an Excel sheet or .npz is one)",
    b"\x1f\x8b": "compressed (gzip)",
    b"ARROW1": "an Arrow or Feather file",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


def file_kind(path: Path) -> str:
    """ "csv", "parquet", "sqlite" or "json", from the content; else one sentence on what it is."""
    if not path.exists():
        raise InputError(f"there is no file {path}.")
    if path.is_dir():
        return _folder_kind(path)
    with open_regular(path) as file:
        head = file.read(1 << 16)
    if not head.strip():
        raise InputError(f"{path.name} is empty.")
    kind = _content_kind(path, head)
    named = _SUFFIXES.get(path.suffix.lower())
    if named is not None and named != kind:
        raise InputError(
            f"{path.name} is named like {_NAMES[named]} but holds {_NAMES[kind]}; "
            f"rename it to {path.stem}{_ENDINGS[kind]}."
        )
    return kind


def _folder_kind(path: Path) -> str:
    if any(path.glob("*.parquet")):
        return "parquet"  # as Spark and Zingg write a table: a folder of parts
    raise InputError(f"{path} is a folder without Parquet files; judgements are {_KNOWN}.")


def _content_kind(path: Path, head: bytes) -> str:
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if path.suffix.lower() in _PICKLES or (head[0] == 0x80 and len(head) > 1 and head[1] <= 5):
        raise InputError(
            f"{path.name} is a pickle, which could run code when opened; write the judgements as "
            "CSV or Parquet instead."
        )
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{path.name} is {what}; judgements are {_KNOWN} (text in UTF-8).")
    if b"\x00" in head:
        raise InputError(f"{path.name} is not text; judgements are {_KNOWN}.")
    opening = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return "json" if opening in (b"{", b"[") else "csv"
