"""What one step of training computes: a batch, moved and mixed as planned, and its loss.

Mixup: Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018. Mean teacher: Tarvainen
& Valpola, "Mean teachers are better role models", NeurIPS 2017; here the averaged network's
posterior of the class, given what people said, stands in for the labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.nn.bf16_weights import Bf16Weights, takes_other_weights
from likewise.nn.compiled import CompiledModel
from likewise.nn.model import without_tta
from likewise.training.batches import STUDENT, TEACHER, Batches
from likewise.training.objectives.forward_corrected import ForwardCorrected, soft_cross_entropy
from likewise.training.objectives.pairwise import Objective
from likewise.training.pair_batches import forward_in_pieces, forward_rows
from likewise.training.recipe import Recipe


class StepLoss:
    """The loss of the batch that is due; the model and its EMA are forwarded here."""

    def __init__(
        self,
        model: nn.Module,
        ema: nn.Module | None,
        objective: Objective,
        recipe: Recipe,
        batches: Batches,
    ) -> None:
        self.objective, self.recipe, self.batches = objective, recipe, batches
        self._compile = recipe.compile
        self._half = batches.device.type == "cuda" and batches.source.holds_images
        self._student = self._for_steps(model)
        self._mean_teacher = None if ema is None else self._for_steps(without_tta(ema))
        self.has_mean_teacher = False

    def begin_epoch(self, recipe: Recipe, epoch: int) -> None:
        """What the recipe asks for in this epoch."""
        self.recipe = recipe
        start = recipe.mean_teacher_from
        self.has_mean_teacher = start is not None and epoch >= round(start * recipe.epochs)

    def autocast(self) -> torch.autocast:
        """bfloat16 for images on a GPU; the losses raise it to single precision themselves."""
        return torch.autocast(
            self.batches.device.type, torch.bfloat16, enabled=self._half, cache_enabled=False
        )

    def __call__(self) -> Tensor:
        """() the loss of this step's batch."""
        objective, batches = self.objective, self.batches
        rows = batches.rows()
        index = objective.items_of(rows)
        if objective.rows_are_batches and (features := batches.features()) is not None:
            return objective.loss(forward_rows(self._student, features, index), rows)
        x = batches.take(index, STUDENT)
        if not self.recipe.mixup or not isinstance(objective, ForwardCorrected):
            logits = self._outputs(self._student, x, len(index))
            if self.has_mean_teacher and isinstance(objective, ForwardCorrected):
                return soft_cross_entropy(logits, self._mean_teacher_posterior(index, rows))
            return objective.loss(logits, rows)
        return self._mixed_loss(objective, x, index, rows)

    def _mixed_loss(
        self, objective: ForwardCorrected, x: Tensor, index: Tensor, rows: Tensor
    ) -> Tensor:
        """() the loss of items that are each mixed with another one of the batch (mixup)."""
        shards, share = self.batches.shards, self.batches.mix()
        x = x.float()
        own = 1 if self.batches.process_group is not None else shards  # shards of x that are here
        mixed = share * x + (1 - share) * _partners(x, own)
        logits = self._outputs(self._student, mixed, len(index))
        if self.has_mean_teacher:
            target = self._mean_teacher_posterior(index, rows)
            target = share * target + (1 - share) * _partners(target, shards)
            return soft_cross_entropy(logits, target)
        return objective.mixed_loss(logits, rows, _partners(rows, shards), share)

    def _outputs(self, model: nn.Module, x: Tensor, n: int) -> Tensor:
        """(n, C) logits of the batch: of the items here and, from other processes, of the rest."""
        with self.autocast():
            logits = forward_in_pieces(model, x)
        group = self.batches.process_group
        return logits if group is None else group.gather(logits.float())[:n]

    def _mean_teacher_posterior(self, index: Tensor, rows: Tensor) -> Tensor:
        """(n, C) the averaged network's posterior of the class, on another crop."""
        assert self._mean_teacher is not None
        assert isinstance(self.objective, ForwardCorrected)
        temperature = self.mean_teacher_temperature()
        with torch.no_grad():
            x = self.batches.take(index, TEACHER)
            logits = self._outputs(self._mean_teacher, x, len(index))
            return self.objective.class_posterior(logits, rows, temperature)

    def mean_teacher_temperature(self) -> Tensor:
        """() the recipe's at this step, or the one that held-out judgements ask for."""
        if self.recipe.mean_teacher_temperature is None:
            return self.objective.tensors()["temperature"]
        early, late = self.recipe.mean_teacher_temperature
        from_epoch = round((self.recipe.mean_teacher_from or 0.0) * self.recipe.epochs)
        start, total = from_epoch * self.batches.steps_per_epoch, self.batches.total_steps
        done = (self.batches.counter.in_run - start).float().squeeze(0) / max(1, total - start)
        return early + (late - early) * done

    def _for_steps(self, model: nn.Module) -> nn.Module:
        """The model as a step forwards it."""
        if not takes_other_weights(model):
            return model
        if self._half:
            return Bf16Weights(model, self._compile)
        return CompiledModel(model) if self._compile else model


def _partners(tensor: Tensor, shards: int) -> Tensor:
    """What each row is mixed with: the row before it in its shard."""
    return tensor.reshape(shards, -1, *tensor.shape[1:]).roll(1, dims=1).reshape(tensor.shape)
