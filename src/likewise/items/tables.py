"""A table of items: which column names them, and the others as numbers to learn from, or as text.

`fit` and `predict` read the numbers, the labelling page shows the text. Delimiter, header and ids
are found here for all of them, so that an answer is about the item that is learned from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.limits import check_memory, text_array
from likewise.io.tables import CsvTable, ParquetTable, arrow_errors, listing

if TYPE_CHECKING:
    import pyarrow as pa

_ID_NAMES = ("id", "item", "item_id", "")  # "": how pandas writes its index
LARGEST = np.finfo(np.float32).max
LONGEST_SHOWN = 60  # characters of a cell in a message
FEWEST_EVEN = 5  # numbers in even steps that are no chance any more


@dataclass(frozen=True)
class TextRows:
    """The cells of a table as text."""

    columns: list[str]
    """The names of the columns that are kept, the ids' not among them."""
    ids: list[str] | None
    """(N,) what the id column says; None where there is none."""
    cells: pa.Table
    """(N, len(columns)) text."""

    def row(self, index: int) -> list[tuple[str, str]]:
        """The (column, text) cells of one item."""
        found = self.cells.slice(index, 1).to_pydict()
        return [(name, found[str(k)][0]) for k, name in enumerate(self.columns)]


class ItemTable:
    """A CSV or Parquet file with an item a row.

    ``columns`` are the names of all columns but the ids', ``id_column`` is the one that names the
    items, None where none is called so. The first line of a CSV file is its header, unless it is
    all numbers; numbers that are ``known`` as names of columns, or evenly spaced, are a header too.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        id_column: str | None = None,
        known: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.has_header = (
            kind != "csv"
            or id_column is not None
            or not _is_headless(CsvTable(path, header=False).first_line, known)
        )
        self._table = (
            ParquetTable(path) if kind == "parquet" else CsvTable(path, header=self.has_header)
        )
        names = self._table.columns
        if id_column is not None and id_column not in names:
            raise InputError(
                f"{path.name} has no column {id_column}; the columns there are {listing(names)}."
            )
        self.id_column = _guess_id(names) if id_column is None else id_column
        self.columns = [name for name in names if name != self.id_column]

    def numbers(self) -> tuple[NDArray[np.float32], list[str] | None]:
        """``(items (N, d), ids (N,) or None)``; refused where a cell is no finite number."""
        if not self.columns:
            raise InputError(f"{self.path.name} has no column of numbers.")
        self._check_size(4 * len(self.columns))
        parts: list[NDArray[np.float32]] = []
        ids: list[str] = []
        texts = self._texts()
        named = [] if self.id_column is None else [self.id_column]
        try:
            with arrow_errors(self.path):
                for batch in self._table.number_batches([*named, *self.columns], text=named):
                    parts.append(_numbers(batch, self.columns, skip=len(named)))
                    ids += texts.of(batch.column(0)) if named else []
        except _NotNumbers as problem:
            row = problem.row + sum(len(part) for part in parts)
            raise InputError(f"{self.path.name}, {self._table.where(row)}: {problem}") from None
        if not sum(len(part) for part in parts):
            raise InputError(f"{self.path.name} has no rows.")
        return np.concatenate(parts), self._checked(ids) if named else None

    def text(self, most: int | None = None, only: list[str] | None = None) -> TextRows:
        """Every cell as text, of the first ``most`` columns, or of those named in ``only``."""
        import pyarrow as pa

        shown = self.columns[:most] if only is None else only
        self._check_size(8 * (len(shown) + 1))
        named = [] if self.id_column is None else [self.id_column]
        schema = pa.schema([(str(k), pa.string()) for k in range(len(shown))])
        parts, ids, cells = [], [], self._texts()
        with arrow_errors(self.path):
            for batch in self._table.batches([*named, *shown], text=[*named, *shown]):
                texts = [cells.of(column) for column in batch.columns]
                ids += texts[0] if named else []
                columns = [pa.array(column, pa.string()) for column in texts[len(named) :]]
                parts.append(pa.record_batch(columns, schema=schema))
        return TextRows(shown, self._checked(ids) if named else None, _joined(parts, schema, ids))

    def _texts(self) -> _Texts:
        table = self._table
        return _Texts(self.path, table.bytes_on_disk() if isinstance(table, ParquetTable) else 0)

    def _check_size(self, bytes_a_row: int) -> None:
        """Equal rows are next to nothing in a Parquet file, and much in memory."""
        if isinstance(self._table, ParquetTable):
            rows = self._table.count_rows()
            what = f"{self.path.name}: {rows:,} rows of {len(self.columns):,} columns"
            check_memory(what, rows * bytes_a_row, self._table.bytes_on_disk())

    def _checked(self, ids: list[str]) -> list[str]:
        """The ids, none of them blank and no two alike."""
        if "" not in ids and len(set(ids)) == len(ids):
            return ids
        seen: set[str] = set()
        for row, identity in enumerate(ids):
            if not identity or identity in seen:
                problem = f"has {identity!r} twice" if identity else "is blank"
                raise InputError(
                    f"{self.path.name}, {self._table.where(row)}: the column {self.id_column} "
                    f"{problem}; every item needs an id of its own."
                )
            seen.add(identity)
        return ids


def check_ids(ids: Sequence[str], source: str) -> NDArray[np.str_]:
    """Ids from elsewhere than a table, as an array: each item has one of its own."""
    if len(set(ids)) < len(ids):
        twice = next(name for name, times in Counter(ids).items() if times > 1)
        raise InputError(f"{source} has the id {twice!r} twice; every item needs one of its own.")
    return text_array(ids, f"the ids of {source}")


class _NotNumbers(Exception):
    def __init__(self, row: int, name: str, value: object) -> None:
        text = "" if value is None else str(value)
        whole = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
        shown = f"{whole!r}, not a number" if text else "blank"
        super().__init__(
            f"{name} is {shown}; items must be finite numbers (a column called id may name them, "
            "and --text says which column holds texts)."
        )
        self.row = row


def _numbers(batch: pa.RecordBatch, names: list[str], skip: int) -> NDArray[np.float32]:
    """(rows, d) of a record batch, without its first ``skip`` columns."""
    found = np.empty((len(names), batch.num_rows), np.float32)
    for k, name in enumerate(names):
        column = batch.column(k + skip)
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "iufb":
            values = _parsed(column)
        finite = np.abs(values) <= LARGEST
        if not finite.all():
            row = int(np.argmin(finite))
            raise _NotNumbers(row, name, column[row].as_py())
        found[k] = values
    return np.ascontiguousarray(found.T)


def _parsed(column: pa.Array) -> NDArray[np.float64]:
    """A column that Arrow took for text, because of one cell perhaps: NaN where it is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    words = [_as_number(value) for value in coded.dictionary.to_pylist()]
    codes = pc.fill_null(coded.indices, -1).to_numpy()
    # A missing cell, code -1, finds the last one.
    parsed: NDArray[np.float64] = np.array([*words, np.nan])[codes]
    return parsed


