"""Items from files: a .npy or .npz array, a CSV or Parquet table of numbers, a folder of images."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.npy import npz_names, read_npy, read_npz
from likewise.io.sniffing import file_kind
from likewise.io.tables import (
    CsvTable,
    ParquetTable,
    Table,
    arrow_errors,
    listing,
    text_errors,
)

_ID_NAMES = ("id", "item", "item_id", "")  # "": how pandas writes its index
LARGEST = np.finfo(np.float32).max
_ARRAY_NAMES = ("items", "X", "x", "images", "features", "data")
KNOWN = "a .npy or .npz array, a CSV or Parquet table of numbers, or a folder of images"


@dataclass(frozen=True)
class ItemFile:
    """Items (N, ...) and, where the file names them, their ids (N,)."""

    items: NDArray[Any]
    ids: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def names(self) -> NDArray[np.str_]:
        """(N,) the items' ids, or their numbers from 0."""
        return np.arange(len(self)).astype(np.str_) if self.ids is None else self.ids


def read_items(
    path: str | Path, *, id_column: str | None = None, size: int | None = None
) -> ItemFile:
    """Items in any of the forms we know, told by the content.

    ``id_column`` is the column of a table that names the items (default: "id" or "item", if it is
    there). ``size`` scales every image of a folder to that many pixels a side.
    """
    file = Path(path)
    if not file.exists():
        raise InputError(f"there is no file or folder {file}; items are {KNOWN}.")
    if file.is_dir() and not any(file.glob("*.parquet")):
        from likewise.items.folder import read_images

        images, names = read_images(file, size)
        return ItemFile(images, np.array(names, np.str_))
    if not file.is_dir() and (array := read_array(file)) is not None:
        if array.items.dtype.kind not in "iufb":
            raise InputError(f"{file.name} holds {array.items.dtype}; items must be numbers.")
        return array
    kind = file_kind(file)
    if kind not in ("csv", "parquet"):
        raise InputError(f"{file.name} holds no items that can be read; items are {KNOWN}.")
    return _read_table(file, kind, id_column)


def read_array(path: Path) -> ItemFile | None:
    """The array of a .npy or .npz file; None where the file is neither."""
    with path.open("rb") as file:
        magic = file.read(6)
    named = path.suffix.lower()
    if magic == b"\x93NUMPY":
        return ItemFile(read_npy(path))
    if magic[:4] == b"PK\x03\x04" and named == ".npz":
        return _read_npz(path)
    if named in (".npy", ".npz"):
        raise InputError(f"{path.name} is not a NumPy file, whatever its name says.")
    return None


def _read_npz(path: Path) -> ItemFile:
    name = _array_name(path, npz_names(path))
    arrays = read_npz(path, [name, "ids"])
    items, ids = arrays[name], arrays.get("ids")
    if ids is not None and ids.shape != items.shape[:1]:
        raise InputError(f"{path.name} has items of shape {items.shape} but {ids.size} ids.")
    return ItemFile(items, None if ids is None else ids.astype(np.str_))


def _array_name(path: Path, there: list[str]) -> str:
    candidates = [name for name in there if name != "ids"]
    if len(candidates) == 1:
        return candidates[0]
    for name in _ARRAY_NAMES:
        if name in candidates:
            return name
    listed = ", ".join(candidates) or "none"
    raise InputError(f"{path.name} has the arrays {listed}; call the one of items 'items'.")


def _read_table(path: Path, kind: str, id_column: str | None) -> ItemFile:
    table: Table = ParquetTable(path) if kind == "parquet" else CsvTable(path)
    if id_column is not None and id_column not in table.columns:
        raise InputError(
            f"{path.name} has no column {id_column}; the columns there are "
            f"{listing(table.columns)}."
        )
    if id_column is None and kind == "csv" and is_headless(table.columns):
        return ItemFile(_read_headless(path))
    chosen = id_column if id_column is not None else guess_id(table.columns)
    features = [name for name in table.columns if name != chosen]
    if not features:
        raise InputError(f"{path.name} has no column of numbers.")
    parts, ids = [], []
    try:
        with arrow_errors(path):
            for batch in table.batches(table.columns, [] if chosen is None else [chosen]):
                columns = {name: batch.column(name) for name in features}
                parts.append(_numbers(columns))
                if chosen is not None:
                    ids += [str(value) for value in batch.column(chosen).to_pylist()]
    except _NotNumbers as problem:
        row = problem.row + sum(len(part) for part in parts)
        raise InputError(f"{path.name}, {table.where(row)}: {problem}") from None
    if not parts or not sum(len(part) for part in parts):
        raise InputError(f"{path.name} has no rows.")
    return ItemFile(np.concatenate(parts), np.array(ids, np.str_) if ids else None)


class _NotNumbers(Exception):
    def __init__(self, row: int, name: str, value: Any) -> None:
        shown = "blank" if value is None or value == "" else f"{value!r}, not a number"
        super().__init__(
            f"{name} is {shown}; items must be finite numbers (a column called id may name them)."
        )
        self.row = row


def _numbers(columns: dict[str, Any]) -> NDArray[np.float32]:
    """(rows, d) of the columns of one record batch."""
    arrays = []
    for name, column in columns.items():
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "iufb":
            values = _parsed(name, column.to_pylist())
        finite = np.abs(values) <= LARGEST
        if not finite.all():
            row = int(np.argmin(finite))
            raise _NotNumbers(row, name, column[row].as_py())
        arrays.append(values)
    return np.stack(arrays, axis=1).astype(np.float32)


def _parsed(name: str, values: list[Any]) -> NDArray[np.float64]:
    """A column that Arrow took for text, because of one cell perhaps: which is it?"""
    parsed = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            parsed[row] = float(value)
        except (TypeError, ValueError):
            raise _NotNumbers(row, name, value) from None
    return parsed


def guess_id(columns: list[str]) -> str | None:
    """The column of a table that names its items, if one is called so."""
    return next((name for name in columns if name.strip().lower() in _ID_NAMES), None)


def is_headless(columns: list[str]) -> bool:
    """Whether the first line is data: all numbers, and not the 0, 1, 2 ... of a data frame."""
    if columns == [str(k) for k in range(len(columns))]:
        return False
    try:
        [float(name) for name in columns]
    except ValueError:
        return False
    return bool(columns)


def _read_headless(path: Path) -> NDArray[np.float32]:
    table = CsvTable(path)
    rows: list[NDArray[np.float32]] = []
    with text_errors(path), path.open(encoding="utf-8-sig", newline="") as file:
        for fields in csv.reader(file, delimiter=table.delimiter):
            if not fields:
                continue
            line = len(rows) + 1
            if len(fields) != len(table.columns):
                raise InputError(
                    f"{path.name}, row {line}: {len(fields)} numbers where the first row has "
                    f"{len(table.columns)}."
                )
            try:
                rows.append(np.array(fields, np.float32))
            except ValueError:
                raise InputError(f"{path.name}, row {line}: not all cells are numbers.") from None
    return np.stack(rows)
