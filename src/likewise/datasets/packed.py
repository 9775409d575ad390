"""Compact parts of the CIFAR sets: WebP sheets and labels in ``NAME-KofN.npz`` files.

A set travels to another machine in such parts more cheaply than in its public layout: a sheet is a
lossless column of 32 x 32 images.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.datasets.cifar import CIFAR10_CLASSES, find_human_labels, with_human_labels
from likewise.datasets.dataset import Dataset, class_array
from likewise.datasets.mnist import load_mnist
from likewise.errors import InputError
from likewise.io.npy import read_npz

_CLASSES = {
    "cifar10": CIFAR10_CLASSES,
    "cifar100": tuple(f"class {c}" for c in range(100)),
}
Arrays = Mapping[str, NDArray[np.uint8]]


def load_packed(folder: str | Path, name: str) -> Dataset:
    """Join the parts of ``name`` in a folder; needs Pillow. MNIST is read in its own format.

    CIFAR-10N's labels are added when ``CIFAR-10_human.npz`` lies beside the parts; ``cifar10n`` is
    ``cifar10`` that must have them.
    """
    root = Path(folder)
    if name == "mnist":
        return load_mnist(root)
    base = "cifar10" if name == "cifar10n" else name
    if base not in _CLASSES:
        raise InputError(
            f"there are no packed parts of {name!r}; known are mnist, cifar10[n], cifar100."
        )
    parts = [read_npz(path) for path in _part_paths(root, base)]
    n_classes = len(_CLASSES[base])
    train_x = np.concatenate([_images(part, "train") for part in parts])
    train_y = np.concatenate([part["train_labels"] for part in parts])
    dataset = Dataset(
        name,
        train_x,
        class_array(train_y, n_classes, root),
        _images(parts[0], "test"),
        class_array(parts[0]["test_labels"], n_classes, root),
        _CLASSES[base],
    )
    if len(dataset.train_x) != len(train_y) or len(dataset.test_x) != len(dataset.test_y):
        raise InputError(f"the parts of {name} in {root} hold other numbers of images than labels.")
    human = find_human_labels(root) if base == "cifar10" else None
    if name == "cifar10n" and human is None:
        raise InputError(f"CIFAR-10_human.npz is missing in {root}: put it beside the parts.")
    return dataset if human is None else with_human_labels(dataset, human)


def _part_paths(root: Path, name: str) -> list[Path]:
    found: dict[int, Path] = {}
    total = 0
    for path in root.glob(f"{name}-*of*.npz"):
        if match := re.fullmatch(rf"{name}-(\d+)of(\d+)\.npz", path.name):
            found[int(match[1])], total = path, int(match[2])
    absent = [k for k in range(1, total + 1) if k not in found]
    if not found or absent or len(found) != total:
        raise InputError(
            f"{root} should hold all parts {name}-1ofN.npz to {name}-NofN.npz of one N; found "
            f"{', '.join(sorted(p.name for p in found.values())) or 'none'}."
        )
    return [found[k] for k in range(1, total + 1)]


def _images(part: Arrays, split: str) -> NDArray[np.uint8]:
    """Decode one part's sheets of a split to (n, 32, 32, 3)."""
    from PIL import Image

    def decode(key: str) -> NDArray[np.uint8]:
        with Image.open(io.BytesIO(part[key].tobytes()), formats=("WEBP",)) as sheet:
            return np.asarray(sheet.convert("RGB")).reshape(-1, 32, 32, 3)

    keys = sorted(key for key in part if re.fullmatch(rf"{split}-\d+", key))
    if not keys:
        raise InputError(f"a part holds no {split} images: it was not made for this.")
    with ThreadPoolExecutor() as pool:
        return np.concatenate(list(pool.map(decode, keys)))
