"""The losses and the transition layer as modules, for people with their own PyTorch loop."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from likewise import functional
from likewise.noise import check_transition


class NoiseTransition(nn.Module):
    """f = g @ T after a softmax: class posterior in, perceived-class posterior out."""

    transition: Tensor

    def __init__(self, transition: ArrayLike) -> None:
        super().__init__()
        matrix = torch.as_tensor(check_transition(transition), dtype=torch.float32)
        self.register_buffer("transition", matrix)

    def forward(self, p: Tensor) -> Tensor:
        return functional.perceived(p, self.transition)


class MCLLoss(nn.Module):
    """`likewise.functional.mcl_loss` as a module."""

    def forward(self, p: Tensor, same: Tensor, weight: Tensor | None = None) -> Tensor:
        return functional.mcl_loss(p, same, weight)


class MNSLoss(nn.Module):
    """`likewise.functional.mns_loss` with a fixed transition matrix."""

    transition: Tensor

    def __init__(self, transition: ArrayLike) -> None:
        super().__init__()
        matrix = torch.as_tensor(check_transition(transition), dtype=torch.float32)
        self.register_buffer("transition", matrix)

    def forward(self, p: Tensor, same: Tensor, weight: Tensor | None = None) -> Tensor:
        return functional.mns_loss(p, self.transition, same, weight)


class KCLLoss(nn.Module):
    """`likewise.functional.kcl_loss` with its options."""

    def __init__(self, margin: float = 2.0, fixed_target: bool = True) -> None:
        super().__init__()
        self.margin = margin
        self.fixed_target = fixed_target

    def forward(self, p: Tensor, same: Tensor, weight: Tensor | None = None) -> Tensor:
        return functional.kcl_loss(p, same, weight, self.margin, self.fixed_target)
