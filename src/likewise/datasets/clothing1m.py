"""Clothing1M: a million web images of clothes in 14 classes, labelled by the text around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.datasets.dataset import Dataset, class_array, find_folder, missing
from likewise.datasets.lists import inside, path_array, read_key_values, read_lines
from likewise.errors import InputError

PUBLISHED = "the Clothing1M project of Xiao and others, who give it on request"
CLASSES = (
    "T-Shirt",
    "Shirt",
    "Knitwear",
    "Chiffon",
    "Sweater",
    "Hoodie",
    "Windbreaker",
    "Jacket",
    "Downcoat",
    "Suit",
    "Shawl",
    "Dress",
    "Vest",
    "Underwear",
)


def load_clothing1m(root: Path) -> Dataset:
    """Paths of the noisy training and the clean test images; ``noisy["web"]`` are their labels.

    Nobody knows the true classes of the noisy images: ``train_y`` is None.
    """
    folder = find_folder(root, ("Clothing1M", "clothing1m", "."), "noisy_train_key_list.txt")
    if folder is None:
        put = "Clothing1M/ with images/, noisy_train_key_list.txt, noisy_label_kv.txt, clean_*.txt"
        raise missing("Clothing1M", root, put, PUBLISHED)
    train_x, noisy = _listed(folder, "noisy_train_key_list.txt", "noisy_label_kv.txt")
    test_x, test_y = _listed(folder, "clean_test_key_list.txt", "clean_label_kv.txt")
    return Dataset("clothing1m", train_x, None, test_x, test_y, CLASSES, {"web": noisy})


def _listed(folder: Path, keys: str, values: str) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    names, table = read_lines(folder / keys), read_key_values(folder / values)
    unlabelled = next((name for name in names if name not in table), None)
    if unlabelled is not None:
        raise InputError(f"{folder / values} has no label for {unlabelled}, which {keys} lists.")
    labels = class_array([table[name] for name in names], len(CLASSES), folder / values)
    return path_array([inside(folder, name) for name in names]), labels
