"""Judgements out of the database, for other tools: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import IO, Any

from likewise.atomic import replacing
from likewise.errors import InputError
from likewise.label.database import COLUMNS, read_judgements

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def export_judgements(path: str | Path, out: str | Path) -> int:
    """Write the standing answers as ``.csv`` or ``.parquet`` and return how many there are.

    "Not sure" is left blank. In CSV, which people open in spreadsheets, a name that would run as a
    formula gets an apostrophe in front; Parquet keeps every name as it is.
    """
    columns, out = read_judgements(path), Path(out)
    writers = {".csv": _write_csv, ".parquet": _write_parquet}
    if out.suffix not in writers:
        raise InputError(f"{out.name} must end in .csv or .parquet, to say what to write.")
    if not out.parent.is_dir():
        raise InputError(f"the folder {out.parent} does not exist; make it first.")
    with replacing(out) as temporary, temporary.open("wb") as file:
        writers[out.suffix](columns, file)
    return len(columns["same"])


def _write_csv(columns: dict[str, list[Any]], file: IO[bytes]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for left, right, same, annotator in zip(*(columns[name] for name in COLUMNS), strict=True):
        writer.writerow([_harmless(left), _harmless(right), same, _harmless(annotator)])
    text.flush()
    text.detach()  # the caller's file stays open


def _write_parquet(columns: dict[str, list[Any]], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = (pa.string(), pa.string(), pa.int8(), pa.string())
    arrays = [pa.array(columns[n], t) for n, t in zip(COLUMNS, types, strict=True)]
    pq.write_table(pa.table(arrays, names=list(COLUMNS)), file)


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
