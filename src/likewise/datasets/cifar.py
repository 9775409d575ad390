"""CIFAR-10, CIFAR-100 and the human labels CIFAR-10N, in the binary and the Python version."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.datasets.dataset import Dataset, check_counts, class_array, find_folder, missing
from likewise.datasets.safe_pickle import load_arrays
from likewise.errors import InputError
from likewise.io.npy import read_npz

PUBLISHED = "Alex Krizhevsky's page The CIFAR-10 dataset"
PUBLISHED_HUMAN = "the page Learning with Noisy Labels of CIFAR-10N, by Wei, Zhu and others"
CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
HUMAN_SOURCES = {
    "aggre": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "worse": "worse_label",
}
_PIXELS = 32 * 32 * 3

Split = tuple[NDArray[np.uint8], NDArray[np.int64]]


def load_cifar10(root: Path, *, partial: bool = False) -> Dataset:
    """50,000 + 10,000 images (N, 32, 32, 3) uint8; with the CIFAR-10N labels if they are there."""
    batches = [f"data_batch_{i}" for i in range(1, 6)]
    folder, read = _version(root, "cifar-10-batches-bin", "cifar-10-batches-py", "test_batch*")
    if folder is None:
        put = "cifar-10-batches-bin/ (binary version) or cifar-10-batches-py/ (Python version)"
        raise missing("CIFAR-10", root, put, PUBLISHED)
    parts = [read(folder, name, b"labels", 10) for name in batches]
    train_x, train_y = (np.concatenate(column) for column in zip(*parts, strict=True))
    test_x, test_y = read(folder, "test_batch", b"labels", 10)
    dataset = Dataset("cifar10", train_x, train_y, test_x, test_y, CIFAR10_CLASSES)
    if not partial:
        check_counts(dataset, 50_000, 10_000)
    human = find_human_labels(root)
    return dataset if human is None else with_human_labels(dataset, human)


def load_cifar10n(root: Path, *, partial: bool = False) -> Dataset:
    """CIFAR-10 with the labels that people gave its training images (`Dataset.noisy`)."""
    dataset = load_cifar10(root, partial=partial)
    if not dataset.noisy:
        raise missing("CIFAR-10N", root, "CIFAR-10N/CIFAR-10_human.npz", PUBLISHED_HUMAN)
    return dataclasses.replace(dataset, name="cifar10n")


def load_cifar100(root: Path, *, partial: bool = False) -> Dataset:
    """50,000 + 10,000 images (N, 32, 32, 3) uint8 of the 100 fine classes."""
    folder, read = _version(root, "cifar-100-binary", "cifar-100-python", "test*")
    if folder is None:
        put = "cifar-100-binary/ (binary version) or cifar-100-python/ (Python version)"
        raise missing("CIFAR-100", root, put, PUBLISHED)
    train_x, train_y = read(folder, "train", b"fine_labels", 100)
    test_x, test_y = read(folder, "test", b"fine_labels", 100)
    names = _fine_names(folder)
    dataset = Dataset("cifar100", train_x, train_y, test_x, test_y, names)
    return dataset if partial else check_counts(dataset, 50_000, 10_000)


def find_human_labels(root: Path) -> Path | None:
    """The CIFAR-10N file under ``root``, or None."""
    folder = find_folder(root, ("CIFAR-10N", "cifar-10n", "."), "CIFAR-10_human.npz")
    return None if folder is None else folder / "CIFAR-10_human.npz"


def with_human_labels(dataset: Dataset, path: Path) -> Dataset:
    """The data set with CIFAR-10N's labels added, checked to belong to these images."""
    stored = read_npz(path)
    absent = [key for key in HUMAN_SOURCES.values() if key not in stored]
    if absent:
        raise InputError(f"{path} lacks {', '.join(absent)}; it holds {', '.join(stored)}.")
    noisy = {name: class_array(stored[key], 10, path) for name, key in HUMAN_SOURCES.items()}
    if any(len(labels) != len(dataset.train_x) for labels in noisy.values()):
        raise InputError(f"{path} does not hold {len(dataset.train_x):,} labels a source.")
    truth = dataset.train_y
    clean = stored.get("clean_label")
    if clean is not None and truth is not None and not np.array_equal(clean, truth):
        raise InputError(f"the images of {dataset.name} do not stand in the order of {path}.")
    return dataclasses.replace(dataset, noisy=noisy)


def _version(root: Path, binary: str, python: str, marker: str) -> tuple[Path | None, Any]:
    """The folder of whichever version is there, and the function that reads its files."""
    if (folder := find_folder(root, (binary,), f"{marker}.bin")) is not None:
        return folder, _read_binary
    return find_folder(root, (python,), marker), _read_python


def _read_binary(folder: Path, name: str, labels: bytes, n_classes: int) -> Split:
    """Records of label byte(s) and 3,072 pixels; CIFAR-100's have the coarse label first."""
    path = _existing(folder / f"{name}.bin")
    n_labels = 2 if labels == b"fine_labels" else 1
    raw = np.fromfile(path, np.uint8)
    if len(raw) == 0 or len(raw) % (n_labels + _PIXELS):
        raise InputError(f"{path} is cut short or of another kind: {len(raw)} bytes.")
    records = raw.reshape(-1, n_labels + _PIXELS)
    return _images(records[:, n_labels:]), class_array(records[:, n_labels - 1], n_classes, path)


def _read_python(folder: Path, name: str, labels: bytes, n_classes: int) -> Split:
    path = _existing(folder / name)
    batch = load_arrays(path)
    data = batch.get(b"data")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
        raise InputError(f"{path} should hold data (N, {_PIXELS}) uint8, but does not.")
    y = class_array(batch.get(labels, []), n_classes, path)
    if len(y) != len(data):
        raise InputError(f"{path} holds {len(data)} images but {len(y)} {labels.decode()}.")
    return _images(data), y


def _images(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, 3072), red plane first -> (N, 32, 32, 3)."""
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise missing(path.name, path.parent, f"the file {path.name}", PUBLISHED)
    return path


def _fine_names(folder: Path) -> tuple[str, ...]:
    text, pickled = folder / "fine_label_names.txt", folder / "meta"
    if text.is_file():
        names = text.read_text(encoding="utf-8").split()
    elif pickled.is_file():
        names = [n.decode("utf-8") for n in load_arrays(pickled).get(b"fine_label_names", [])]
    else:
        names = [f"class {c}" for c in range(100)]
    if len(names) != 100:
        raise InputError(f"{folder} should name 100 classes, but names {len(names)}.")
    return tuple(names)
