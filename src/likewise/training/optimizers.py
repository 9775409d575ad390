"""The optimiser of a recipe, and the tables of what changes from step to step."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from likewise.training.adamw import AdamW
from likewise.training.recipe import Recipe


def make_optimizer(
    parameters: list[nn.Parameter], recipe: Recipe, device: torch.device
) -> torch.optim.Optimizer | AdamW:
    # On a GPU the rate is a tensor that the captured step reads.
    cuda = device.type == "cuda"
    rate: Any = torch.tensor(recipe.lr, device=device) if cuda else recipe.lr
    if recipe.optimizer == "adam":
        # Decoupled decay: coupled, it drives pairwise losses to uniform outputs.
        if not cuda:
            return AdamW(parameters, recipe.lr, recipe.weight_decay)
        return torch.optim.AdamW(
            parameters, lr=rate, weight_decay=recipe.weight_decay, fused=True, capturable=True
        )
    return torch.optim.SGD(
        parameters, lr=rate, momentum=recipe.momentum, nesterov=recipe.momentum > 0,
        weight_decay=recipe.weight_decay, fused=cuda,
    )  # fmt: skip


def rate_table(recipe: Recipe, total: int, steps_per_epoch: int) -> Tensor:
    """(total,) learning rate of each step."""
    step = torch.arange(total, dtype=torch.float64)
    done = step / total
    if recipe.schedule == "cosine":
        warm = recipe.warmup
        shape = 0.5 * (1 + torch.cos(math.pi * ((done - warm) / (1 - warm)).clamp(0, 1)))
    else:
        epoch = torch.div(step, steps_per_epoch, rounding_mode="floor")
        drops = torch.zeros_like(done)
        for milestone in recipe.milestones:
            drops += epoch >= round(milestone * recipe.epochs)
        shape = recipe.gamma**drops
    if recipe.warmup:
        shape = shape * ((step + 1) / (recipe.warmup * total)).clamp(max=1)
    return (recipe.lr * shape).float()


def averaging_table(recipe: Recipe, total: int) -> Tensor:
    """(total,) decay of the averaged weights at each step: faster at first."""
    step = torch.arange(total, dtype=torch.float32)
    return torch.minimum(torch.tensor(recipe.averaging), (1 + step) / (10 + step))
