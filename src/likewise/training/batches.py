"""Batches of items, made on the device.

All randomness of an epoch (order, crops, flips, mixing) is drawn before it begins, from (seed,
epoch) alone: so a run can be captured as a CUDA graph, resumed at any epoch, or run beside others
without changing what it sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.items import Selection
from likewise.training.recipe import Recipe


@dataclass
class EpochPlan:
    """What happens at each step of one epoch, on the device.

    ``rows`` (steps, B) are positions in the objective's rows; ``shift`` (steps, n, 2, 2) and
    ``flip`` (steps, n, 2) say how each of the n images of a step is moved, for student and teacher;
    ``mix`` (steps,) are mixing shares.
    """

    rows: Tensor
    shift: Tensor | None
    flip: Tensor | None
    mix: Tensor | None

    @classmethod
    def draw(
        cls,
        recipe: Recipe,
        seed: int,
        epoch: int,
        shards: Sequence[NDArray[np.int64]],
        batch: int,
        forwards: int,
    ) -> EpochPlan:
        """The plan of an epoch: each batch takes as many rows of one shard as of another."""
        rng = np.random.default_rng([seed, epoch])
        steps, share = steps_of(shards, batch), batch // len(shards)
        orders = [rng.permutation(shard)[: steps * share] for shard in shards]
        rows = torch.from_numpy(np.hstack([order.reshape(steps, share) for order in orders]))
        shift = flip = mix = None
        if recipe.shift:
            width = 2 * recipe.shift + 1
            shift = torch.from_numpy(
                rng.integers(width, size=(steps, forwards, 2, 2)) - recipe.shift
            )
        if recipe.flip:
            flip = torch.from_numpy(rng.random((steps, forwards, 2)) < 0.5)
        if recipe.mixup:
            mix = torch.from_numpy(rng.beta(recipe.mixup, recipe.mixup, steps).astype(np.float32))
        return cls(rows, shift, flip, mix)

    def copy_(self, other: EpochPlan) -> None:
        """Take over another plan's content in place, so that a captured graph sees it."""
        for mine, theirs in zip(self._tensors(), other._tensors()):
            mine.copy_(theirs, non_blocking=True)

    def to(self, device: torch.device) -> EpochPlan:
        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return EpochPlan(self.rows.to(device), move(self.shift), move(self.flip), move(self.mix))

    def _tensors(self) -> list[Tensor]:
        return [t for t in (self.rows, self.shift, self.flip, self.mix) if t is not None]


def steps_of(shards: Sequence[NDArray[np.int64]], batch: int) -> int:
    """How many whole batches an epoch has."""
    return max(1, min(map(len, shards)) // (batch // len(shards)))


def take(
    items: Tensor | Selection, index: Tensor, shift: Tensor | None, flip: Tensor | None
) -> Tensor:
    """Items at ``index`` (n,), images moved by ``shift`` (n, 2) and mirrored where ``flip`` (n,).

    One gather does selection, reflected crop and flip at once, in the items' own type.
    """
    if isinstance(items, Selection):
        items, index = items.read(index), torch.arange(len(index), device=index.device)
    if items.ndim == 2 or (shift is None and flip is None):
        return items[index]
    height, width = items.shape[1], items.shape[2]
    rows = torch.arange(height, device=items.device)[None]  # (1, H)
    columns = torch.arange(width, device=items.device)[None]
    if shift is not None:
        rows = _reflect(rows + shift[:, :1], height)  # (n, H)
        columns = _reflect(columns + shift[:, 1:], width)
    if flip is not None:
        columns = torch.where(flip[:, None], width - 1 - columns, columns)
    return items[index[:, None, None], rows[:, :, None], columns[:, None, :]]


def _reflect(position: Tensor, size: int) -> Tensor:
    return size - 1 - (size - 1 - position.abs()).abs()
