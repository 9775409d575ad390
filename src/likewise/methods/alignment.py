"""Transition matrices side by side: how far apart, and a given one in the learned order."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from torch import Tensor

FloatMatrix = NDArray[np.float64]
# Starts of the search: with twenty, one cycle of ten classes in ten was read in a wrong order.
FEWEST_RESTARTS, MOST_RESTARTS = 20, 150
MOST_TRIED = 7  # classes of which every order is tried: 5,040 orders


def align_transition(given: ArrayLike, estimate: Tensor) -> Tensor:
    """``given`` (C, C), its classes renumbered to be as near to ``estimate`` (C, C) as can be.

    Judgements say nothing of the numbers of classes, so that a T which is given knows its classes
    by other numbers than the fit does. Rows and columns move together: a quadratic assignment
    problem. Of few classes every order is tried; of more it is solved by the FAQ algorithm
    (Vogelstein et al., 2015) from several starts.
    """
    theirs, ours = np.asarray(given, np.float64), estimate.cpu().double().numpy()
    orders = _candidates(theirs, ours)
    renumbered = theirs[orders[:, :, None], orders[:, None, :]]
    order = orders[((renumbered - ours) ** 2).sum(axis=(1, 2)).argmin()]
    return torch.from_numpy(theirs[np.ix_(order, order)]).to(estimate)


def is_order_free(transition: np.ndarray) -> bool:
    """Whether T (C, C) is the same in every order of classes, as symmetric noise is."""
    eye = np.eye(len(transition))
    return np.allclose(transition, transition[0, 0] * eye + transition[0, 1] * (1 - eye))


def _candidates(theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Orders ``p`` (K, C) such that ``theirs[p][:, p]`` is near ``ours``."""
    n_classes = len(ours)
    if is_order_free(theirs):
        return np.arange(n_classes)[None]
    if n_classes <= MOST_TRIED:
        return np.array(list(itertools.permutations(range(n_classes))))
    diagonal = np.abs(np.diag(theirs)[None] - np.diag(ours)[:, None])
    found = [np.arange(n_classes), linear_sum_assignment(diagonal)[1]]
    restarts = min(MOST_RESTARTS, max(FEWEST_RESTARTS, MOST_RESTARTS * 100 // n_classes**2))
    for seed in range(restarts):
        options = {"maximize": True, "rng": np.random.default_rng(seed), "P0": "randomized"}
        found.append(quadratic_assignment(ours, theirs, options=options).col_ind)
    # Most starts end in few orders.
    return np.array([_polished(order, theirs, ours) for order in np.unique(found, axis=0)])


def _polished(order: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """An order (C,) after all swaps of two classes that bring ``theirs`` nearer: 2-opt."""
    order = order.copy()
    for _ in range(len(order) ** 2):
        gain = _gains_of_swaps(theirs[np.ix_(order, order)], ours)
        r, s = np.unravel_index(gain.argmax(), gain.shape)
        if gain[r, s] < 1e-9:
            break
        order[[r, s]] = order[[s, r]]
    return order


def _gains_of_swaps(theirs: FloatMatrix, ours: FloatMatrix) -> FloatMatrix:
    """(C, C) what swapping two classes of ``theirs`` adds to its inner product with ``ours``."""

    def of_rows(one: FloatMatrix, other: FloatMatrix) -> FloatMatrix:
        product: FloatMatrix = one @ other.T
        kept: FloatMatrix = (one * other).sum(axis=1)
        return product + product.T - kept[:, None] - kept[None]

    def corners(matrix: FloatMatrix) -> FloatMatrix:
        """Where the two rows and the two columns cross, counted twice by them."""
        diagonal = np.diag(matrix)
        return diagonal[:, None] + diagonal[None] - matrix - matrix.T

    rows, columns = of_rows(ours, theirs), of_rows(ours.T, theirs.T)
    return rows + columns + corners(ours) * corners(theirs)


def lopsided(transition: Tensor) -> float:
    """How far T (C, C) is from symmetric noise that keeps as much."""
    n_classes = len(transition)
    kept = transition.diagonal().mean()
    eye = torch.eye(n_classes, dtype=transition.dtype)
    return distance(transition, kept * eye + (1 - kept) / (n_classes - 1) * (1 - eye))


def distance(one: Tensor, other: Tensor) -> float:
    """|T - T'|_1 / |T|_1 of two transition matrices (C, C): the paper's metric."""
    return float((one - other).abs().sum() / one.abs().sum())


def least_apart(transition: FloatMatrix) -> float:
    """The least total variation between two rows of T (C, C): 0 where what is perceived says
    nothing of which of two classes an item is."""
    rows = np.asarray(transition, np.float64)
    apart = np.abs(rows[:, None] - rows[None]).sum(axis=2) / 2
    return float(apart[~np.eye(len(rows), dtype=bool)].min())
