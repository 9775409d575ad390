"""Reading judgements from what people already have, and writing them.

`read_pairs` recognises a file by what it holds: a judgement a row (CSV, Parquet, SQLite, JSON
records), the database of the labelling page, Splink's clerical labels, Zingg's marked pairs,
dedupe's training file, Label Studio's export. `read_links` takes must-link and cannot-link lists.
"""

from __future__ import annotations

from pathlib import Path

from numpy.typing import ArrayLike

from likewise.errors import InputError
from likewise.io.sniffing import file_kind
from likewise.io.tables import RecordTable, Table, open_table
from likewise.pairs.container import Pairs
from likewise.pairs.formats.json_records import (
    as_records,
    json_format,
    load_json,
    read_dedupe,
    read_label_studio,
)
from likewise.pairs.formats.linkage import SPLINK, ZINGG, read_splink, read_zingg
from likewise.pairs.formats.links import read_links
from likewise.pairs.formats.long import ColumnNames, Items, read_long
from likewise.pairs.formats.paths import path_errors
from likewise.pairs.formats.sqlite import read_sqlite
from likewise.pairs.formats.writing import write_pairs

__all__ = ["FORMATS", "read_links", "read_pairs", "write_pairs"]

FORMATS = ("pairs", "splink", "zingg", "dedupe", "label-studio")


def read_pairs(
    path: str | Path,
    *,
    format: str | None = None,
    left: str = "left",
    right: str = "right",
    same: str = "same",
    annotator: str = "annotator",
    weight: str = "weight",
    item: str | None = None,
    table: str | None = None,
    item_ids: ArrayLike | None = None,
    n_items: int | None = None,
    named: bool = False,
    may_lack: bool = False,
) -> Pairs:
    """Read judgements from a file, in any of the formats that `likewise.pairs.formats` knows.

    Parameters
    ----------
    path
        A CSV, Parquet, SQLite or JSON file, or a folder of Parquet files; told by the content.
    format
        One of `FORMATS`; by default recognised from the columns or fields.
    left, right, same, annotator, weight
        What the columns (or fields) are called; the last two may be missing.
    item
        The column that names an item, in formats with a record a row (Zingg, dedupe); ``left``
        does as well, so that the command line can say it.
    table
        The table of an SQLite database, where several have the columns.
    item_ids
        The items' own ids or file names, in the order of the items: ids in the file are matched to
        them, with or without folder and extension. Without, whole numbers are positions, and other
        ids are numbered in sorted order and kept in ``pairs.item_ids``.
    n_items
        The number of items, where it is known: an index beyond it is refused.
    named
        Whether whole numbers are names too (the numbers of records) instead of positions.
    may_lack
        Whether judgements of items that are not among ``item_ids`` are left out (counted in
        ``pairs.unknown``, told of) and not refused; more than half are refused in any case.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, but is {format!r}.")
    file = Path(path)
    names = ColumnNames(left, right, same, annotator, weight)
    item = item or (left if left != ColumnNames.left else None)
    items = Items(item_ids, n_items, named, may_lack)
    with path_errors(file):
        kind = file_kind(file)
    if kind == "sqlite":
        pairs = read_sqlite(file, names, items, table)
    elif kind == "json":
        pairs = _read_json(file, format, names, items, item)
    else:
        pairs = _read_table(open_table(file, kind), format, names, items, item)
    _refuse_none(file, pairs)
    return pairs


def _refuse_none(file: Path, pairs: Pairs) -> None:
    if len(pairs) == 0:
        unanswered = f": all {pairs.dropped} answers are blank or unsure" if pairs.dropped else ""
        raise InputError(f"{file.name} holds no judgement{unanswered}.")


def _read_table(
    table: Table, format: str | None, names: ColumnNames, items: Items, item: str | None
) -> Pairs:
    chosen = format or _table_format(table, names)
    if chosen == "splink":
        return read_splink(table, names, items)
    if chosen == "zingg":
        return read_zingg(table, names, items, item)
    if chosen != "pairs":
        raise InputError(f"{table.path.name} is a table, but {chosen} writes JSON.")
    return read_long(table, names, items)


def _table_format(table: Table, names: ColumnNames) -> str:
    columns = set(table.columns)
    if {names.left, names.right, names.same} <= columns:
        return "pairs"
    if columns & set(SPLINK):
        return "splink"
    return "zingg" if columns & set(ZINGG) else "pairs"


def _read_json(
    path: Path, format: str | None, names: ColumnNames, items: Items, item: str | None
) -> Pairs:
    content = load_json(path)
    chosen = format or json_format(path, content)
    if chosen == "dedupe":
        return read_dedupe(path, content, items, item)
    if chosen == "label-studio":
        return read_label_studio(path, content, names, items)
    rows = as_records(content)
    if rows is None:
        raise InputError(f"{path.name} is not a list of records.")
    return _read_table(RecordTable(path, rows), format, names, items, item)
