"""Photographs and texts as they are: named, opened when they are asked for, told by their content.

A text is a text: it is never taken for a path or an address.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DamagedImageError, InputError
from likewise.io.images import SUFFIXES, crop, decode, open_image, resize_cover
from likewise.io.limits import text_array
from likewise.io.regular import open_regular
from likewise.items.files import open_item_table
from likewise.items.folder import list_images, tell_damaged
from likewise.items.tables import check_ids

if TYPE_CHECKING:
    from PIL.Image import Image

TEXT_SUFFIX = ".txt"
MAX_TEXT_BYTES = 4 * 2**20
THUMBNAIL = 48


@dataclass(frozen=True)
class Photographs:
    """The images of a folder."""

    root: Path
    names: list[str]
    """(N,) relative to the folder; they are the items' ids."""
    kind = "photographs"

    def __len__(self) -> int:
        return len(self.names)

    @property
    def ids(self) -> NDArray[np.str_] | None:
        """(N,) what the items are called."""
        return check_ids(self.names, self.root.name)

    def batch(self, rows: Sequence[int]) -> list[Image]:
        """Some of them, in 8-bit colour and upright."""
        return [open_image(self.root / self.names[k]) for k in rows]

    def digest(self, row: int) -> bytes:
        """Of the file as it is."""
        with open_regular(self.root / self.names[row]) as file:
            return hashlib.file_digest(file, "sha256").digest()

    def thumbnails(self, rows: Sequence[int]) -> NDArray[np.uint8]:
        """(n, h, w, 3) small pictures of some of them, for a report."""
        side = THUMBNAIL
        small = (crop(resize_cover(image, side, side), side, side) for image in self.batch(rows))
        return np.stack([np.asarray(image, np.uint8) for image in small])


@dataclass(frozen=True)
class Texts:
    """Texts of a folder of .txt files, or of a column of a table."""

    texts: list[str]
    """(N,) the texts themselves."""
    ids: NDArray[np.str_] | None
    """(N,) what they are called; None where nothing names them."""
    kind = "texts"

    def __len__(self) -> int:
        return len(self.texts)

    def batch(self, rows: Sequence[int]) -> list[str]:
        """Some of them."""
        return [self.texts[k] for k in rows]

    def digest(self, row: int) -> bytes:
        """Of the text in UTF-8."""
        return hashlib.sha256(self.texts[row].encode("utf-8", "replace")).digest()


RawItems = Photographs | Texts


def open_raw(
    path: str | Path, *, text: str | None = None, id_column: str | None = None
) -> RawItems | None:
    """Photographs or texts; None where the items are numbers already.

    ``text`` is the column of a table that holds the texts; a folder holds images, or else .txt
    files.
    """
    file = Path(path)
    if not file.exists():
        raise InputError(f"there is no file or folder {file}.")
    is_table = not file.is_dir() or any(file.glob("*.parquet"))
    if text is not None:
        if not is_table:
            raise InputError(f"--text names a column of a table, but {file} is a folder.")
        return _texts_of_table(file, text, id_column)
    if is_table:
        return None
    if holds_texts(file):
        return texts_of_folder(file)
    return Photographs(file, _sound_images(file))


def _sound_images(folder: Path) -> list[str]:
    """The names of the images that can be opened; of the others people are told."""
    damage: list[DamagedImageError] = []

    def is_sound(name: str) -> bool:
        try:
            decode(folder / name, side=THUMBNAIL)
        except DamagedImageError as error:
            damage.append(error)
            return False
        return True

    names = list_images(folder)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
        sound = [name for name, good in zip(names, pool.map(is_sound, names)) if good]
    tell_damaged(folder, damage, len(names))
    return sound


def holds_texts(folder: Path) -> bool:
    """Whether a folder is one of .txt files: it has some, and no image."""
    suffixes = {path.suffix.lower() for path in folder.rglob("*") if path.is_file()}
    return TEXT_SUFFIX in suffixes and not suffixes & SUFFIXES


def _texts_of_table(path: Path, column: str, id_column: str | None) -> Texts:
    table = open_item_table(path, id_column)
    if column not in table.columns:
        there = ", ".join(table.columns)
        raise InputError(f"{path.name} has no column {column}; the columns there are {there}.")
    rows = table.text(only=[column])
    texts = rows.cells.column(0).to_pylist()
    if not texts:
        raise InputError(f"{path.name} has no rows.")
    named = None if rows.ids is None else text_array(rows.ids, f"the ids of {path.name}")
    return Texts(texts, named)


def texts_of_folder(folder: Path, *, links_out: bool = True) -> Texts:
    """The .txt files of a folder and its subfolders, by their names relative to it.

    Without ``links_out``, a link that leads out of the folder is left out.
    """
    inside = folder.resolve()
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() == TEXT_SUFFIX
        and path.is_file()
        and not path.name.startswith(".")
        and (links_out or path.resolve().is_relative_to(inside))
    )
    return Texts([_read_text(folder / name) for name in names], check_ids(names, folder.name))


def _read_text(path: Path) -> str:
    with open_regular(path) as file:
        data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(f"{path} is larger than {MAX_TEXT_BYTES >> 20} MiB; give shorter texts.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; save it so.") from None
