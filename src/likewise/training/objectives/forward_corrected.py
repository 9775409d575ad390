"""The joint objective: items have perceived classes (noisy labels), f says how likely those are.

Forward-corrected cross-entropy (Patrini et al., 2017): f = g @ T is compared with what is known of
the perceived class, a row of *evidence* for each item (see `likewise.noise.estimation`): one-hot
where judgements are consistent, soft where they are not, zeros where nothing is known.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.noise.estimation import (
    TINY,
    class_posterior,
    count_transition,
    evidence_costs,
    held_out_transition,
)
from likewise.training.objectives.pairwise import Objective

ESTIMATES = 20  # of T in a run, at most: small fits would spend as long on it as on training


class ForwardCorrected(Objective):
    """Cross-entropy of f = g @ T on evidence of perceived classes.

    ``evidence`` (N, C) is of the training items, ``held_evidence`` (H, C) of the held-out ones. T
    is given, or estimated along the way from held-out items: first by counting, once the network
    has learned something, then by likelihood, as long as counting does not refute it.
    """

    rows_are_items = True
    first_estimate = 0.1

    def __init__(
        self,
        evidence: Tensor,
        held_evidence: Tensor,
        device: torch.device,
        transition: Tensor | None = None,
    ) -> None:
        self.evidence = evidence.float().to(device)
        self.held_evidence = held_evidence.float().to(device)
        self.labelled = torch.nonzero(self._is_trained_on()).squeeze(1)
        self.n_rows = len(self.labelled)
        self.estimating = transition is None
        start = torch.eye(evidence.shape[1]) if transition is None else transition.float()
        self.transition = start.to(device)
        self.temperature = torch.ones((), device=device)
        self.estimates = torch.zeros((), device=device)

    def _is_trained_on(self) -> Tensor:
        """(N,) items with anything to learn from: a flat row of evidence teaches nothing."""
        return self.evidence.amax(dim=1) > self.evidence.amin(dim=1)

    def items_of(self, rows: Tensor) -> Tensor:
        return self.labelled[rows]

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return self.cross_entropy(logits, self.evidence[self.labelled[rows]])

    def mixed_loss(self, logits: Tensor, rows: Tensor, partners: Tensor, share: Tensor) -> Tensor:
        """Loss of mixed items: ``share`` of each row's item, the rest of its partner's."""
        own = self.cross_entropy(logits, self.evidence[self.labelled[rows]])
        other = self.cross_entropy(logits, self.evidence[self.labelled[partners]])
        return share * own + (1 - share) * other

    def cross_entropy(self, logits: Tensor, evidence: Tensor) -> Tensor:
        """-log sum_k (g @ T)_k evidence_k, mean over items."""
        log_g = logits.float().log_softmax(dim=1)
        log_likelihood = (evidence @ self.transition.T).clamp_min(TINY).log()  # (n, C) given y
        return -torch.logsumexp(log_g + log_likelihood, dim=1).mean()

    def class_posterior(self, logits: Tensor, rows: Tensor, temperature: Tensor) -> Tensor:
        """(n, C) P(y | x, evidence) of a teacher's logits, sharpened: the E-step of the teacher."""
        log_g = logits.float().log_softmax(dim=1) / temperature
        return class_posterior(log_g, self.transition, self.evidence[self.labelled[rows]])

    def score(self, logits: Tensor) -> Tensor:
        costs = evidence_costs(logits / self.temperature, self.transition, self.held_evidence)
        return costs.sum() / (self.held_evidence.sum(dim=1) > 0).sum().clamp_min(1)

    def refine(self, logits: Tensor, done: int, epochs: int) -> None:
        if not self.estimating or done < self.first_estimate * epochs:
            return
        if done * ESTIMATES // epochs == (done - 1) * ESTIMATES // epochs:
            return
        if not self.estimates:
            self.transition.copy_(count_transition(logits, self.held_evidence))
        else:
            transition, temperature = held_out_transition(logits, self.held_evidence)
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

    ``posterior`` (N, C) is P(y | x, evidence) of the training items, known or not. T and the score
    are as ever. A network that learns what others of its kind have found: self-distillation
    (born-again networks, Furlanello et al., 2018).
    """

    def __init__(
        self,
        posterior: Tensor,
        evidence: Tensor,
        held_evidence: Tensor,
        device: torch.device,
        transition: Tensor | None = None,
    ) -> None:
        self.posterior = posterior.float().to(device)
        super().__init__(evidence, held_evidence, device, transition)

    def _is_trained_on(self) -> Tensor:
        return torch.ones(len(self.evidence), dtype=torch.bool, device=self.evidence.device)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return soft_cross_entropy(logits, self.posterior[self.items_of(rows)])

    def mixed_loss(self, logits: Tensor, rows: Tensor, partners: Tensor, share: Tensor) -> Tensor:
        own, other = (self.posterior[self.items_of(r)] for r in (rows, partners))
        return soft_cross_entropy(logits, share * own + (1 - share) * other)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of (n, C) logits on (n, C) distributions, mean over items."""
    return -(target * logits.float().log_softmax(dim=1)).sum(dim=1).mean()
