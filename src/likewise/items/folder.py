"""A folder of images as items."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.images import SUFFIXES, crop, open_image, pixels, resize_cover

Size = int | tuple[int, int]


def list_images(folder: str | Path) -> list[str]:
    """Names of the images in a folder and its subfolders, relative to it, sorted."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder of images.")
    found = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    ]
    if not found:
        raise InputError(
            f"there are no images in {root} (looked for {', '.join(sorted(SUFFIXES))})."
        )
    return sorted(found)


def read_images(
    folder: str | Path, size: Size | None = None, workers: int | None = None
) -> tuple[NDArray[np.uint8], list[str]]:
    """All images of a folder: ``(images, ids)``, in the order of their names.

    Images are (N, H, W) uint8 if all are grey, else (N, H, W, 3). With ``size`` (side, or height
    and width) each is scaled to cover it and its middle is taken; without, all must have one size.
    ``ids`` are the file names relative to the folder. Decoding runs in ``workers`` threads
    (Pillow decodes outside Python's lock, and processes would have to send every image back).
    """
    root, ids = Path(folder), list_images(folder)
    shape = None if size is None else _height_width(size)

    def decode(name: str) -> NDArray[np.uint8]:
        image = open_image(root / name, mode=None)
        if shape is not None:
            image = crop(resize_cover(image, *shape), *shape)
        return pixels(image)

    with warnings.catch_warnings(), ThreadPoolExecutor(_workers(workers)) as pool:
        warnings.simplefilter("ignore", UserWarning)  # Pillow's, of odd metadata in good images
        decoded = list(pool.map(decode, ids))
    _check_one_size(decoded, ids)
    if all(image.ndim == 2 for image in decoded):
        return np.stack(decoded), ids
    return np.stack([_as_colour(image) for image in decoded]), ids


def _workers(asked: int | None) -> int:
    return asked or min(os.cpu_count() or 1, 16)


def _height_width(size: Size) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if not (0 < height <= 4096 and 0 < width <= 4096):
        raise InputError(f"an image size must lie between 1 and 4096, but is {height} x {width}.")
    return height, width


def _check_one_size(decoded: list[NDArray[np.uint8]], ids: list[str]) -> None:
    first = decoded[0].shape[:2]
    for image, name in zip(decoded, ids, strict=True):
        if image.shape[:2] != first:
            raise InputError(
                f"{name} is {image.shape[0]} x {image.shape[1]} but {ids[0]} {first[0]} x "
                f"{first[1]}: give a size, to which every image is then scaled."
            )


def _as_colour(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
