"""Modules that draw random numbers while they run, such as dropout.

They draw from PyTorch's global generator. So that training with them depends on its own seed alone
(and can be resumed, or run beside others), each step lends that generator a state of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

_OURS = ("torch.nn.modules.", "likewise.")


class StepRandomness:
    """Lends PyTorch's generators a state that follows from the seed, the epoch and the step."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.seed, self.device = seed, device
        self._epoch = self._step = 0

    def begin_epoch(self, epoch: int) -> None:
        self._epoch, self._step = epoch, 0

    @contextlib.contextmanager
    def next_step(self) -> Iterator[None]:
        """The generators as they are to be in the coming step; as they were afterwards."""
        numbers = [self.seed, self._epoch, self._step]
        self._step += 1
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(int(np.random.default_rng(numbers).integers(2**62)))
            yield


def may_draw(model: nn.Module) -> bool:
    """Whether a forward pass may draw random numbers: dropout, or a module that we do not know."""
    return any(
        not type(module).__module__.startswith(_OURS)
        or isinstance(module, nn.modules.dropout._DropoutNd | nn.RReLU)
        or bool(getattr(module, "dropout", 0.0))  # attention, recurrent layers
        for module in model.modules()
    )
