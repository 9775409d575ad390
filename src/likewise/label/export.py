"""Judgements out of the database, for other tools: CSV and Parquet."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from likewise.errors import InputError
from likewise.io.atomic import replacing
from likewise.io.spreadsheets import write_csv
from likewise.pairs.formats.label_database import Answers, read_judgements
from likewise.pairs.privacy import number_people


def export_judgements(
    path: str | Path, out: str | Path, private: bool = False, *, gold: bool = False
) -> int:
    """Write the standing answers as ``.csv`` or ``.parquet`` and return how many there are.

    Where people have sorted, each two items of a sort are a row, and a column ``sort`` numbers the
    sort. Answers to ``gold`` questions are left out unless asked for. With ``.db`` a whole copy of
    the database, also while it is being written to. "Not sure" is left blank. In CSV, which people
    open in spreadsheets, a name that would run as a formula gets an apostrophe in front; Parquet
    keeps every name as it is. With ``private`` people are numbered by when they first answered.
    """
    columns, out = read_judgements(path, gold=gold), Path(out)
    if private:
        if out.suffix == ".db":
            raise InputError(
                "a copy of the database holds people's names; export .csv or .parquet."
            )
        first = list(dict.fromkeys(str(name) for name in columns["annotator"]))
        number = dict(zip(first, number_people(first), strict=True))
        columns["annotator"] = [number[str(name)] for name in columns["annotator"]]
    if out.suffix == ".csv":
        write_csv(out, columns)
    elif out.suffix == ".parquet":
        _write_parquet(out, columns)
    elif out.suffix == ".db":
        _write_copy(Path(path), out)
    else:
        raise InputError(f"{out.name} must end in .csv, .parquet or .db, to say what to write.")
    return len(columns["same"])


def _write_copy(path: Path, out: Path) -> None:
    """A copy that SQLite itself makes: of the file and of its log, at one moment."""
    _check_folder(out)
    if out.exists():
        raise InputError(f"{out} is there already; choose another name for the copy.")
    with replacing(out) as temporary:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, and nothing beside it


def _check_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent} to write {out.name} to.")


def _write_parquet(out: Path, columns: Answers) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_folder(out)
    types = {"same": pa.int8(), "sort": pa.int64()}
    table = pa.table({n: pa.array(c, types.get(n, pa.string())) for n, c in columns.items()})
    with replacing(out) as temporary:
        pq.write_table(table, temporary)
