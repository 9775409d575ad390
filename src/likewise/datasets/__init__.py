"""Readers of public data sets, in the layouts in which they are published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from likewise.datasets.cifar import load_cifar10, load_cifar10n, load_cifar100
from likewise.datasets.clothing1m import load_clothing1m
from likewise.datasets.dataset import Dataset, data_root
from likewise.datasets.digits import load_digits
from likewise.datasets.food101 import load_food101
from likewise.datasets.mnist import load_mnist
from likewise.datasets.packed import load_packed
from likewise.errors import InputError
from likewise.items.folder import read_images
from likewise.items.streaming import ImageStream

__all__ = ["NAMES", "Dataset", "ImageStream", "load", "load_packed", "read_images"]

_READERS: dict[str, Callable[[Path], Dataset]] = {
    "mnist": load_mnist,
    "cifar10": load_cifar10,
    "cifar10n": load_cifar10n,
    "cifar100": load_cifar100,
    "clothing1m": load_clothing1m,
    "food101": load_food101,
    # A new data set goes here.
}
NAMES = ("digits", *_READERS)


def load(name: str, root: str | Path | None = None) -> Dataset:
    """Read a data set by name from the folder ``root`` (default: LIKEWISE_DATA).

    ``digits`` ships with scikit-learn and needs no folder.
    """
    if name == "digits":
        return load_digits()
    if name not in _READERS:
        raise InputError(f"there is no data set {name!r}; known are {', '.join(NAMES)}.")
    return _READERS[name](data_root(root))
