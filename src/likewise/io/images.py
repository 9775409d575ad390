"""Decoding image files from strangers: known formats only, bounded size, one clear error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 64_000_000  # a decompression bomb is small on disk and fills the memory when decoded
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
GREY_MODES = frozenset({"1", "L", "I;16", "I", "F"})


def open_image(path: str | Path, *, mode: str | None = "RGB") -> Image.Image:
    """The decoded image, converted to ``mode`` ("L" or "RGB"; None: whichever it is nearer to)."""
    from PIL import Image

    try:
        with Image.open(path, formats=FORMATS) as image:  # reads the header only
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise InputError(
                    f"{path} has {width} x {height} pixels, more than the {MAX_PIXELS:,} "
                    "allowed; make it smaller."
                )
            wanted = mode or ("L" if image.mode in GREY_MODES else "RGB")
            image.load()
            return image if image.mode == wanted else image.convert(wanted)
    except FileNotFoundError:
        raise InputError(f"{path} is missing.") from None
    except Image.DecompressionBombError as error:
        raise InputError(f"{path} has too many pixels to be decoded safely.") from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is damaged, cut short or no image ({error}); replace or remove it."
        ) from error


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


def pixels(image: Image.Image) -> NDArray[np.uint8]:
    """(H, W) or (H, W, 3) uint8."""
    array: NDArray[Any] = np.asarray(image)
    return array.astype(np.uint8, copy=False)
