"""MNIST in its own idx format, compressed or not."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.datasets.dataset import Dataset, check_counts, class_array, find_folder, missing
from likewise.errors import InputError

FOLDERS = ("MNIST/raw", "MNIST", "mnist", "mnist/raw", ".")
PUBLISHED = "Yann LeCun's page THE MNIST DATABASE of handwritten digits"


def load_mnist(root: Path, *, partial: bool = False) -> Dataset:
    """60,000 + 10,000 grey images (N, 28, 28) uint8; ``partial`` accepts fewer (for tests)."""
    folder = find_folder(root, FOLDERS, "train-images*idx3-ubyte*")
    if folder is None:
        put = "MNIST/raw/{train,t10k}-{images-idx3,labels-idx1}-ubyte (or .gz)"
        raise missing("MNIST", root, put, PUBLISHED)
    train_x, train_y = _split(folder, "train")
    test_x, test_y = _split(folder, "t10k")
    classes = tuple(map(str, range(10)))
    dataset = Dataset("mnist", train_x, train_y, test_x, test_y, classes)
    return dataset if partial else check_counts(dataset, 60_000, 10_000)


def _split(folder: Path, split: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images_path = _find(folder, split, "images", "idx3")
    labels_path = _find(folder, split, "labels", "idx1")
    images, labels = read_idx(images_path), class_array(read_idx(labels_path), 10, labels_path)
    if images.ndim != 3 or images.shape[1:] != (28, 28):
        raise InputError(f"{images_path} should hold 28 x 28 images, not shape {images.shape}.")
    if len(images) != len(labels):
        raise InputError(
            f"{images_path} holds {len(images)} images, but {labels_path} {len(labels)} labels."
        )
    return images, labels


def _find(folder: Path, split: str, what: str, kind: str) -> Path:
    # Both spellings are in circulation: some tools turn the last dash into a dot.
    for name in (f"{split}-{what}-{kind}-ubyte", f"{split}-{what}.{kind}-ubyte"):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise missing(
        f"MNIST's {split} {what}", folder, f"{split}-{what}-{kind}-ubyte (or .gz)", PUBLISHED
    )


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of an idx file of unsigned bytes, of any number of dimensions."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            magic = file.read(4)
            if len(magic) < 4 or magic[:3] != b"\0\0\x08" or not 1 <= magic[3] <= 4:
                raise InputError(f"{path} is not an idx file of bytes (its first bytes are wrong).")
            header = file.read(4 * magic[3])
            whole = len(header) == 4 * magic[3]
            shape = tuple(int(n) for n in np.frombuffer(header, ">u4")) if whole else ()
            size = int(np.prod(shape, dtype=np.float64)) if whole else -1
            if not 0 <= size < 2**31:
                raise InputError(f"{path} is not an idx file: its header makes no sense.")
            body = file.read(size + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged or incomplete ({error}); fetch it again.") from error
    if len(body) != size:
        found = f"{len(body)}" if len(body) < size else f"more than {size}"
        raise InputError(
            f"{path} should hold {size} bytes after its header, but has {found}; fetch it again."
        )
    return np.frombuffer(bytearray(body), np.uint8).reshape(shape)
