"""The joint objective where judgements are consistent: items have perceived classes, and f says
how likely those are.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.noise.estimation import count_transition, held_out_transition
from likewise.training.objectives.pairwise import Objective


class ForwardCorrected(Objective):
    """The joint objective under an exact channel: cross-entropy of f = g @ T on perceived classes.

    ``ids`` (N,) are the perceived classes of the training items (components of the "same" graph),
    -1 where unknown; ``held_ids`` those of the held-out ones, in the same numbering. T is given,
    or estimated along the way from held-out items: first by counting, once the network has learned
    something, then by likelihood, as long as counting does not refute it.
    """

    rows_are_items = True
    first_estimate = 0.1

    def __init__(
        self,
        ids: NDArray[np.integer],
        held_ids: NDArray[np.integer],
        n_classes: int,
        device: torch.device,
        transition: Tensor | None = None,
    ) -> None:
        self.ids = torch.as_tensor(ids, dtype=torch.int64).to(device)
        self.held_ids = torch.as_tensor(held_ids, dtype=torch.int64).to(device)
        self.labelled = torch.nonzero(self.ids >= 0).squeeze(1)
        self.n_rows = len(self.labelled)
        self.estimating = transition is None
        start = torch.eye(n_classes) if transition is None else transition.float()
        self.transition = start.to(device)
        self.temperature = torch.ones((), device=device)
        self.estimates = torch.zeros((), device=device)

    def items_of(self, rows: Tensor) -> Tensor:
        return self.labelled[rows]

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return self.cross_entropy(logits, self.ids[self.labelled[rows]])

    def mixed_loss(self, logits: Tensor, rows: Tensor, partners: Tensor, share: Tensor) -> Tensor:
        """Loss of mixed items: ``share`` of each row's item, the rest of its partner's."""
        own = self.cross_entropy(logits, self.ids[self.labelled[rows]])
        other = self.cross_entropy(logits, self.ids[self.labelled[partners]])
        return share * own + (1 - share) * other

    def cross_entropy(self, logits: Tensor, ids: Tensor) -> Tensor:
        """-log (g @ T)[z], forward-corrected cross-entropy, mean over items."""
        log_g = logits.float().log_softmax(dim=1)
        log_column = self.transition.clamp_min(1e-30).log().T[ids]  # (n, C): log T[c, z_i]
        return -torch.logsumexp(log_g + log_column, dim=1).mean()

    def class_posterior(self, logits: Tensor, rows: Tensor, temperature: Tensor) -> Tensor:
        """(n, C) P(y | x, z) of a teacher's logits, sharpened: the E-step of the teacher."""
        log_g = logits.float().log_softmax(dim=1) / temperature
        return class_posterior(log_g, self.transition, self.ids[self.labelled[rows]])

    def score(self, logits: Tensor) -> Tensor:
        costs = forward_costs(logits.float() / self.temperature, self.transition, self.held_ids)
        return costs.sum() / (self.held_ids >= 0).float().sum().clamp_min(1)

    def refine(self, logits: Tensor, progress: float) -> None:
        if not self.estimating or progress < self.first_estimate:
            return
        if not self.estimates:
            self.transition.copy_(count_transition(logits, self.held_ids))
        else:
            transition, temperature = held_out_transition(logits, self.held_ids)
            self.transition.copy_(transition)
            self.temperature.copy_(temperature)
        self.estimates += 1

    def tensors(self) -> dict[str, Tensor]:
        return {
            "transition": self.transition,
            "temperature": self.temperature,
            "estimates": self.estimates,
        }


class Distillation(ForwardCorrected):
    """The M-step alone: cross-entropy of g on a posterior of the class that others have found.

    ``posterior`` (N, C) is P(y | x, z) of the training items. T and the score are as ever.
    """

    def __init__(
        self,
        ids: NDArray[np.integer],
        held_ids: NDArray[np.integer],
        posterior: Tensor,
        device: torch.device,
        transition: Tensor | None = None,
    ) -> None:
        super().__init__(ids, held_ids, posterior.shape[1], device, transition)
        self.posterior = posterior.to(device)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return soft_cross_entropy(logits, self.posterior[self.items_of(rows)])

    def mixed_loss(self, logits: Tensor, rows: Tensor, partners: Tensor, share: Tensor) -> Tensor:
        own, other = (self.posterior[self.items_of(r)] for r in (rows, partners))
        return soft_cross_entropy(logits, share * own + (1 - share) * other)


def class_posterior(log_g: Tensor, transition: Tensor, ids: Tensor) -> Tensor:
    """(n, C) P(y | x, z) from log g, up to a constant an item, and z (n,); -1 says nothing."""
    log_column = transition.clamp_min(1e-30).log().T[ids.clamp_min(0)]  # (n, C): log T[c, z_i]
    return (log_g + log_column * (ids >= 0)[:, None]).softmax(dim=1)


def forward_costs(logits: Tensor, transition: Tensor, ids: Tensor) -> Tensor:
    """(n,) -log (g @ T)[z] of each item; 0 where z is unknown (-1)."""
    p = logits.float().softmax(dim=1) @ transition
    likelihood = p.gather(1, ids.clamp_min(0)[:, None]).squeeze(1)
    return -likelihood.clamp_min(1e-30).log() * (ids >= 0)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of (n, C) logits on (n, C) distributions, mean over items."""
    return -(target * logits.float().log_softmax(dim=1)).sum(dim=1).mean()
