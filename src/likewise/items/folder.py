"""A folder of images as items."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import DamagedImageError, InputError
from likewise.io.images import SUFFIXES, crop, open_item, resize_cover
from likewise.io.limits import check_memory

Size = int | tuple[int, int]
Pixels = NDArray[np.uint8] | NDArray[np.float32]


def list_images(folder: str | Path, *, links_out: bool = True) -> list[str]:
    """Names of the images in a folder and its subfolders, relative to it, sorted.

    Without ``links_out``, a link that leads out of the folder is left out.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder of images.")
    inside = root.resolve()
    found = []
    for path in root.rglob("*"):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        if not path.is_file():
            continue
        if not links_out and not path.resolve().is_relative_to(inside):
            continue
        found.append(path.relative_to(root).as_posix())
    if not found:
        raise InputError(
            f"there are no images in {root} (looked for {', '.join(sorted(SUFFIXES))})."
        )
    _check_names(found, root)
    return sorted(found)


def read_images(
    folder: str | Path, size: Size | None = None, workers: int | None = None
) -> tuple[Pixels, list[str]]:
    """All images of a folder: ``(images, ids)``, in the order of their names.

    Images are (N, H, W) uint8 if all are grey, else (N, H, W, 3); grey of 16 bits or of fractions
    is (N, H, W) float32, its numbers as they are. With ``size`` (side, or height and width) each
    is scaled to cover it and its middle is taken; without, all must have one size. ``ids`` are the
    file names relative to the folder; a damaged image is left out, counted and told of, unless
    more than half are. Decoding runs in ``workers`` threads (Pillow decodes outside Python's lock,
    and processes would have to send every image back).
    """
    root, names = Path(folder), list_images(folder)
    shape = None if size is None else _height_width(size)

    def decode(name: str) -> Pixels | DamagedImageError:
        try:
            image = open_item(root / name)
        except DamagedImageError as damage:
            return damage
        if shape is not None:
            image = crop(resize_cover(image, *shape), *shape)
        return np.asarray(image)

    stack = _Stack(root, len(names))
    with warnings.catch_warnings(), ThreadPoolExecutor(_workers(workers)) as pool:
        warnings.simplefilter("ignore", UserWarning)  # Pillow's, of odd metadata in good images
        rest = iter(names)
        for name in rest:  # alone: the first good one says how much memory all of them take
            stack.add(name, decode(name))
            if stack.ids:
                break
        try:
            left = list(rest)
            for name, image in zip(left, pool.map(decode, left), strict=True):
                stack.add(name, image)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    tell_damaged(root, stack.damage, len(names))
    return stack.images[: len(stack.ids)], stack.ids


class _Stack:
    """Images side by side in one array, made when the first is known and never copied whole."""

    def __init__(self, root: Path, room: int) -> None:
        self._root, self._room = root, room
        self.images: Pixels = np.empty((0, 0, 0), np.uint8)
        """(room, H, W[, 3]) the first ``len(ids)`` are filled."""
        self.ids: list[str] = []
        """The names of the good ones."""
        self.damage: list[DamagedImageError] = []
        """Why the others cannot be opened."""

    def add(self, name: str, image: Pixels | DamagedImageError) -> None:
        """Put the next image in its place, or note that there is none."""
        if isinstance(image, DamagedImageError):
            self.damage.append(image)
            return
        k = len(self.ids)
        if k == 0:
            self.images = self._empty(image)
        self._check_alike(name, image)
        if image.ndim > self.images.ndim - 1:  # the first colour image among grey ones
            grey, self.images = self.images[:k], self._empty(image)
            self.images[:k] = grey[..., None]
        self.images[k] = image[..., None] if image.ndim < self.images.ndim - 1 else image
        self.ids.append(name)

    def _empty(self, like: Pixels) -> Pixels:
        check_memory(
            f"{self._root}: {self._room:,} images of {like.shape[0]} x {like.shape[1]} pixels",
            self._room * like.nbytes,
            instead="scale them (--image-size)",
        )
        return np.empty((self._room, *like.shape), like.dtype)

    def _check_alike(self, name: str, image: Pixels) -> None:
        first = self.ids[0] if self.ids else name
        height, width = self.images.shape[1:3]
        if image.shape[:2] != (height, width):
            raise InputError(
                f"{name} is {image.shape[0]} x {image.shape[1]} but {first} {height} x {width}: "
                "give a size, to which every image is then scaled."
            )
        if image.dtype != self.images.dtype:
            deep, plain = (name, first) if image.dtype == np.float32 else (first, name)
            raise InputError(
                f"{deep} is grey of more than 8 bits but {plain} has 8 bits a channel, so that "
                "their numbers do not compare: save all of them alike."
            )


def tell_damaged(root: Path, damage: list[DamagedImageError], listed: int) -> None:
    """One bad photograph does not make the judgements of all others useless."""
    if 2 * len(damage) > listed:
        raise damage[0]
    if damage:
        warnings.warn(
            f"{len(damage):,} of {listed:,} images in {root} cannot be opened and were left out, "
            f"such as this one: {damage[0]}",
            stacklevel=3,
        )


def _workers(asked: int | None) -> int:
    return asked or min(os.cpu_count() or 1, 16)


def _height_width(size: Size) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if not (0 < height <= 4096 and 0 < width <= 4096):
        raise InputError(f"an image size must lie between 1 and 4096, but is {height} x {width}.")
    return height, width


def _check_names(names: list[str], root: Path) -> None:
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{root} holds a file whose name is not UTF-8 text ({os.fsencode(name)!r}); "
                "rename it."
            ) from None
