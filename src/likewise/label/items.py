"""What is shown: the pictures of a folder or of an array, or the rows of a table.

Items are read as `fit` reads them (`likewise.items.files`), so that they go by the same ids. They
are loaded once, by `open_items`; the page then asks for them by number only, so no request can name
a path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.items.files import ItemFile, open_item_table, read_array
from likewise.items.folder import list_images
from likewise.items.raw import holds_texts, texts_of_folder
from likewise.items.tables import TextRows
from likewise.label.pictures import Picture, PictureCache, encode, encode_file

MAX_ITEMS = 1_000_000
MAX_COLUMNS = 40
MAX_CELL = 4000


class Items(Protocol):
    """N items with distinct text ids; each is a picture, or a row of named cells."""

    ids: Sequence[str]
    are_pictures: bool
    are_numbered: bool  # their ids are positions, which any other items have too

    def picture(self, index: int) -> Picture:
        """The encoded picture of an item."""

    def cells(self, index: int) -> list[tuple[str, str]]:
        """The (column, text) cells of an item that is a row."""

    def content(self, index: int) -> bytes:
        """What tells an item that goes by its number from another of that number."""


class PictureFolder:
    """All pictures under a folder; an id is the path below it, with forward slashes."""

    are_pictures = True
    are_numbered = False

    def __init__(self, root: Path) -> None:
        self._folder, self._root = root, root.resolve()
        self.ids: Sequence[str] = list_images(root, links_out=False)
        self._cache = PictureCache()

    def picture(self, index: int) -> Picture:
        if (cached := self._cache.get(index)) is not None:
            return cached
        # Resolved again at each reading: a folder on the way may have become a link since.
        path = (self._folder / self.ids[index]).resolve()
        if not path.is_relative_to(self._root):
            raise InputError(f"{self.ids[index]} leads out of the folder of items.")
        picture = encode_file(path)
        self._cache.put(index, picture)
        return picture

    def cells(self, index: int) -> list[tuple[str, str]]:
        raise NotImplementedError("pictures have no cells")

    def content(self, index: int) -> bytes:
        return self.ids[index].encode()


class PictureArray:
    """uint8 images (N, H, W) or (N, H, W, 3) with their ids, or with their numbers."""

    are_pictures = True

    def __init__(self, pixels: NDArray[np.uint8], ids: Sequence[str] | None) -> None:
        self._pixels, self.are_numbered = pixels, ids is None
        self.ids = [str(k) for k in range(len(pixels))] if ids is None else ids

    def picture(self, index: int) -> Picture:
        from PIL import Image

        return encode(Image.fromarray(np.ascontiguousarray(self._pixels[index])))

    def cells(self, index: int) -> list[tuple[str, str]]:
        raise NotImplementedError("pictures have no cells")

    def content(self, index: int) -> bytes:
        return bytes(np.ascontiguousarray(self._pixels[index]).data)


class Table:
    """Rows of a table; an id is what its id column says, or the row number."""

    are_pictures = False

    def __init__(self, rows: TextRows) -> None:
        self._rows, self.are_numbered = rows, rows.ids is None
        numbered = (str(k) for k in range(rows.cells.num_rows))
        self.ids: Sequence[str] = list(numbered) if rows.ids is None else rows.ids

    def picture(self, index: int) -> Picture:
        raise InputError("the items are rows of a table, not pictures.")

    def cells(self, index: int) -> list[tuple[str, str]]:
        return [(name, _shorten(text)) for name, text in self._rows.row(index)]

    def content(self, index: int) -> bytes:
        return repr(self._rows.row(index)).encode()


def open_items(path: str | Path, id_column: str | None = None) -> Items:
    """The items of a folder of pictures or of .txt files, a table, or an array of images."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file or folder {path}; check the name.")
    items: Items
    if path.is_dir() and not any(path.glob("*.parquet")):
        items = Table(_text_files(path)) if holds_texts(path) else PictureFolder(path)
    elif not path.is_dir() and (array := read_array(path)) is not None:
        items = _pictures_in(array, path)
    else:
        items = Table(open_item_table(path, id_column).text(MAX_COLUMNS))
    if len(items.ids) < 2:
        raise InputError(f"{path} holds {len(items.ids)} items to compare, but it takes two.")
    if len(items.ids) > MAX_ITEMS:
        raise InputError(f"{path} holds more than {MAX_ITEMS:,} items; judge a part of them.")
    return items


def _text_files(folder: Path) -> TextRows:
    """Texts in files as a table of one column; read once, so that no request names a path."""
    import pyarrow as pa

    found = texts_of_folder(folder, links_out=False)
    ids = None if found.ids is None else found.ids.tolist()
    return TextRows(["text"], ids, pa.table({"0": pa.array(found.texts, pa.string())}))


def looks_of(items: Items) -> Callable[[Sequence[str]], dict[str, str]] | None:
    """Digests of the items at some numbers; None where items have names of their own."""
    if not getattr(items, "are_numbered", False):
        return None

    def looks(ids: Sequence[str]) -> dict[str, str]:
        content = ((identity, items.content(int(identity))) for identity in ids)
        return {name: hashlib.blake2b(data, digest_size=8).hexdigest() for name, data in content}

    return looks


def _pictures_in(file: ItemFile, path: Path) -> PictureArray:
    array = file.items
    is_image = array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)
    if array.dtype != np.uint8 or not is_image:
        raise InputError(
            f"{path.name} must hold uint8 images (N, H, W) or (N, H, W, 3) to be shown, but is "
            f"{array.dtype} {array.shape}; give the folder of pictures or a table instead."
        )
    return PictureArray(array, None if file.ids is None else file.ids.tolist())


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…"
