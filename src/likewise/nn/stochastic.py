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


def may_draw(model: nn.Module) -> bool:
    """Whether a forward pass may draw random numbers: dropout, or a module that we do not know."""
    return any(
        not type(module).__module__.startswith(_OURS)
        or isinstance(module, nn.modules.dropout._DropoutNd | nn.RReLU)
        or bool(getattr(module, "dropout", 0.0))  # attention, recurrent layers
        for module in model.modules()
    )


@contextlib.contextmanager
def seeded(seed: int, epoch: int, step: int, device: torch.device) -> Iterator[None]:
    """PyTorch's generators in a state that follows from these numbers; as they were afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(np.random.default_rng([seed, epoch, step]).integers(2**62)))
        yield
