"""Training on images that are streamed from disk: Tables 4 and 5.

The methods are the same programs as everywhere; only their batches come from worker processes
instead of a tensor on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.io.npy import Array
from likewise.items.lazy import LazyImages
from likewise.items.streaming import Batch, ImageStream
from likewise.methods.problem import Problem
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network, resnet50
from likewise.training.objectives.pairwise import Objective
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from likewise.training.sources import ItemSource

SCALING_SAMPLE = 512  # images from which the input layer takes mean and deviation
FORWARD = 256  # images forwarded at once in evaluation


class PartedModel(Model):
    """A model that predicts in parts, since many large images do not fit at once."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        parts = [super(PartedModel, self).forward(part) for part in torch.split(x, FORWARD)]
        return torch.cat(parts)


class StreamedItems(ItemSource):
    """Images that come from worker processes, cropped and flipped there, in the order of a plan."""

    needs_order = True

    def __init__(self, items: LazyImages, *, seed: int, device: torch.device, workers: int) -> None:
        self.shape = items.shape
        self._items, self._device, self._seed, self._workers = items, device, seed, workers
        self._images: Iterator[Batch] = iter(())
        self._loader: ImageStream | None = None

    def begin_epoch(self, epoch: int, order: Tensor | None) -> None:
        assert order is not None
        if self._loader is None:
            self._loader = ImageStream(
                self._items.paths,
                np.zeros(len(self), np.int64),  # the objective knows the judgements
                batch_size=order.shape[1],
                size=self._items.size,
                margin=self._items.margin,
                workers=self._workers,
                seed=self._seed,
            )
        self._images = self._loader.epoch(epoch, order.flatten().cpu().numpy())

    def take(self, index: Tensor, shift: Tensor | None, flip: Tensor | None) -> Tensor:
        return next(self._images).images.to(self._device, non_blocking=True)

    def plain(self, index: Tensor) -> Tensor:
        chosen = self._items[index.cpu().numpy()]
        return cast(Tensor, chosen[0 : len(index)]).to(self._device)


@dataclass(frozen=True, kw_only=True)
class StreamedProblem(Problem):
    """A `Problem` whose items are images on disk (`LazyImages`)."""

    pretrained: str = "none"  # weights to start from
    workers: int = 4  # processes that decode images

    def model(self, start: int = 0) -> Model:
        items = cast(LazyImages, self.items)
        if self.network == "resnet50" and self.pretrained != "none":
            network = resnet50(3, self.n_classes, self.pretrained)
        elif self.pretrained != "none":
            raise InputError(f"there are no pre-trained weights for {self.network}.")
        else:
            shape = (3, items.size, items.size)
            network = build_network(self.network, shape, self.n_classes, self.seed_of(start))
        sample = items[self.parts[0]][:SCALING_SAMPLE]
        return PartedModel(InputLayer.fit(sample.numpy()), network)

    def run(
        self,
        objective: Objective,
        recipe: Recipe,
        model: nn.Module | None = None,
        start: int = 0,
        split: tuple[Array, Array] | None = None,
    ) -> TrainingRun:
        train, held = self.parts[:2] if split is None else split
        if recipe.mean_teacher_from is not None:
            raise InputError(
                "a mean teacher looks at each image twice, which streaming does not offer."
            )
        items, seed = cast(LazyImages, self.items), self.seed_of(start)
        return TrainingRun(
            model or self.model(),
            StreamedItems(items[train], seed=seed, device=self.device, workers=self.workers),
            items[held],
            objective,
            recipe,
            seed=seed,
            device=self.device,
        )
