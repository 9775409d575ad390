"""Reading judgements from what people already have, and writing them.

`read_pairs` recognises a file by what it holds: a judgement a row (CSV, Parquet, SQLite, JSON
records, JSON Lines), the database of the labelling page, results of Mechanical Turk, Toloka and
Zooniverse, Label Studio's exports, sorts into piles, DURel's graded judgements, Splink's clerical
labels, Zingg's marked pairs, dedupe's training file. `read_links` takes must-link and cannot-link
lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import ArrayLike

from likewise.errors import InputError
from likewise.io.records import RecordTable
from likewise.io.sniffing import file_kind
from likewise.io.tables import Table, open_table
from likewise.pairs.container import Pairs
from likewise.pairs.formats.crowd import MTURK, TOLOKA, read_platform
from likewise.pairs.formats.exports import (
    LABEL_STUDIO,
    read_label_studio_flat,
    read_zooniverse,
)
from likewise.pairs.formats.graded import DUREL, read_durel, read_graded
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
from likewise.pairs.formats.paths import is_compact, path_errors
from likewise.pairs.formats.sorts import (
    is_piles,
    is_table_of_sorts,
    read_piles,
    read_sort_table,
)
from likewise.pairs.formats.sqlite import read_sqlite
from likewise.pairs.formats.writing import write_pairs

__all__ = ["FORMATS", "read_links", "read_pairs", "write_pairs"]

_LINKAGE = ("splink", "zingg", "dedupe")
_CROWDS = ("label-studio", "mturk", "toloka", "zooniverse", "sorts", "durel")
FORMATS = ("pairs", *_LINKAGE, *_CROWDS)


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
    gold: bool = False,
    threshold: float | None = None,
) -> Pairs:
    """Read judgements from a file, in any of the formats that `likewise.pairs.formats` knows.

    Parameters
    ----------
    path
        A CSV, Parquet, SQLite, JSON or JSON Lines file, or a folder: Parquet, compacted.
    format
        One of `FORMATS`; by default told by the columns or fields. Only a table of items and people
        with the piles' names in it must be called "sorts".
    left, right, same, annotator, weight
        What the columns (or fields) are called; the last two may be missing.
    item
        The column that names an item, in formats with a record a row (Zingg, dedupe, sorts).
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
        Whether judgements of items not among ``item_ids`` are left out (``pairs.unknown``) and not
        refused; more than half are refused in any case.
    gold
        Whether certain answers are wanted, where a file holds both kinds (Toloka's GOLDEN).
    threshold
        Above it a graded answer is "same"; DURel's grades need none.
    """
    names = ColumnNames(left, right, same, annotator, weight)
    items = Items(item_ids, n_items, named, may_lack)
    item = item or (left if left != ColumnNames.left else None)
    return _read(Path(path), _Asked(format, names, items, item, table, gold, threshold))


def _read(file: Path, asked: _Asked) -> Pairs:
    if asked.format is not None and asked.format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, but is {asked.format!r}.")
    with path_errors(file):
        kind = "compact" if is_compact(file) else file_kind(file)
    if kind == "compact":
        pairs = _read_compact(file, asked.items)
    elif kind == "sqlite":
        pairs = read_sqlite(file, asked.names, asked.items, asked.table)
    elif kind == "json":
        pairs = _read_json(file, asked)
    else:
        pairs = _read_table(open_table(file, kind), asked)
    return _unless_none(file, pairs)


def _unless_none(file: Path, pairs: Pairs) -> Pairs:
    if len(pairs) == 0:
        unanswered = f": all {pairs.dropped} answers are blank or unsure" if pairs.dropped else ""
        raise InputError(f"{file.name} holds no judgement{unanswered}.")
    return pairs


def _read_compact(path: Path, items: Items) -> Pairs:
    from likewise.pairs.compact.folder import CompactFolder  # it is built on these formats

    return CompactFolder.open(path).read(items)


@dataclass(frozen=True)
class _Asked:
    """What a reader is told beside the file."""

    format: str | None
    names: ColumnNames
    items: Items
    item: str | None
    table: str | None
    gold: bool
    threshold: float | None


def _read_table(table: Table, asked: _Asked) -> Pairs:
    names, items = asked.names, asked.items
    chosen = asked.format or _table_format(table, names)
    if asked.threshold is not None and chosen not in ("pairs", "durel"):
        raise InputError(f"a threshold is for graded answers, which {chosen} does not write.")
    readers: dict[str, Callable[[], Pairs]] = {
        "pairs": lambda: _read_rows(table, asked),
        "splink": lambda: read_splink(table, names, items),
        "zingg": lambda: read_zingg(table, names, items, asked.item),
        "mturk": lambda: read_platform(table, MTURK, names, items, gold=False),
        "toloka": lambda: read_platform(table, TOLOKA, names, items, gold=asked.gold),
        "zooniverse": lambda: read_zooniverse(table, names, items),
        "label-studio": lambda: read_label_studio_flat(table, names, items),
        "sorts": lambda: read_sort_table(table, names, items, asked.item),
        "durel": lambda: read_durel(table, names, items, asked.threshold),
    }
    if chosen not in readers:
        raise InputError(f"{table.path.name} is a table, but {chosen} writes JSON.")
    return readers[chosen]()


def _read_rows(table: Table, asked: _Asked) -> Pairs:
    if asked.threshold is not None:
        return read_graded(table, asked.names, asked.items, asked.threshold)
    return read_long(table, asked.names, asked.items)


def _table_format(table: Table, names: ColumnNames) -> str:
    """Which tool wrote a table, by its columns; rows of judgements where none is recognised."""
    columns = set(table.columns)
    if {names.left, names.right, names.same} <= columns:
        return "pairs"
    signs: dict[str, bool] = {
        "splink": bool(columns & set(SPLINK)),
        "zingg": bool(columns & set(ZINGG)),
        "mturk": MTURK.is_of(table),
        "toloka": TOLOKA.is_of(table),
        "zooniverse": {"annotations", "subject_data"} & columns != set() and "user_name" in columns,
        "label-studio": set(LABEL_STUDIO) <= columns,
        "durel": len(columns & set(DUREL)) >= 2,
        "sorts": is_table_of_sorts(table),
    }
    return next((tool for tool, is_it in signs.items() if is_it), "pairs")


def _read_json(path: Path, asked: _Asked) -> Pairs:
    content = load_json(path)
    if asked.format == "sorts" or (asked.format is None and is_piles(content)):
        return read_piles(path, content, asked.names, asked.items)
    rows = as_records(content)
    if asked.format in (None, "label-studio") and rows and set(LABEL_STUDIO) <= set(rows[0]):
        return read_label_studio_flat(
            RecordTable(path, rows, "annotation"), asked.names, asked.items
        )
    chosen = asked.format or json_format(path, content)
    if chosen == "dedupe":
        return read_dedupe(path, content, asked.items, asked.item)
    if chosen == "label-studio":
        return read_label_studio(path, content, asked.names, asked.items)
    if rows is None:
        raise InputError(f"{path.name} is not a list of records.")
    return _read_table(RecordTable(path, rows), asked)
