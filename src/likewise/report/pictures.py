"""Small pictures of items as data URIs, from the run's thumbnails or from a folder of images."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.report.contents import Contents

BUDGET = 2_500_000  # characters of pictures in one page
SIDE = 96
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
MAX_PIXELS = 50_000_000


def pictures_of(
    contents: Contents, wanted: Iterable[int], folder: str | Path | None = None
) -> dict[int, str]:
    """Data URIs of the wanted items (positions among all N) that have a picture.

    In the order wanted, as many as the budget of the page allows.
    """
    items = list(dict.fromkeys(wanted))
    found: dict[int, str] = {}
    spent = 0
    files = None if folder is None else image_files(Path(folder))
    for item in items:
        uri = _from_run(contents, item) if files is None else _from_file(contents, item, files)
        if uri is None:
            continue
        spent += len(uri)
        if spent > BUDGET:
            break
        found[item] = uri
    return found


def image_files(folder: Path) -> dict[str, Path]:
    """Images by what they may be called: their name, without its ending, as a bare number."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} of pictures.")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES:
            for name in (path.name, path.stem, _number(path.stem)):
                files.setdefault(name, path)
    if not files:
        raise InputError(f"{folder} holds no pictures ({', '.join(SUFFIXES)}).")
    return files


def _number(stem: str) -> str:
    return str(int(stem)) if stem.isascii() and stem.isdigit() else stem


def _from_run(contents: Contents, item: int) -> str | None:
    if contents.thumbnails is None:
        return None
    where = int(np.searchsorted(contents.thumbnail_of, item))
    if where >= len(contents.thumbnail_of) or contents.thumbnail_of[where] != item:
        return None
    return encode(contents.thumbnails[where])


def _from_file(contents: Contents, item: int, files: dict[str, Path]) -> str | None:
    from PIL import Image, UnidentifiedImageError

    path = files.get(contents.label_of(item))
    if path is None:
        return None
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            image.draft("RGB", (2 * SIDE, 2 * SIDE))
            small = image.convert("RGB")
            small.thumbnail((SIDE, SIDE))
            return encode(np.asarray(small))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError):
        return None  # a picture that cannot be read is only not shown


def encode(pixels: NDArray[Any]) -> str:
    """A (h, w) or (h, w, 3) uint8 picture as a data URI: lossless where that is small."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    few = pixels.ndim == 2 and pixels.size <= 32 * 32
    kind, options = ("png", {"optimize": True}) if few else ("webp", {"quality": 78})
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
