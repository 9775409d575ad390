"""Items from files: a .npy or .npz array, a CSV or Parquet table of numbers, a folder of images."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.limits import text_array
from likewise.io.npy import Array, npz_names, read_npy, read_npz
from likewise.io.regular import open_regular
from likewise.io.sniffing import file_kind
from likewise.io.tables import listing
from likewise.items.tables import ItemTable, check_ids

_ARRAY_NAMES = ("items", "X", "x", "images", "features", "data")
KNOWN = "a .npy or .npz array, a CSV or Parquet table of numbers, or a folder of images"


@dataclass(frozen=True)
class ItemFile:
    """Items as a file holds them."""

    items: Array
    """(N, ...) numbers: features, or images."""
    ids: NDArray[np.str_] | None = None
    """(N,) what the file calls them; None where it names none."""
    columns: tuple[str, ...] | None = None
    """(d,) the names of a table's columns of numbers; None where there is no header."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def names(self) -> NDArray[np.str_]:
        """(N,) the items' ids, or their numbers from 0."""
        return np.arange(len(self)).astype(np.str_) if self.ids is None else self.ids


def read_items(
    path: str | Path,
    *,
    id_column: str | None = None,
    size: int | None = None,
    known: Sequence[str] | None = None,
) -> ItemFile:
    """Items in any of the forms we know, told by the content.

    ``id_column`` is the column of a table that names the items (default: "id" or "item", if it is
    there). ``size`` scales every image of a folder to that many pixels a side. ``known`` are the
    names of the columns that a model was fitted to: a first line of these is a header.
    """
    file = Path(path)
    if not file.exists():
        raise InputError(f"there is no file or folder {file}; items are {KNOWN}.")
    if file.is_dir() and not any(file.glob("*.parquet")):
        from likewise.items.folder import read_images

        images, names = read_images(file, size)
        return ItemFile(images, check_ids(names, file.name))
    if not file.is_dir() and (array := read_array(file)) is not None:
        if array.items.dtype.kind not in "iufb":
            raise InputError(f"{file.name} holds {array.items.dtype}; items must be numbers.")
        return array
    table = open_item_table(file, id_column, known)
    if known and not table.has_header:
        warnings.warn(
            f"{file.name} has no header: its first line is taken for an item, and its columns for "
            f"{listing(known)}, in that order.",
            stacklevel=2,
        )
    numbers, ids = table.numbers()
    named = None if ids is None else text_array(ids, f"the ids of {file.name}")
    return ItemFile(numbers, named, tuple(table.columns) if table.has_header else None)


def open_item_table(
    path: Path, id_column: str | None = None, known: Sequence[str] | None = None
) -> ItemTable:
    """The table in a CSV or Parquet file, told by the content; refused where it is another file."""
    kind = file_kind(path)
    if kind not in ("csv", "parquet"):
        raise InputError(f"{path.name} holds no items that can be read; items are {KNOWN}.")
    return ItemTable(path, kind, id_column, known)


def read_array(path: Path) -> ItemFile | None:
    """The array of a .npy or .npz file; None where the file is neither."""
    with open_regular(path) as file:
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
    names = None if ids is None else check_ids(ids.astype(np.str_).tolist(), path.name)
    return ItemFile(items, names)


def _array_name(path: Path, there: list[str]) -> str:
    candidates = [name for name in there if name != "ids"]
    if len(candidates) == 1:
        return candidates[0]
    for name in _ARRAY_NAMES:
        if name in candidates:
            return name
    listed = ", ".join(candidates) or "none"
    raise InputError(f"{path.name} has the arrays {listed}; call the one of items 'items'.")
