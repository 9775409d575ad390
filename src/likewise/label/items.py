"""What is shown: the pictures of a folder or of an array, or the rows of a table.

Items are loaded once, by `open_items`; the page then asks for them by number only, so no request
can name a path.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from likewise.errors import InputError
from likewise.io.images import SUFFIXES
from likewise.io.npy import read_npy
from likewise.items.files import guess_id, is_headless
from likewise.label.pictures import Picture, PictureCache, encode, encode_file

MAX_ITEMS = 1_000_000
MAX_COLUMNS = 40
MAX_CELL = 4000
_ARRAYS = (".npy",)
_TABLES = (".csv", ".parquet", ".pq")


class Items(Protocol):
    """N items with distinct text ids; each is a picture, or a row of named cells."""

    ids: Sequence[str]
    are_pictures: bool

    def picture(self, index: int) -> Picture:
        """The encoded picture of an item."""

    def cells(self, index: int) -> list[tuple[str, str]]:
        """The (column, text) cells of an item that is a row."""


class PictureFolder:
    """All pictures under a folder; an id is the path below it, with forward slashes."""

    are_pictures = True

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._paths = {path.relative_to(root).as_posix(): path for path in _pictures_under(root)}
        self.ids: Sequence[str] = sorted(self._paths)
        self._cache = PictureCache()

    def picture(self, index: int) -> Picture:
        if (cached := self._cache.get(index)) is not None:
            return cached
        # Resolved again at each reading: a folder on the way may have become a link since.
        path = self._paths[self.ids[index]].resolve()
        if not path.is_relative_to(self._root):
            raise InputError(f"{self.ids[index]} leads out of the folder of items.")
        picture = encode_file(path)
        self._cache.put(index, picture)
        return picture

    def cells(self, index: int) -> list[tuple[str, str]]:
        raise NotImplementedError("pictures have no cells")


class PictureArray:
    """uint8 images (N, H, W) or (N, H, W, 3); an id is the row number."""

    are_pictures = True

    def __init__(self, pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        self._pixels = pixels
        self.ids: Sequence[str] = [str(k) for k in range(len(pixels))]

    def picture(self, index: int) -> Picture:
        from PIL import Image

        return encode(Image.fromarray(np.ascontiguousarray(self._pixels[index])))

    def cells(self, index: int) -> list[tuple[str, str]]:
        raise NotImplementedError("pictures have no cells")


class Table:
    """Rows of a table; an id is what its id column says, or the row number."""

    are_pictures = False

    def __init__(self, columns: list[str], rows: list[list[str]], id_column: str | None) -> None:
        if id_column is None:
            id_column = guess_id(columns)
        elif id_column not in columns:
            raise InputError(f"there is no column {id_column}; there are {', '.join(columns)}.")
        if id_column is None:
            self.ids: Sequence[str] = [str(k) for k in range(len(rows))]
        else:
            position = columns.index(id_column)
            self.ids = [row[position] for row in rows]
            _check_distinct(self.ids, id_column)
        self._shown = [k for k, name in enumerate(columns) if name != id_column][:MAX_COLUMNS]
        self._columns, self._rows = columns, rows

    def picture(self, index: int) -> Picture:
        raise InputError("the items are rows of a table, not pictures.")

    def cells(self, index: int) -> list[tuple[str, str]]:
        row = self._rows[index]
        return [(self._columns[k], _shorten(row[k])) for k in self._shown]


def open_items(path: str | Path, id_column: str | None = None) -> Items:
    """The items of a folder of pictures, a CSV or Parquet table, or a ``.npy`` array of images."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file or folder {path}; check the name.")
    items: Items
    if path.is_dir():
        items = PictureFolder(path)
    elif path.suffix.lower() in _ARRAYS:
        items = PictureArray(_read_array(path))
    elif path.suffix.lower() == ".csv":
        items = Table(*_read_csv(path), id_column)
    elif path.suffix.lower() in _TABLES:
        items = Table(*_read_parquet(path), id_column)
    else:
        raise InputError(
            f"{path.name} is neither a folder of pictures nor a .csv, .parquet or .npy file."
        )
    if len(items.ids) < 2:
        raise InputError(f"{path} holds {len(items.ids)} items to compare, but it takes two.")
    if len(items.ids) > MAX_ITEMS:
        raise InputError(f"{path} holds more than {MAX_ITEMS:,} items; judge a part of them.")
    return items


def _pictures_under(root: Path) -> list[Path]:
    """Picture files under a folder, without any that a link leads out of it."""
    resolved, found = root.resolve(), []
    for folder, _, names in os.walk(root, followlinks=False):
        for name in names:
            path = Path(folder, name)
            if path.suffix.lower() not in SUFFIXES or name.startswith("."):
                continue
            if not _is_text(str(path)) or not path.is_file():
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(resolved):
                continue
            found.append(path)
    return found


def _read_array(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    array = read_npy(path)
    is_image = array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)
    if array.dtype != np.uint8 or not is_image:
        raise InputError(
            f"{path.name} must hold uint8 images (N, H, W) or (N, H, W, 3) to be shown, but is "
            f"{array.dtype} {array.shape}; give the folder of pictures or a table instead."
        )
    return array


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = next(reader, [])
            rows = []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(columns):
                    raise InputError(
                        f"line {reader.line_num} of {path.name} has {len(row)} cells, but the "
                        f"first line has {len(columns)}."
                    )
                rows.append(row)
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} of {path.name} is not CSV: {error}.") from error
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}.") from error
    if is_headless(columns):  # as `fit` will read it: the first line is an item, not names
        rows.insert(0, columns)
        columns = [f"column {k + 1}" for k in range(len(columns))]
    return columns, rows


def _read_parquet(path: Path) -> tuple[list[str], list[list[str]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path.name} is not a Parquet file that can be read.") from error
    cells = [["" if v is None else str(v) for v in column.to_pylist()] for column in table.columns]
    return list(table.column_names), [list(row) for row in zip(*cells, strict=True)]


def _check_distinct(ids: Sequence[str], column: str) -> None:
    seen: set[str] = set()
    for identity in ids:
        if not identity:
            raise InputError(f"the column {column} has an empty cell; every item needs an id.")
        if identity in seen:
            raise InputError(f"the column {column} has {identity!r} twice; ids must be distinct.")
        seen.add(identity)


def _is_text(name: str) -> bool:
    """Whether a file's name is proper text, which the database and the page can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…"
