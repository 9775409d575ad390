"""Pictures made fit for the page: reduced and encoded anew.

Encoding anew means that what reaches a browser is pixels and nothing else: no metadata (a
photograph may say where it was taken), no script dressed up as a picture, no pixel flood.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from likewise.io.images import decode, for_display

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 1024  # the longest side on the page
_SMALL = 256  # up to here PNG is small enough, and shows every pixel as it is


class Picture(NamedTuple):
    """An encoded picture."""

    data: bytes
    """The bytes of the PNG or JPEG file."""
    media_type: str
    """What the browser is told that they are."""


def encode_file(path: Path) -> Picture:
    """The picture in a file, for the page; `InputError` when it is none or too large."""
    # A file that was swapped for a link after the folder was listed is not followed.
    return encode(for_display(decode(path, side=SIDE, follow_links=False)))


def encode(image: Image) -> Picture:
    """Reduce and encode pixels: PNG where small or transparent, JPEG otherwise."""
    image.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    if max(image.size) <= _SMALL or image.mode == "RGBA":
        image.save(buffer, "PNG")
        return Picture(buffer.getvalue(), "image/png")
    image.save(buffer, "JPEG", quality=88)
    return Picture(buffer.getvalue(), "image/jpeg")


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