def _as_number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.nan


class _Texts:
    """Cells as text, within bounds: one long text may stand in every row."""

    def __init__(self, path: Path, on_disk: int) -> None:
        self._path, self._on_disk, self._taken = path, on_disk, 0

    def of(self, column: pa.Array) -> list[str]:
        """The cells of one column of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
            lengths = pc.fill_null(pc.binary_length(column.dictionary), 0)
            sizes = lengths.take(pc.drop_null(column.indices))
            self._taken += int(pc.sum(sizes).as_py() or 0)
            what = f"{self._path.name}: the text of its cells, written out,"
            check_memory(what, self._taken, self._on_disk, instead="shorten the longest")
        return ["" if value is None else str(value) for value in column.to_pylist()]


def _joined(parts: list[pa.RecordBatch], schema: pa.Schema, ids: list[str]) -> pa.Table:
    import pyarrow as pa

    if schema.names:
        return pa.Table.from_batches(parts, schema).combine_chunks()
    return pa.table({"": pa.nulls(len(ids))})  # a table of ids alone has as many rows


def _guess_id(columns: list[str]) -> str | None:
    """The column of a table that names its items, if one is called so."""
    return next((name for name in columns if name.strip().lower() in _ID_NAMES), None)


def _is_headless(columns: list[str], known: Sequence[str] | None = None) -> bool:
    """Whether the first line is data: all numbers, and not those that columns are called by.

    Which are the 0, 1, 2 ... of a data frame, any others in even steps (pixels from 1 on, wave
    lengths), and those that a model knows its columns by.
    """
    if columns == [str(k) for k in range(len(columns))]:
        return False
    if known is not None and set(columns) == set(known):
        return False
    try:
        numbers = [float(name) for name in columns]
    except ValueError:
        return False
    steps = np.diff(numbers)
    even = len(numbers) >= FEWEST_EVEN and steps[0] != 0 and np.allclose(steps, steps[0])
    return bool(columns) and not even
