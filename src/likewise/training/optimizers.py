"""The one optimiser factory, and the learning rate of every step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from likewise.training.adamw import AdamW
from likewise.training.recipe import Recipe

Optimizer = torch.optim.Optimizer | AdamW


def make_optimizer(
    parameters: Sequence[Tensor | nn.Parameter],
    device: torch.device,
    *,
    optimizer: str = "adam",
    lr: float,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
) -> Optimizer:
    """AdamW ("adam") or SGD with Nesterov momentum ("sgd"), in the fastest form for the device.

    The decay of AdamW is decoupled: coupled, it drives pairwise losses to uniform outputs.
    """
    cuda = device.type == "cuda"
    if optimizer == "adam" and not cuda:
        return AdamW(parameters, lr, weight_decay)
    # On a GPU the rate is a tensor that the captured step reads.
    rate = torch.tensor(lr, device=device) if cuda else lr
    if optimizer == "adam":
        return torch.optim.AdamW(
            parameters, lr=rate, weight_decay=weight_decay, fused=True, capturable=True
        )
    return torch.optim.SGD(
        parameters, lr=rate, momentum=momentum, nesterov=momentum > 0, weight_decay=weight_decay,
        fused=cuda,
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
