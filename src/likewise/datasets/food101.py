"""Food-101: 101 dishes, 750 web images each to train on (some wrong), 250 checked ones to test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.datasets.dataset import Dataset, find_folder, missing
from likewise.datasets.lists import inside, path_array, read_lines
from likewise.errors import InputError

PUBLISHED = "the page Food-101, Mining Discriminative Components with Random Forests, of ETH Zurich"


def load_food101(root: Path) -> Dataset:
    """Paths of the training and test images; ``noisy["web"]`` are the training labels as given.

    The training labels are known to be partly wrong and nobody knows which: ``train_y`` is None.
    """
    folder = find_folder(root, ("food-101", "Food-101", "food101", "."), "meta/classes.txt")
    if folder is None:
        put = "food-101/ with images/, meta/train.txt, meta/test.txt, meta/classes.txt"
        raise missing("Food-101", root, put, PUBLISHED)
    classes = tuple(read_lines(folder / "meta/classes.txt"))
    train_x, noisy = _listed(folder, "train.txt", classes)
    test_x, test_y = _listed(folder, "test.txt", classes)
    return Dataset("food101", train_x, None, test_x, test_y, classes, {"web": noisy})


def _listed(
    folder: Path, name: str, classes: tuple[str, ...]
) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    number = {title: c for c, title in enumerate(classes)}
    paths, labels = [], []
    for line in read_lines(folder / "meta" / name):
        title = line.split("/")[0]
        if title not in number:
            raise InputError(f"{folder / 'meta' / name}: {line!r} is of no class in classes.txt.")
        paths.append(inside(folder / "images", f"{line}.jpg"))
        labels.append(number[title])
    return path_array(paths), np.array(labels, np.int64)
