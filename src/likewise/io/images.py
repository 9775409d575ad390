"""The one decoder of image files: known formats, bounded size, upright, one clear error.

Fit, predict, the labelling page and the report all open pictures here, so that what people judge is
what a model learns from. Formats come from a list and never from what Pillow happens to support:
for some it would start other programs (PostScript goes to Ghostscript).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DamagedImageError, InputError
from likewise.io.regular import open_regular

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 64_000_000  # a decompression bomb is small on disk and fills the memory when decoded
MAX_FILE_BYTES = 256 * 2**20
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
# Grey with more than 256 steps: 16 bits (microscopy), 32 bits, fractions.
DEEP_MODES = frozenset({"I;16", "I;16L", "I;16B", "I;16N", "I", "F"})
_GREY_MODES = frozenset({"1", "L"})
_LARGE = 8_000_000
_one_large = Lock()  # large images are decoded one at a time, however many threads there are


def decode(path: str | Path, *, side: int | None = None, follow_links: bool = True) -> Image.Image:
    """The first picture of a file, turned upright, with the kind of pixel that the file has.

    Where it is only to be shown with ``side`` pixels a side, a JPEG may be decoded at a reduced
    size. `InputError` for anything that is missing, damaged, too large or no picture.
    """
    from PIL import Image

    with open_regular(path, follow_links=follow_links) as file, _decoding_errors(path):
        if (size := os.fstat(file.fileno()).st_size) > MAX_FILE_BYTES:
            raise InputError(
                f"{path} has {size / 2**20:,.0f} MiB, more than the {MAX_FILE_BYTES >> 20} MiB "
                "allowed for one image; make it smaller."
            )
        with Image.open(file, formats=FORMATS) as image:  # reads the header only
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise InputError(
                    f"{path} has {width} x {height} pixels, more than the {MAX_PIXELS:,} "
                    "allowed; make it smaller."
                )
            if side is not None:
                image.draft(None, (side, side))
            with _one_large if image.width * image.height > _LARGE else nullcontext():
                image.load()
                _turn_upright(image)
            return image


def open_image(path: str | Path) -> Image.Image:
    """An image in 8-bit colour; 16-bit grey is scaled from its whole range."""
    image = decode(path)
    if image.mode in DEEP_MODES:
        array = np.asarray(image)
        if array.dtype.kind == "f" or not 0 <= array.min() <= array.max() <= 65535:
            raise InputError(
                f"{path} holds numbers beyond 16-bit grey, which have no colour; save it as 8-bit "
                "or 16-bit."
            )
        image = _from_array((array / 257).round().astype(np.uint8))
    return image.convert("RGB")


def open_item(path: str | Path) -> Image.Image:
    """An image as a model learns from it: "L", "RGB", or "F" for grey of more than 8 bits.

    Deep grey keeps its numbers: scaling each image by itself would make them incomparable, and
    a model scales all of them by what it was fitted to.
    """
    image = decode(path)
    if image.mode in DEEP_MODES:
        return _from_array(np.asarray(image).astype(np.float32))
    return image.convert("L" if image.mode in _GREY_MODES else "RGB")


def for_display(image: Image.Image) -> Image.Image:
    """8 bits a channel for eyes: "RGB", or "RGBA" where there is transparency; no metadata.

    Deep grey is stretched from its darkest to its brightest pixel, as microscopists' viewers do.
    """
    if image.mode in DEEP_MODES:
        values = np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0, neginf=0)
        low, high = values.min(), values.max()
        image = _from_array(((values - low) / max(high - low, 1e-300) * 255).round().astype("u1"))
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    clean = image.convert("RGBA" if has_alpha else "RGB")
    clean.info = {}  # what encoders would copy from the original
    return clean


def resize_cover(image: Image.Image, height: int, width: int) -> Image.Image:
    """Scale so that the image just covers (height, width), keeping its proportions."""
    from PIL import Image

    scale = max(height / image.height, width / image.width)
    size = (max(width, round(image.width * scale)), max(height, round(image.height * scale)))
    return image if size == image.size else image.resize(size, Image.Resampling.BILINEAR)


def crop(
    image: Image.Image, height: int, width: int, rng: np.random.Generator | None = None
) -> Image.Image:
    """A (height, width) window: the middle one, or a random one when a generator is given."""
    top, left = image.height - height, image.width - width
    if rng is None:
        top, left = top // 2, left // 2
    else:
        top, left = int(rng.integers(top + 1)), int(rng.integers(left + 1))
    return image.crop((left, top, left + width, top + height))


def _turn_upright(image: Image.Image) -> None:
    """Turn an image as the camera's own note of its position (EXIF) says, where there is one."""
    from PIL import ImageOps

    # Odd metadata raises almost anything, and does no harm to the pixels.
    with suppress(Exception):
        ImageOps.exif_transpose(image, in_place=True)


def _from_array(array: NDArray[np.uint8] | NDArray[np.float32]) -> Image.Image:
    from PIL import Image

    return Image.fromarray(array)


@contextmanager
def _decoding_errors(path: str | Path) -> Iterator[None]:
    from PIL import Image

    try:
        yield
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(
            f"{path} has more than the {MAX_PIXELS:,} pixels allowed; make it smaller."
        ) from error
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files
        raise DamagedImageError(
            f"{path} is damaged, cut short or no image ({error}); replace or remove it."
        ) from error
