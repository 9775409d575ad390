"""AdamW for small networks on a CPU: torch's own arithmetic, without what surrounds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypedDict

import torch
from torch import Tensor


class _Group(TypedDict):
    """The one group of parameters, as in `torch.optim`."""

    params: list[Tensor]
    lr: float
    weight_decay: float
    betas: tuple[float, float]
    eps: float


class AdamW:
    """The very numbers of ``torch.optim.AdamW(fused=True)``, sooner.

    The first use of `torch.optim` loads torch's compiler, which takes a second, and each of its
    steps spends longer on hooks than a small network on arithmetic. ``param_groups`` and ``state``
    are those of `torch.optim`, so that rates are set and states are saved in the same way.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        weight_decay: float = 1e-2,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.param_groups: list[_Group] = [
            {
                "params": list(parameters),
                "lr": lr,
                "weight_decay": weight_decay,
                "betas": betas,
                "eps": eps,
            }
        ]
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for parameter in self._parameters:
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad.zero_()

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        group = self.param_groups[0]
        moved = [p for p in self._parameters if p.grad is not None]
        if not moved:
            return
        gradients = [p.grad for p in moved if p.grad is not None]
        states = [self._state_of(p) for p in moved]
        names = ("exp_avg", "exp_avg_sq", "step")
        means, squares, steps = ([state[name] for state in states] for name in names)
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            moved,
            gradients,
            means,
            squares,
            [],
            steps,
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    @property
    def _parameters(self) -> list[Tensor]:
        parameters: list[Tensor] = self.param_groups[0]["params"]
        return parameters

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        return state
