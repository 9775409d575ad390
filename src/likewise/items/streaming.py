"""Streaming images that are too many to hold: decoded and augmented in worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset

from likewise.errors import InputError
from likewise.io.images import crop, open_image, resize_cover


@dataclass(frozen=True)
class _Fault:
    """An image that could not be read: travels back from a worker as a value, not a traceback."""

    message: str
    """The sentence that names it."""


@dataclass(frozen=True)
class Batch:
    """Some images of an epoch."""

    images: Tensor
    """(B, size, size, 3) uint8."""
    labels: Tensor
    """(B,) int64, the class of each as it was given."""
    items: Tensor
    """(B,) int64, their positions among those listed."""


# Pixels or what went wrong, the class, the position.
_Row = tuple[NDArray[np.uint8] | _Fault, int, int]


class _Files(TorchDataset[_Row]):
    """Item (epoch, i) is the i-th image; its crop and flip depend on (seed, epoch, i) alone."""

    def __init__(
        self, paths: NDArray[np.str_], labels: NDArray[np.int64], size: int, margin: int, seed: int
    ) -> None:
        self.paths, self.labels = paths, labels
        self.size, self.margin, self.seed = size, margin, seed

    def __getitem__(self, key: tuple[int, int]) -> _Row:
        epoch, i = key
        try:
            image = open_image(str(self.paths[i]))
        except InputError as error:
            return _Fault(str(error)), int(self.labels[i]), i
        rng = None if epoch < 0 else np.random.default_rng((self.seed, epoch, i))
        side = self.size + self.margin
        window = np.asarray(crop(resize_cover(image, side, side), self.size, self.size, rng))
        if rng is not None and rng.random() < 0.5:
            window = window[:, ::-1]
        return np.ascontiguousarray(window), int(self.labels[i]), i


class _Order(Sampler[tuple[int, int]]):
    """(epoch, item) keys of one epoch; epoch -1 means no augmentation."""

    def __init__(self, n_items: int, shuffle: bool, seed: int) -> None:
        self.n_items, self.shuffle, self.seed = n_items, shuffle, seed
        self.epoch = 0
        self.given: NDArray[np.int64] | None = None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        epoch = self.epoch if self.shuffle else -1
        return iter([(epoch, int(i)) for i in self._items()])

    def _items(self) -> NDArray[np.int64]:
        if self.given is not None:
            return self.given
        if not self.shuffle:
            return np.arange(self.n_items)
        return np.random.default_rng((self.seed, self.epoch)).permutation(self.n_items)

    def __len__(self) -> int:
        return self.n_items if self.given is None else len(self.given)


def _collate(rows: Sequence[_Row]) -> tuple[list[Tensor], list[int], list[int], list[str]]:
    good = [(image, label, k) for image, label, k in rows if not isinstance(image, _Fault)]
    faults = [image.message for image, _, _ in rows if isinstance(image, _Fault)]
    images = [torch.from_numpy(np.stack([row[0] for row in good]))] if good else []
    return images, [row[1] for row in good], [row[2] for row in good], faults


class ImageStream:
    """Batches of listed images, one epoch an iteration.

    Parameters
    ----------
    paths, labels : (N,)
        Image files and whatever class belongs to each (perceived classes in training).
    size, margin : int
        An image is scaled so that its short side is ``size + margin``, then a window of ``size``
        is cut: at random, and mirrored half the time, when ``augment``, else the middle one.
    workers : int
        Processes that decode; 0 decodes in this one.
    on_error : "raise" or "skip"
        An image that is missing, cut short or too large stops the iteration with its name, or is
        left out and listed in ``faults``.
    seed : int
        Order, crops and flips depend on it and on the epoch, not on the number of workers.
    """

    def __init__(
        self,
        paths: ArrayLike,
        labels: ArrayLike,
        *,
        batch_size: int = 256,
        size: int = 224,
        margin: int = 32,
        augment: bool = True,
        workers: int = 4,
        on_error: Literal["raise", "skip"] = "raise",
        seed: int = 0,
    ) -> None:
        self.paths: NDArray[np.str_] = np.asarray(paths, np.str_)
        self.labels: NDArray[np.int64] = np.asarray(labels, np.int64)
        if self.paths.shape != self.labels.shape or self.paths.ndim != 1:
            raise InputError(
                f"there must be one label an image, but paths have shape {self.paths.shape} and "
                f"labels {self.labels.shape}."
            )
        if on_error not in ("raise", "skip"):
            raise InputError(f"on_error must be 'raise' or 'skip', but is {on_error!r}.")
        self.on_error = on_error
        self.faults: list[str] = []
        self._order = _Order(len(self.paths), augment, seed)
        self._loader: DataLoader[_Row] = DataLoader(
            _Files(self.paths, self.labels, size, margin, seed),
            batch_size=batch_size,
            sampler=self._order,
            collate_fn=_collate,
            num_workers=workers,
            multiprocessing_context="spawn" if workers else None,
            persistent_workers=workers > 0,
        )

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self._loader)

    def epoch(self, number: int, order: ArrayLike | None = None) -> Iterator[Batch]:
        """The batches of a given epoch, of these items in this order if one is given."""
        self._order.epoch = number
        self._order.given = None if order is None else np.asarray(order, np.int64)
        return iter(self)

    def __iter__(self) -> Iterator[Batch]:
        for images, labels, items, faults in self._loader:
            if faults and self.on_error == "raise":
                raise InputError(faults[0])
            self.faults.extend(faults)
            if images:
                yield Batch(images[0], torch.tensor(labels), torch.tensor(items))
        self._order.epoch += 1
