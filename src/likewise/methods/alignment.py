"""Transition matrices side by side: how far apart, and a given one in the learned order."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from torch import Tensor

# Starts of the search: with twenty, one cycle of ten classes in ten was read in a wrong order.
FEWEST_RESTARTS, MOST_RESTARTS = 20, 150


def align_transition(given: ArrayLike, estimate: Tensor) -> Tensor:
    """``given`` (C, C), its classes renumbered to be as near to ``estimate`` (C, C) as can be.

    Judgements say nothing of the numbers of classes, so that a T which is given knows its classes
    by other numbers than the fit does. Rows and columns move together: a quadratic assignment
    problem, solved by the FAQ algorithm (Vogelstein et al., 2015) from several starts.
    """
    theirs, ours = np.asarray(given, np.float64), estimate.cpu().double().numpy()
    order = min(_candidates(theirs, ours), key=lambda p: ((theirs[np.ix_(p, p)] - ours) ** 2).sum())
    return torch.from_numpy(theirs[np.ix_(order, order)]).to(estimate)


def is_order_free(transition: np.ndarray) -> bool:
    """Whether T (C, C) is the same in every order of classes, as symmetric noise is."""
    eye = np.eye(len(transition))
    return np.allclose(transition, transition[0, 0] * eye + transition[0, 1] * (1 - eye))


def _candidates(theirs: np.ndarray, ours: np.ndarray) -> list[np.ndarray]:
    """Orders ``p`` such that ``theirs[p][:, p]`` is near ``ours``; each one also polished."""
    n_classes = len(ours)
    found = [np.arange(n_classes)]
    if is_order_free(theirs):
        return found
    diagonal = np.abs(np.diag(theirs)[None] - np.diag(ours)[:, None])
    found.append(linear_sum_assignment(diagonal)[1])
    restarts = min(MOST_RESTARTS, max(FEWEST_RESTARTS, MOST_RESTARTS * 100 // n_classes**2))
    for seed in range(restarts):
        options = {"maximize": True, "rng": np.random.default_rng(seed), "P0": "randomized"}
        found.append(quadratic_assignment(ours, theirs, options=options).col_ind)
    return [
        quadratic_assignment(
            ours,
            theirs,
            method="2opt",
            options={
                "maximize": True,
                "partial_guess": np.column_stack([np.arange(n_classes), order]),
                "rng": np.random.default_rng(0),
            },
        ).col_ind
        for order in found
    ]


def lopsided(transition: Tensor) -> float:
    """How far T (C, C) is from symmetric noise that keeps as much."""
    n_classes = len(transition)
    kept = transition.diagonal().mean()
    eye = torch.eye(n_classes, dtype=transition.dtype)
    return distance(transition, kept * eye + (1 - kept) / (n_classes - 1) * (1 - eye))


def distance(one: Tensor, other: Tensor) -> float:
    """|T - T'|_1 / |T|_1 of two transition matrices (C, C): the paper's metric."""
    return float((one - other).abs().sum() / one.abs().sum())
