"""Classes of items, and matrices, from files: what truth, names and a known T are read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded
from likewise.io.limits import check_memory
from likewise.io.sniffing import file_kind
from likewise.io.tables import CsvTable, ParquetTable, Table
from likewise.items.files import ItemFile, read_array
from likewise.pairs.formats.ids import resolve_ids
from likewise.pairs.formats.long import read_columns, rows_located

_ID_NAMES = ("item", "id", "item_id", "image", "file", "")
_LABEL_NAMES = ("label", "class", "truth", "true", "y", "name", "target")


def read_labels(
    path: str | Path, items: ItemFile, *, column: str | None = None
) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """``(positions (n,), labels (n,))``: which items have which class, perhaps only some of them.

    The file is a .npy of one label an item, or a CSV or Parquet table: with a column of item ids
    (or numbers) and one of labels, or with labels alone, one a row in the order of the items.
    ``column`` says which column is the label, where its name does not.
    """
    file = _LabelFile(Path(path), column)
    if file.ids is None:
        if file.labels.shape != (len(items),):
            raise InputError(
                f"there are {len(items)} items, but {file.path.name} has {file.labels.size} "
                "classes."
            )
        return np.arange(len(items)), file.labels
    positions = file.positions(items)
    filled = file.labels != ""
    return positions[filled].astype(np.int64), file.labels[filled]


def read_label_file(
    path: str | Path, *, column: str | None = None
) -> tuple[NDArray[np.str_] | None, NDArray[np.str_]]:
    """``(ids (N,) or None, labels (N,))`` of a file that is all there is to know of its items."""
    file = _LabelFile(Path(path), column)
    if (file.labels == "").any():
        row = int(np.argmax(file.labels == ""))
        raise InputError(f"{file.path.name} gives no class in row {row}.")
    if file.ids is None:
        return None, file.labels
    ids = file.ids.with_blank()
    names = _expanded(ids, file.path)
    if names.tolist() == [str(k) for k in range(len(names))]:
        return None, file.labels
    return names, file.labels


class _LabelFile:
    """Labels (n,) as text, blank where there is none, and the items' ids where they are given."""

    def __init__(self, path: Path, column: str | None) -> None:
        if not path.exists():
            raise InputError(f"there is no file {path} of classes.")
        self.path = path
        self.ids: Coded | None = None
        array = None if path.is_dir() else read_array(path)
        if array is not None:
            if array.items.ndim != 1:
                raise InputError(f"{path.name} must be one class an item, shape (N,).")
            self.labels = np.asarray(array.items).astype(np.str_)
            return
        kind = file_kind(path)
        if kind not in ("csv", "parquet"):
            raise InputError(f"{path.name} holds no classes; give CSV, Parquet or .npy.")
        self._table: Table = ParquetTable(path) if kind == "parquet" else CsvTable(path)
        label, self._item = _label_column(self._table, column), _item_column(self._table, column)
        text = [label] if self._item is None else [label, self._item]
        with rows_located(self._table):
            columns = read_columns(self._table, [], text)
        coded = columns[label].with_blank()
        self.labels = _expanded(coded, path)
        if self._item is not None:
            self.ids = columns[self._item]

    def positions(self, items: ItemFile) -> NDArray[np.integer[Any]]:
        """(n,) the positions of the named items."""
        if self.ids is None or self._item is None:
            raise InputError(f"{self.path.name} names no items.")
        with rows_located(self._table):
            try:
                positions = resolve_ids(self.ids, self.ids, items.names).left
            except RowError as error:  # which speaks of judgements, the usual reason to look up
                problem = error.problem.replace("left", self._item or "item", 1)
                raise RowError(error.row, problem) from None
        _check_positions(self.path, positions, len(items))
        return positions


def read_matrix(path: str | Path) -> NDArray[np.float64]:
    """A matrix from a .npy file or from rows of numbers without a header."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file} with a matrix.")
    if (array := read_array(file)) is not None:
        matrix = np.asarray(array.items)
        if matrix.dtype.kind not in "iuf":
            raise InputError(f"{file.name} holds {matrix.dtype}, not a matrix of numbers.")
        return matrix.astype(np.float64)
    file_kind(file)  # a readable text, or a sentence on what it is
    try:
        text = file.read_text(encoding="utf-8-sig").replace(",", " ").replace(";", " ")
        return np.loadtxt(text.splitlines(), ndmin=2)
    except ValueError as error:
        raise InputError(f"{file.name} is no matrix: rows of numbers, equally many.") from error


def _expanded(column: Coded, path: Path) -> NDArray[np.str_]:
    """(n,) the text of each row; every one takes as much memory as the longest."""
    check_memory(
        f"{path.name}: {len(column):,} rows of text as long as the longest",
        column.names.itemsize * len(column),
        path.stat().st_size * 4,
        instead="shorten the longest",
    )
    return column.names[column.codes]


def _label_column(table: Table, asked: str | None) -> str:
    there = ", ".join(table.columns)
    if asked is not None:
        if asked not in table.columns:
            raise InputError(
                f"{table.path.name} has no column {asked}; the columns there are {there}."
            )
        return asked
    for name in table.columns:
        if name.strip().lower() in _LABEL_NAMES:
            return name
    others = [name for name in table.columns if name.strip().lower() not in _ID_NAMES]
    if len(others) != 1:
        raise InputError(
            f"{table.path.name} does not say which column is the class; the columns there are "
            f"{there}; call it label."
        )
    return others[0]


def _item_column(table: Table, label: str | None) -> str | None:
    names = (name for name in table.columns if name != label)
    return next((name for name in names if name.strip().lower() in _ID_NAMES), None)


def _check_positions(path: Path, positions: NDArray[np.integer[Any]], n_items: int) -> None:
    if len(positions) and (positions.min() < 0 or positions.max() >= n_items):
        wrong = positions[(positions < 0) | (positions >= n_items)][0]
        raise InputError(f"{path.name} names item {wrong}, but there are only {n_items} items.")
    if len(np.unique(positions)) < len(positions):
        raise InputError(f"{path.name} gives some item two classes; each may stand there once.")
