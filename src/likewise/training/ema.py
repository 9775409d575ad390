"""Weights averaged over the steps of training, and the batch statistics that suit them.

The exponential moving average (EMA) of the weights, as in Polyak averaging; stochastic weight
averaging (Izmailov et al., UAI 2018) showed why it generalises better. The mean of many weights is
no network that was ever trained: the statistics that batch normalisation gathered on the way belong
to the others, and to mixed images where items were mixed. They are taken anew, of plain training
items, before the averaged weights are used.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class WeightAverage:
    """The average of a model's weights over the steps of a run, as a model of its own."""

    def __init__(
        self, model: nn.Module, decay: float, total_steps: int, device: torch.device
    ) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        # Listed once: walking a small model takes longer than averaging it.
        self._averaged, self._learned = averaged_state(self.model), averaged_state(model)
        self._decays = ema_decays(decay, total_steps).to(device)  # (total_steps,)

    def update_(self, step: Tensor) -> None:
        """Move towards the model's weights at ``step`` (1,) of the run."""
        weight = 1 - self._decays[step].squeeze(0)
        ema_update_(self._averaged, self._learned, weight)

    def change_decay(self, decay: float) -> None:
        """Go on with another decay, in place."""
        self._decays.copy_(ema_decays(decay, len(self._decays)))


def ema_decays(decay: float, total_steps: int) -> Tensor:
    """(total_steps,) decay at each step: faster at first, over a ninth of the steps so far."""
    step = torch.arange(total_steps, dtype=torch.float32)
    return torch.minimum(torch.tensor(decay), (1 + step) / (10 + step))


@torch.no_grad()
def ema_update_(
    averaged: Sequence[Tensor], learned: Sequence[Tensor], weight: Tensor | float
) -> None:
    """averaged += weight * (learned - averaged), in place, in few operations."""
    if not isinstance(weight, Tensor):
        torch._foreach_lerp_(list(averaged), list(learned), weight)
        return
    # A weight that lies on the device is not known here, and lerp takes none that is not.
    difference = torch._foreach_sub(list(learned), list(averaged))
    torch._foreach_mul_(difference, weight)
    torch._foreach_add_(list(averaged), difference)


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
