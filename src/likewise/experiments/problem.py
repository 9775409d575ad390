"""The learning problem of a trial: items, noisy judgements, and what only the scoring may see."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.datasets import Dataset
from likewise.errors import InputError
from likewise.experiments.cells import Cell
from likewise.experiments.pretrain import load_body
from likewise.experiments.settings import TableSettings
from likewise.experiments.streamed import StreamedProblem
from likewise.io.json import Record
from likewise.io.npy import Array
from likewise.items import network_shape
from likewise.items.lazy import LazyImages
from likewise.methods.problem import Problem
from likewise.metrics import confusion
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.pairs import Pairs
from likewise.training.objectives.pairwise import Objective
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun


@dataclass(frozen=True)
class DeviceItems:
    """The items of a trial on the device, and their scaling: shared by all its cells."""

    train: Tensor  # training items
    held: Tensor  # held-out items
    inputs: InputLayer  # the input layer, fitted once
    body: dict[str, Tensor] | None = None  # pre-trained weights to start from


@dataclass(frozen=True, kw_only=True)
class TrialProblem(Problem):
    """A `Problem` whose items are on the device already."""

    shared: DeviceItems  # what all cells of the trial share

    def model(self, start: int = 0) -> Model:
        shape = network_shape(self.items)
        network = build_network(self.network, shape, self.n_classes, self.seed_of(start))
        if self.shared.body is not None:
            load_body(network, self.shared.body)
        return Model(copy.deepcopy(self.shared.inputs), network)

    def run(
        self,
        objective: Objective,
        recipe: Recipe,
        model: nn.Module | None = None,
        start: int = 0,
        split: tuple[Array, Array] | None = None,
    ) -> TrainingRun:
        own = self.shared.train, self.shared.held
        train, held = own if split is None else (self.take(split[0]), self.take(split[1]))
        return TrainingRun(
            model or self.model(),
            train,
            held,
            objective,
            recipe,
            seed=self.seed_of(start),
            device=self.device,
        )


@dataclass(frozen=True)
class Truth:
    """For scoring only: test items and classes, T, and the perceived class behind each id."""

    test_items: Any  # a tensor on the device, or images on disk (`LazyImages`)
    test_classes: NDArray[np.int64]  # (n,) their true classes
    transition: NDArray[np.float64] | None  # None where nobody knows the true classes
    class_of_id: NDArray[np.int64]  # the true class behind each component


def perceived_classes(
    dataset: Dataset, cell: Cell
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """The perceived class (N,) of every training item in a trial, and the T behind them."""
    if cell.noise is None:
        return _real_noise(dataset, cell.noise_kind)
    if dataset.train_y is None:
        raise InputError(f"{dataset.name} has no true classes to add synthetic noise to.")
    build = pair_flip if cell.noise_kind == "pair_flip" else symmetric
    transition = build(dataset.n_classes, cell.noise)
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


class Problems:
    """Makes the problems of a table's cells, sharing items on the device between them."""

    def __init__(
        self,
        dataset: Dataset,
        settings: TableSettings,
        device: torch.device,
        body: dict[str, Tensor] | None = None,
    ) -> None:
        self.dataset, self.settings, self.device, self.body = dataset, settings, device, body
        self._train: Any = self._readable(dataset.train_x)
        self._test: Any = self._readable(dataset.test_x)
        if not dataset.is_listed:
            self._test = torch.from_numpy(self._test).to(device)
        self._shared: dict[int, DeviceItems] = {}

    def __call__(self, cell: Cell) -> tuple[Problem, Truth]:
        """The problem of a cell: the same for all methods of a trial at one noise level."""
        z, transition = perceived_classes(self.dataset, cell)
        chosen = self._chosen(cell.trial)
        items, z = self._train[chosen], z[chosen]
        base = Problem(
            *(items, Pairs.from_labels(z), self.dataset.n_classes, self.settings.network),
            held_out=self.settings.held_out,
            seed=cell.trial,
        )
        named = class_of_id(base.components, z, base.n_classes)
        return self._located(base), Truth(self._test, self.dataset.test_y, transition, named)

    def _located(self, base: Problem) -> Problem:
        """The same problem with its items where they are trained on."""
        fields: Record = {f.name: getattr(base, f.name) for f in dataclasses.fields(base)}
        fields["device"] = self.device
        if self.dataset.is_listed:
            streaming: Record = {
                "pretrained": self.settings.pretrained,
                "workers": self.settings.workers,
            }
            return StreamedProblem(**fields, **streaming)
        return TrialProblem(**fields, shared=self._on_device(base))

    def _readable(self, items: Array) -> Any:
        if not self.dataset.is_listed:
            return items
        return LazyImages(items, self.settings.image_size or 224)

    def _chosen(self, trial: int) -> NDArray[np.int64]:
        n = len(self.dataset.train_x)
        if self.settings.items is None or self.settings.items >= n:
            return np.arange(n)
        rng = np.random.default_rng([trial, 2])
        return np.sort(rng.permutation(n)[: self.settings.items])

    def _on_device(self, problem: Problem) -> DeviceItems:
        # The split depends on the trial alone, so all noise levels and methods share these.
        trial = problem.seed
        if trial not in self._shared:
            train, held, _, _ = problem.parts
            train_items = problem.items[train]
            self._shared[trial] = DeviceItems(
                torch.from_numpy(train_items).to(self.device),
                torch.from_numpy(problem.items[held]).to(self.device),
                InputLayer.fit(train_items),
                self.body,
            )
        return self._shared[trial]


def class_of_id(ids: NDArray[np.int32], z: Array, n_classes: int) -> NDArray[np.int64]:
    """(C,) the perceived class behind each id; ids that no item has take the classes left over."""
    present, first = np.unique(ids[ids >= 0], return_index=True)
    named = np.full(n_classes, -1, np.int64)
    named[present] = z[ids >= 0][first]
    named[named < 0] = np.setdiff1d(np.arange(n_classes), named)
    return named
