"""Must-link and cannot-link lists: two columns, an answer a file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import InputError
from likewise.io.records import RecordTable
from likewise.io.sniffing import file_kind
from likewise.io.tables import arrow_errors, open_table, text_errors
from likewise.pairs.columns import IndexArray, refuse_self_pairs
from likewise.pairs.container import Pairs
from likewise.pairs.formats.ids import resolve_ids
from likewise.pairs.formats.long import ColumnNames, Items, read_columns, read_long, rows_located
from likewise.pairs.formats.paths import path_errors

_HEADERS = {"left", "right", "a", "b", "i", "j", "id1", "id2", "id_1", "id_2", "item1", "item2"}
_HEADERS |= {"item_1", "item_2", "first", "second", "source", "target", "from", "to", "x", "y"}


def read_links(
    must: str | Path | None = None,
    cannot: str | Path | None = None,
    *,
    item_ids: ArrayLike | None = None,
    n_items: int | None = None,
) -> Pairs:
    """Judgements from a list of pairs that must be linked and one of pairs that cannot be.

    Each file has two columns (CSV, TSV, blanks between, or Parquet), with or without a header.
    """
    if must is None and cannot is None:
        raise InputError("give a must-link file, a cannot-link file, or both.")
    rows: list[dict[str, object]] = []
    for path, same in ((must, 1), (cannot, 0)):
        if path is not None:
            found = _two_columns(Path(path))
            rows += [{"left": left, "right": right, "same": same} for left, right in found]
    name = Path(next(path for path in (must, cannot) if path is not None))
    if not rows:
        raise InputError(f"{name.name} holds no pair.")
    return read_long(RecordTable(name, rows, "link"), ColumnNames(), Items(item_ids, n_items))


def read_questions(path: str | Path, item_ids: ArrayLike) -> tuple[IndexArray, IndexArray]:
    """The pairs to ask of a table with the columns ``left`` and ``right``, or of two columns.

    Other columns are not looked at, so that a table of suggestions, of doubtful judgements or of
    judgements can be asked (again).
    """
    file = Path(path)
    with path_errors(file):
        kind = file_kind(file)
    table = open_table(file, kind) if kind in ("csv", "parquet") else None
    if table is None or not {"left", "right"} <= set(table.columns):
        pairs = read_links(must=file, item_ids=item_ids)
        return pairs.left, pairs.right
    with rows_located(table):
        columns = read_columns(table, text=["left", "right"])
        found = resolve_ids(columns["left"], columns["right"], item_ids)
        if not len(found.left):
            raise InputError(f"{file.name} holds no pair.")
        refuse_self_pairs(found.left, found.right, np.ones(len(found.left), bool), found.names)
        return found.left, found.right


def _two_columns(path: Path) -> list[tuple[str, str]]:
    with path_errors(path):
        kind = file_kind(path)
    if kind == "parquet":
        table = open_table(path, kind)
        if len(table.columns) != 2:
            raise _not_two(path, ", ".join(table.columns))
        with arrow_errors(path):
            batches = table.batches(table.columns, [])
            return [(str(a), str(b)) for part in batches for a, b in zip(*map(list, part.columns))]
    if kind != "csv":
        raise InputError(f"{path.name} is not a list of pairs: give two columns, CSV or Parquet.")
    return _two_text_columns(path)


def _two_text_columns(path: Path) -> list[tuple[str, str]]:
    with text_errors(path), path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        delimiter = next((mark for mark in ",;\t|" if mark in first), None)
        lines = csv.reader(file, delimiter=delimiter) if delimiter else (x.split() for x in file)
        rows = [(k, [field.strip() for field in row]) for k, row in enumerate(lines, 1) if row]
    for line, row in rows:
        if len(row) != 2 or not all(row):
            raise _not_two(path, f"{len(row)} in line {line}")
    pairs = [(row[0], row[1]) for _, row in rows]
    return pairs[1:] if _is_header(pairs) else pairs


def _is_header(pairs: list[tuple[str, str]]) -> bool:
    if not pairs:
        return False
    if all(field.lower() in _HEADERS for field in pairs[0]):
        # Items may be called a and b: a header's words do not come again.
        return not set(pairs[0]) & {field for pair in pairs[1:] for field in pair}
    rest = pairs[1:3]
    numbers = bool(rest) and all(field.lstrip("-").isdigit() for pair in rest for field in pair)
    return numbers and not any(field.lstrip("-").isdigit() for field in pairs[0])


def _not_two(path: Path, found: str) -> InputError:
    return InputError(f"{path.name} must have two columns, the two items of a link, not {found}.")
