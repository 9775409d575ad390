"""The learning problem of a trial: items, noisy judgements, and what only the scoring may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.batches import InputLayer
from likewise.datasets import Dataset
from likewise.errors import InputError
from likewise.experiments.cells import Cell
from likewise.experiments.settings import TableSettings
from likewise.matching import confusion
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs


@dataclass(frozen=True)
class Supervision:
    """What a method learns from: judgements, complete and consistent, and items on the device.

    ``ids`` (N,) and ``held_ids`` (H,) are the components of the "same" graph over all items, in
    one numbering: the perceived classes, up to a renumbering.
    """

    items: Tensor
    held_items: Tensor
    pairs: Pairs
    held_pairs: Pairs
    ids: NDArray[np.int32]
    held_ids: NDArray[np.int32]
    inputs: InputLayer
    n_classes: int


@dataclass(frozen=True)
class Truth:
    """For scoring only: test items and classes, T, and the perceived class behind each id."""

    test_items: Tensor
    test_classes: NDArray[np.int64]
    transition: NDArray[np.float64] | None  # None where nobody knows the true classes
    class_of_id: NDArray[np.int64]


def perceived_classes(
    dataset: Dataset, cell: Cell
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """The perceived class (N,) of every training item in a trial, and the T behind them."""
    if cell.noise is None:
        return _real_noise(dataset, cell.noise_kind)
    if dataset.train_y is None:
        raise InputError(f"{dataset.name} has no true classes to add synthetic noise to.")
    transition = symmetric(dataset.n_classes, cell.noise)
    rng = np.random.default_rng([cell.trial, round(1000 * cell.noise), 1])
    return corrupt_labels(dataset.train_y, transition, rng), transition


def _real_noise(
    dataset: Dataset, source: str
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    if source not in dataset.noisy:
        known = ", ".join(dataset.noisy) or "none"
        raise InputError(f"{dataset.name} has no labels {source!r}; it has {known}.")
    perceived = dataset.noisy[source]
    if dataset.train_y is None:
        return perceived, None
    counts = confusion(dataset.train_y, perceived, dataset.n_classes).astype(float)
    return perceived, counts / counts.sum(axis=1, keepdims=True)


def _class_of_id(ids: NDArray[np.int32], z: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """(C,) the perceived class behind each id; ids that no item has take the classes left over."""
    present, first = np.unique(ids, return_index=True)
    named = np.full(n_classes, -1, np.int64)
    named[present] = z[first]
    named[named < 0] = np.setdiff1d(np.arange(n_classes), named)
    return named


class Problems:
    """Makes the problems of a table's cells, sharing items on the device between them."""

    def __init__(self, dataset: Dataset, settings: TableSettings, device: torch.device) -> None:
        self.dataset, self.settings, self.device = dataset, settings, device
        self._test = torch.from_numpy(dataset.test_x).to(device)
        self._items: dict[int, tuple[Tensor, Tensor, InputLayer]] = {}

    def __call__(self, cell: Cell) -> tuple[Supervision, Truth]:
        """The problem of a cell: the same for all methods of a trial at one noise level."""
        z, transition = perceived_classes(self.dataset, cell)
        chosen = self._chosen(cell.trial)
        pairs = Pairs.from_labels(z[chosen])
        rng = np.random.default_rng([cell.trial, 0])
        train, held, train_pairs, held_pairs = pairs.split(self.settings.held_out, rng)
        items, held_items, inputs = self._on_device(cell.trial, chosen[train], chosen[held])
        ids = pairs.components()
        supervision = Supervision(
            *(items, held_items, train_pairs, held_pairs, ids[train], ids[held], inputs),
            n_classes=self.dataset.n_classes,
        )
        named = _class_of_id(ids, z[chosen], self.dataset.n_classes)
        return supervision, Truth(self._test, self.dataset.test_y, transition, named)

    def _chosen(self, trial: int) -> NDArray[np.int64]:
        n = len(self.dataset.train_x)
        if self.settings.items is None or self.settings.items >= n:
            return np.arange(n)
        rng = np.random.default_rng([trial, 2])
        return np.sort(rng.permutation(n)[: self.settings.items])

    def _on_device(
        self, trial: int, train: NDArray[Any], held: NDArray[Any]
    ) -> tuple[Tensor, Tensor, InputLayer]:
        # The split depends on the trial alone, so all noise levels and methods share these.
        if trial not in self._items:
            x = self.dataset.train_x
            self._items[trial] = (
                torch.from_numpy(x[train]).to(self.device),
                torch.from_numpy(x[held]).to(self.device),
                InputLayer.fit(x[train]),
            )
        return self._items[trial]
