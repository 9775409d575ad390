"""A model run with its weights in bfloat16, all rounded at once.

Autocast rounds every weight where it is used and raises its gradient again: two operations a
weight and step. Small networks on a GPU spend their time on the number of operations, so here one
operation rounds all of them, and one raises all gradients. The numbers are the same.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from likewise.nn.compiled import call_with, compiled

# The layers whose weights autocast rounds. What other layers hold stays as it is.
_ROUNDED = (nn.Linear, nn.modules.conv._ConvNd)


def takes_other_weights(model: nn.Module) -> bool:
    """Whether a model can be run with weights that are not its own; scripted ones cannot."""
    return not any(isinstance(layer, torch.jit.ScriptModule) for layer in model.modules())


class Bf16Weights(nn.Module):
    """The same model, computing with bfloat16 copies of its weights; to be called in autocast.

    With ``compile`` its forward pass is compiled (`likewise.nn.compiled`).
    """

    def __init__(self, model: nn.Module, compile: bool = False) -> None:
        super().__init__()
        self.model = model
        self._call = compiled(call_with) if compile else call_with
        weights = {
            id(weight)
            for layer in model.modules()
            if isinstance(layer, _ROUNDED)
            for weight in layer.parameters(recurse=False)
        }
        self._names = [name for name, p in model.named_parameters() if id(p) in weights]

    def forward(self, x: Tensor) -> Tensor:
        parameters = dict(self.model.named_parameters())
        rounded = _Rounded.apply(*(parameters[name] for name in self._names))  # type: ignore[no-untyped-call]
        weights = dict(zip(self._names, rounded))
        return self._call(self.model, weights, x)


class _Rounded(torch.autograd.Function):
    """float32 tensors to bfloat16; their gradients back to float32."""

    @staticmethod
    def forward(ctx: FunctionCtx, *weights: Tensor) -> tuple[Tensor, ...]:
        return _copies(weights, torch.bfloat16)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor, ...]:
        return _copies(gradients, torch.float32)


def _copies(tensors: tuple[Tensor, ...], dtype: torch.dtype) -> tuple[Tensor, ...]:
    copies = [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]
    torch._foreach_copy_(copies, list(tensors))
    return tuple(copies)
