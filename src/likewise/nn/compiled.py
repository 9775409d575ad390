"""Networks compiled for the shapes that a training step gives them (torch.compile).

Compiling takes from seconds to a minute and changes no more than the rounding. A model is not
changed by it: copies, checkpoints and predictions know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

BACKEND = "inductor"
P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """A function of tensors, compiled when it is first called and for every new shape."""
    made: Callable[P, R] = torch.compile(function, dynamic=False, backend=BACKEND)
    return made


def call_with(model: nn.Module, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The model's outputs for ``x``, some of its weights replaced."""
    # A weight that another layer shares is rounded there by autocast itself.
    output: Tensor = functional_call(model, weights, (x,), tie_weights=False)
    return output


class CompiledModel(nn.Module):
    """The same model and weights, its forward pass compiled."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._call = compiled(call_with)

    def forward(self, x: Tensor) -> Tensor:
        return self._call(self.model, {}, x)
