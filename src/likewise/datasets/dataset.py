"""What a reader returns, and how readers find files and complain about missing ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.io.npy import Array

ROOT_VARIABLE = "LIKEWISE_DATA"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Items of one data set, with their classes where these are known.

    Items are uint8 images (N, H, W) or (N, H, W, 3), float32 features (N, d), or, for the sets that
    are too large to hold, the paths of the images (N,) (`is_listed`): see `items.streaming`.
    """

    name: str
    """What it is called, as for `likewise.datasets.load`."""
    train_x: Array
    """(N, ...) items to train on."""
    train_y: NDArray[np.int64] | None
    """(N,) their true classes, None where nobody knows them. For making and scoring experiments
    only: training never sees them."""
    test_x: Array
    """(N', ...) items to test on."""
    test_y: NDArray[np.int64]
    """(N',) their true classes."""
    classes: tuple[str, ...]
    """The names of the classes, in the order of their numbers."""
    noisy: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """Perceived classes (noisy labels) of the training items (N,), by the name of their source."""

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def is_listed(self) -> bool:
        """Whether the items are paths of image files rather than pixels."""
        return self.train_x.dtype.kind == "U"

    def __repr__(self) -> str:
        noisy = f", noisy {'/'.join(self.noisy)}" if self.noisy else ""
        return (
            f"Dataset({self.name}: {len(self.train_x):,} + {len(self.test_x):,} items "
            f"{self.train_x.shape[1:]} {self.train_x.dtype}, {self.n_classes} classes{noisy})"
        )


def data_root(root: str | Path | None = None) -> Path:
    """The folder that holds the data sets: ``root``, or what the variable LIKEWISE_DATA names."""
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE)
    if not chosen:
        raise InputError(
            f"no data folder: give one (--data DIR), or set the environment variable "
            f"{ROOT_VARIABLE} to the folder that holds the data sets."
        )
    path = Path(chosen).expanduser()
    if not path.is_dir():
        raise InputError(f"the data folder {path} does not exist or is not a folder.")
    return path


def find_folder(root: Path, names: Sequence[str], marker: str) -> Path | None:
    """The first of ``root / name`` that holds a file matching the glob ``marker``."""
    for name in names:
        folder = root / name
        if folder.is_dir() and next(folder.glob(marker), None) is not None:
            return folder
    return None


def missing(what: str, root: Path, put: str, published: str) -> InputError:
    """The error for a data set that is not there: what to put where, and who publishes it."""
    return InputError(
        f"{what} was not found under {root}: put {put} there (published on {published})."
    )


def class_array(values: ArrayLike, n_classes: int, source: Path) -> NDArray[np.int64]:
    """Class numbers (N,) int64, checked to lie in 0..n_classes-1."""
    y = np.asarray(values)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise InputError(f"{source} should hold one whole number an item, but is not of that form.")
    y = y.astype(np.int64)
    if len(y) and not (y.min() >= 0 and y.max() < n_classes):
        wrong = int(np.argmax((y < 0) | (y >= n_classes)))
        raise InputError(
            f"{source} gives item {wrong} the class {y[wrong]}, "
            f"but the classes are 0 to {n_classes - 1}."
        )
    return y


def check_counts(dataset: Dataset, n_train: int, n_test: int) -> Dataset:
    """The data set itself, if it holds as many items as its publisher says."""
    found = (len(dataset.train_x), len(dataset.test_x))
    if found != (n_train, n_test):
        raise InputError(
            f"{dataset.name} should have {n_train:,} + {n_test:,} images, but {found[0]:,} + "
            f"{found[1]:,} were found: a file is incomplete or of another set."
        )
    return dataset
