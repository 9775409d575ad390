"""What one step of training computes: a batch, moved and mixed as planned, and its loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.errors import TrainingError
from likewise.items import Selection
from likewise.training.batches import EpochPlan, take
from likewise.training.distributed import ProcessGroup
from likewise.training.objectives.forward_corrected import ForwardCorrected, soft_cross_entropy
from likewise.training.pair_batches import forward_in_pieces, forward_rows
from likewise.training.recipe import Recipe
from likewise.training.run_state import RunState


class StepLoss(RunState):
    """The part of a `likewise.training.run.TrainingRun` that turns a batch into a loss."""

    items: Tensor | Selection
    recipe: Recipe
    process_group: ProcessGroup | None
    shards: int
    step_index: Tensor  # (1,) within the epoch
    global_step: Tensor  # (1,) within the run
    steps_per_epoch: int
    total_steps: int
    _plan: EpochPlan | None
    _shares_items: bool  # whether each rank holds its own share of the items
    _student: nn.Module  # the model and its average, as a step forwards them
    _mean_teacher: nn.Module

    @property
    def has_mean_teacher(self) -> bool:
        """Whether the averaged weights teach in the coming epoch."""
        start = self.recipe.mean_teacher_from
        return start is not None and self.epoch >= round(start * self.recipe.epochs)

    def autocast(self) -> torch.autocast:
        """bfloat16 for images on a GPU; the losses raise it to single precision themselves."""
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self._half, cache_enabled=False
        )

    @property
    def _half(self) -> bool:
        return self.device.type == "cuda" and self.items.ndim > 2

    def _loss(self) -> Tensor:
        plan, objective = self._require_plan(), self.objective
        rows = plan.rows[self.step_index].squeeze(0)
        index = objective.items_of(rows)
        if objective.rows_are_batches and isinstance(self.items, Tensor) and self.items.ndim == 2:
            return objective.loss(forward_rows(self._student, self.items, index), rows)
        x = self._crop(plan, index, view=0)
        if not self.recipe.mixup or not isinstance(objective, ForwardCorrected):
            logits = self._outputs(self._student, x, len(index))
            if self.has_mean_teacher and isinstance(objective, ForwardCorrected):
                return soft_cross_entropy(logits, self._mean_teacher_posterior(plan, index, rows))
            return objective.loss(logits, rows)
        assert plan.mix is not None
        share = plan.mix[self.step_index].squeeze(0)
        x = x.float()
        own = 1 if self.process_group is not None else self.shards  # shards of x that are here
        mixed = share * x + (1 - share) * _partners(x, own)
        logits = self._outputs(self._student, mixed, len(index))
        if self.has_mean_teacher:
            target = self._mean_teacher_posterior(plan, index, rows)
            target = share * target + (1 - share) * _partners(target, self.shards)
            return soft_cross_entropy(logits, target)
        return objective.mixed_loss(logits, rows, _partners(rows, self.shards), share)

    def _outputs(self, model: nn.Module, x: Tensor, n: int) -> Tensor:
        """(n, C) logits of the batch: of the items here and, from the other ranks, of the rest."""
        with self.autocast():
            logits = forward_in_pieces(model, x)
        return (
            logits if self.process_group is None else self.process_group.gather(logits.float())[:n]
        )

    def _mean_teacher_posterior(self, plan: EpochPlan, index: Tensor, rows: Tensor) -> Tensor:
        """(n, C) the averaged network's posterior of the class, on another crop."""
        assert self.averaged is not None
        assert isinstance(self.objective, ForwardCorrected)
        temperature = self._mean_teacher_temperature()
        with torch.no_grad():
            logits = self._outputs(self._mean_teacher, self._crop(plan, index, view=1), len(index))
            return self.objective.class_posterior(logits, rows, temperature)

    def _mean_teacher_temperature(self) -> Tensor:
        if self.recipe.mean_teacher_temperature is None:
            return self.objective.tensors()["temperature"]
        early, late = self.recipe.mean_teacher_temperature
        start = (
            round((self.recipe.mean_teacher_from or 0.0) * self.recipe.epochs)
            * self.steps_per_epoch
        )
        done = (self.global_step - start).float().squeeze(0) / max(1, self.total_steps - start)
        return early + (late - early) * done

    def _crop(self, plan: EpochPlan, index: Tensor, view: int) -> Tensor:
        """The items of a batch that this process forwards, moved as planned."""
        shift = flip = None
        if self.items.ndim > 2:
            shift = None if plan.shift is None else plan.shift[self.step_index, :, view].squeeze(0)
            flip = None if plan.flip is None else plan.flip[self.step_index, :, view].squeeze(0)
        if self.process_group is not None:
            index = self.process_group.block(self._padded(index))
            index = index // self.process_group.world if self._shares_items else index
            shift = None if shift is None else self.process_group.block(shift)
            flip = None if flip is None else self.process_group.block(flip)
        return take(self.items, index, shift, flip)

    def _padded(self, index: Tensor) -> Tensor:
        """As many items as divide among the ranks: the first stands in for what is missing."""
        missing = -len(index) % self.shards
        return torch.cat([index, index[:1].expand(missing)]) if missing else index

    def _require_plan(self) -> EpochPlan:
        if self._plan is None:
            raise TrainingError("begin_epoch() must come before step().")
        return self._plan


def _partners(tensor: Tensor, shards: int) -> Tensor:
    """What each row is mixed with: the row before it in its shard."""
    return tensor.reshape(shards, -1, *tensor.shape[1:]).roll(1, dims=1).reshape(tensor.shape)
