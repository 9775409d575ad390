"""T from soft evidence: out-of-fold g and what the judgements say of each item."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from likewise.noise.estimation import shrunk_transition


def estimate_transition(
    log_g: Tensor, judged: Tensor, temperatures: Sequence[float], iterations: int = 30
) -> tuple[Tensor, float]:
    """(C, C) T, and the temperature of g, of highest likelihood of the judgements.

    Maximises sum_i log sum_k (g_i @ T)_k judged_ik by EM at each temperature. ``log_g`` (N, C) must
    come from fits that did not see the item; ``judged`` (N, C) is the likelihood of its judgements.
    T is shrunk to symmetric noise by a prior whose strength is estimated. Without the temperature,
    a g that is too cautious would pass for less noise.
    """
    evidence = judged.double()
    best, best_score = None, -float("inf")
    for temperature in temperatures:
        g = torch.softmax(log_g.double() / temperature, dim=1)
        transition = _maximise(g, evidence, iterations)
        score = float(torch.log((g @ transition * evidence).sum(1).clamp_min(1e-300)).sum())
        if score > best_score:
            best, best_score = (transition, temperature), score
    assert best is not None
    return best


def _maximise(g: Tensor, evidence: Tensor, iterations: int) -> Tensor:
    n_classes = g.shape[1]
    eye = torch.eye(n_classes, dtype=torch.float64, device=g.device)
    transition = 0.7 * eye + 0.3 / n_classes
    for _ in range(iterations):
        seen = (g @ transition * evidence).sum(1, keepdim=True).clamp_min(1e-300)
        counts = transition * (g.T @ (evidence / seen))  # (C, C) expected (class, perceived)
        transition = shrunk_transition(counts[None])[0]
    return transition


def class_posterior(log_g: Tensor, transition: Tensor, judged: Tensor) -> Tensor:
    """(N, C) posterior of y: g times the likelihood of the judgements through T."""
    joint = log_g.exp() * (judged @ transition.T.to(judged))
    return joint / joint.sum(1, keepdim=True).clamp_min(1e-30)
