"""Beliefs about the perceived classes, as inference leaves them and as it may start."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Posterior:
    """What the judgements and the prior say of each z_i."""

    log_belief: Tensor
    """(N, C), normalised."""
    evidence: float
    """log P(judgements): Bethe's, or a mean-field bound."""
    iterations: int
    """How many it took."""
    converged: bool
    """Whether beliefs had stopped to change by then."""
    to_left: Tensor | None = None
    """(M, C) log messages to the left item of each judgement; None without belief propagation."""
    to_right: Tensor | None = None
    """(M, C) log messages to the right item."""

    @property
    def belief(self) -> Tensor:
        """(N, C) probabilities."""
        return self.log_belief.exp()


def guess(belief: Tensor) -> Posterior:
    """A posterior to start from where only beliefs (N, C) are known: no messages yet."""
    return Posterior(torch.log(belief.clamp_min(1e-6)), 0.0, 0, False)


def entropy(chances: Tensor) -> Tensor:
    """(...,) entropy in nats of probabilities (..., C)."""
    total: Tensor = torch.special.entr(chances).sum(-1)
    return total
