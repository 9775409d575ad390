"""Training on images that are streamed from disk: Tables 4 and 5.

The methods are the same programs as everywhere; only what they train is another kind of run, whose
batches come from worker processes instead of a tensor on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.items.lazy import LazyImages
from likewise.items.streaming import Batch, ImageStream
from likewise.methods.problem import Problem
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network, resnet50
from likewise.training.batches import EpochPlan
from likewise.training.objectives.pairwise import Objective
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

SCALING_SAMPLE = 512  # images from which the input layer takes mean and deviation
FORWARD = 256  # images forwarded at once in evaluation


class PartedModel(Model):
    """A model that predicts in parts, since many large images do not fit at once."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        parts = [super(PartedModel, self).forward(part) for part in torch.split(x, FORWARD)]
        return torch.cat(parts)


class StreamedRun(TrainingRun):
    """A training run whose images come from worker processes, in the order of its plan."""

    def __init__(
        self,
        model: nn.Module,
        items: LazyImages,
        held_items: LazyImages,
        objective: Objective,
        recipe: Recipe,
        *,
        seed: int,
        device: torch.device,
        workers: int,
    ) -> None:
        if recipe.mean_teacher_from is not None:
            raise InputError("a teacher looks at each image twice, which streaming does not offer.")
        nothing = torch.empty((len(items), 0, 0, 3), dtype=torch.uint8)  # stands for the images
        super().__init__(
            model, nothing, nothing, objective, recipe, seed=seed, device=device, capture=False
        )
        self.held_items = cast(Tensor, held_items)
        self._images: Iterator[Batch] = iter(())
        self._loader = ImageStream(
            items.paths,
            np.zeros(len(items), np.int64),  # the objective knows the judgements
            batch_size=self.batch,
            size=items.size,
            margin=items.margin,
            workers=workers,
            seed=seed,
        )

    def begin_epoch(self) -> None:
        super().begin_epoch()
        order = self.objective.items_of(self._require_plan().rows.flatten())
        self._images = self._loader.epoch(self.epoch, order.cpu().numpy())

    def _crop(self, plan: EpochPlan, index: Tensor, view: int) -> Tensor:
        return next(self._images).images.to(self.device, non_blocking=True)


@dataclass(frozen=True, kw_only=True)
class StreamedProblem(Problem):
    """A `Problem` whose items are images on disk (`LazyImages`)."""

    pretrained: str = "none"
    workers: int = 4

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
        split: tuple[NDArray[Any], NDArray[Any]] | None = None,
    ) -> TrainingRun:
        train, held = self.parts[:2] if split is None else split
        items = cast(LazyImages, self.items)
        return StreamedRun(
            *(model or self.model(), items[train], items[held], objective, recipe),
            seed=self.seed_of(start),
            device=self.device,
            workers=self.workers,
        )
