"""The epoch that is kept: the one of the lowest held-out cost so far."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class BestEpoch:
    """Weights, and what the objective had estimated, at the best epoch; chosen on the device."""

    def __init__(self, model: nn.Module, estimates: Mapping[str, Tensor]) -> None:
        weights = list(model.state_dict().values())
        device = weights[0].device if weights else torch.device("cpu")
        self.score = torch.full((), math.inf, device=device)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.weights = [tensor.detach().clone() for tensor in weights]
        self.estimates = {name: tensor.detach().clone() for name, tensor in estimates.items()}

    @torch.no_grad()
    def offer(
        self, score: Tensor, epoch: int, model: nn.Module, estimates: Mapping[str, Tensor]
    ) -> None:
        """Keep this epoch if its ``score`` () is lower; the host does not wait to know."""
        better = score < self.score
        current = [*model.state_dict().values(), *estimates.values()]
        for kept, now in zip([*self.weights, *self.estimates.values()], current):
            kept.copy_(torch.where(better, now.detach(), kept))
        self.score.copy_(torch.where(better, score, self.score))
        self.epoch.copy_(torch.where(better, epoch, self.epoch))

    def forget(self) -> None:
        """Any later epoch is better."""
        self.score.fill_(math.inf)

    @torch.no_grad()
    def load_into(self, model: nn.Module) -> None:
        """Give a model the kept weights, in place."""
        for target, kept in zip(model.state_dict().values(), self.weights):
            target.copy_(kept)

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors themselves, by name."""
        state = {"score": self.score, "epoch": self.epoch}
        state |= {f"weights.{k}": tensor for k, tensor in enumerate(self.weights)}
        return state | {f"estimates.{name}": tensor for name, tensor in self.estimates.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])
