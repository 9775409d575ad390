"""Small pictures of items as data URIs, from the run's thumbnails or from a folder of images."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.images import decode, for_display
from likewise.items.folder import list_images
from likewise.report.contents import Contents

BUDGET = 2_500_000  # characters of pictures in one page
SIDE = 96


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
    """Images by what they may be called: the path below the folder, and shorter forms of it.

    A shorter form (the bare name, without its ending, as a bare number) that several images share
    stands for none of them: a picture of another item is worse than none.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} of pictures.")
    names = list_images(folder)
    files = {name: folder / name for name in names}
    for form in (_base_name, _stem, _number):
        short = [form(name) for name in names]
        times = Counter(short)
        for name, shorter in zip(names, short, strict=True):
            if times[shorter] == 1:
                files.setdefault(shorter, folder / name)
    return files


def _base_name(name: str) -> str:
    return PurePosixPath(name).name


def _stem(name: str) -> str:
    return PurePosixPath(name).stem


def _number(name: str) -> str:
    stem = _stem(name)
    return str(int(stem)) if stem.isascii() and stem.isdigit() and len(stem) < 20 else stem


def _from_run(contents: Contents, item: int) -> str | None:
    if contents.thumbnails is None:
        return None
    where = int(np.searchsorted(contents.thumbnail_of, item))
    if where >= len(contents.thumbnail_of) or contents.thumbnail_of[where] != item:
        return None
    return encode(contents.thumbnails[where])


def _from_file(contents: Contents, item: int, files: dict[str, Path]) -> str | None:
    path = files.get(contents.label_of(item))
    if path is None:
        return None
    try:
        small = for_display(decode(path, side=2 * SIDE)).convert("RGB")
    except InputError:
        return None  # a picture that cannot be read is only not shown
    small.thumbnail((SIDE, SIDE))
    return encode(np.asarray(small))


def encode(pixels: NDArray[np.uint8]) -> str:
    """A (h, w) or (h, w, 3) uint8 picture as a data URI: lossless where that is small."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    few = pixels.ndim == 2 and pixels.size <= 32 * 32
    kind, options = ("png", {"optimize": True}) if few else ("webp", {"quality": 78})
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
