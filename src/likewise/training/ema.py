"""Weights averaged over the steps of training, and the batch statistics that suit them.

The mean of many weights is no network that was ever trained: the statistics that batch
normalisation gathered on the way belong to the others, and to mixed images where items were mixed.
They are taken anew, of plain training items, before the averaged weights are used.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def batch_norms(module: nn.Module) -> list[_BatchNorm]:
    """The layers that keep statistics of what they have seen."""
    return [
        layer
        for layer in module.modules()
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None
    ]


def averaged_state(module: nn.Module) -> list[Tensor]:
    """What is averaged: weights, and buffers other than those statistics; always in one order."""
    statistics = {
        id(buffer) for layer in batch_norms(module) for buffer in layer.buffers(recurse=False)
    }
    state = [*module.parameters(), *module.buffers()]
    return [t.detach() for t in state if t.is_floating_point() and id(t) not in statistics]


@torch.no_grad()
def ema_update_(averaged: list[Tensor], learned: list[Tensor], weight: Tensor) -> None:
    """averaged += weight * (learned - averaged), in place, in few operations."""
    difference = torch._foreach_sub(learned, averaged)
    torch._foreach_mul_(difference, weight)
    torch._foreach_add_(averaged, difference)


@torch.no_grad()
def update_bn(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Give batch normalisation the mean statistics of these batches of items, in place."""
    layers = batch_norms(model)
    before = [(layer.momentum, layer.training) for layer in layers]
    for layer in layers:
        layer.train()
    try:
        for k, batch in enumerate(batches):
            for layer in layers:
                layer.momentum = 1 / (k + 1)  # so that all count alike
            model(batch)
    finally:
        for layer, (momentum, training) in zip(layers, before):
            layer.momentum = momentum
            layer.train(training)
