"""Pictures made fit for the page: decoded within limits, turned upright, reduced, encoded anew.

Encoding anew means that what reaches a browser is pixels and nothing else: no metadata (a
photograph may say where it was taken), no script dressed up as a picture, no pixel flood.
"""

from __future__ import annotations

import io
import os
import warnings
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, NamedTuple

from likewise.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"})
MAX_PIXELS = 50_000_000
MAX_FILE_BYTES = 64 * 2**20
SIDE = 1024  # the longest side on the page
_SMALL = 256  # up to here PNG is small enough, and shows every pixel as it is


class Picture(NamedTuple):
    """An encoded picture and its media type."""

    data: bytes
    media_type: str


def encode_file(path: Path) -> Picture:
    """The picture in a file, for the page; `InputError` when it is none or too large."""
    # O_NOFOLLOW: a file that was swapped for a link after the folder was listed is not followed.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise InputError(f"{path.name} cannot be opened; is it still there?") from error
    with os.fdopen(handle, "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
            raise InputError(f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB; reduce it.")
        return encode(_decode(file, path.name))


def encode(image: Image) -> Picture:
    """Reduce and encode pixels: PNG where small or transparent, JPEG otherwise."""
    image.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    if max(image.size) <= _SMALL or image.mode == "RGBA":
        image.save(buffer, "PNG")
        return Picture(buffer.getvalue(), "image/png")
    image.save(buffer, "JPEG", quality=88)
    return Picture(buffer.getvalue(), "image/jpeg")


def _decode(file: IO[bytes], name: str) -> Image:
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(file, formats=FORMATS)  # reads the header only
        if opened.width * opened.height > MAX_PIXELS:
            raise InputError(f"{name} has more than {MAX_PIXELS // 10**6} million pixels.")
        opened.draft("RGB", (SIDE, SIDE))  # JPEG: decodes at a reduced size where that is enough
        image = ImageOps.exif_transpose(opened)
        has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
        clean = image.convert("RGBA" if has_alpha else "RGB")
        clean.info = {}  # what the encoders would copy from the original
    except InputError:
        raise
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files
        raise InputError(f"{name} is not a picture that can be read.") from error
    return clean


class PictureCache:
    """The last encoded pictures, up to a number of bytes; safe to share among threads."""

    def __init__(self, max_bytes: int = 64 * 2**20) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._pictures: OrderedDict[int, Picture] = OrderedDict()
        self._lock = Lock()

    def get(self, index: int) -> Picture | None:
        """The picture of that item, if it is still here."""
        with self._lock:
            picture = self._pictures.get(index)
            if picture is not None:
                self._pictures.move_to_end(index)
            return picture

    def put(self, index: int, picture: Picture) -> None:
        """Keep a picture, and let go of those that were not asked for the longest."""
        with self._lock:
            if index not in self._pictures:
                self._pictures[index] = picture
                self._bytes += len(picture.data)
            while self._bytes > self._max_bytes:
                _, old = self._pictures.popitem(last=False)
                self._bytes -= len(old.data)
