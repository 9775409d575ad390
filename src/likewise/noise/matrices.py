"""Noise on perceived classes and on judgements: building it, checking it, applying it.

A transition matrix T is (C, C) with T[c, k] = P(perceived k | true c); its *rows* sum to 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.pairs import Pairs

FloatMatrix = NDArray[np.float64]


def symmetric(n_classes: int, rate: float) -> FloatMatrix:
    """(C, C) symmetric noise: a class is kept with 1 - rate, else any other one, equally likely."""
    _check_noise(n_classes, rate)
    transition = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(transition, 1.0 - rate)
    return transition


def pair_flip(n_classes: int, rate: float) -> FloatMatrix:
    """(C, C) pair-flip noise: class c is taken for class c + 1 (the last for the first)."""
    _check_noise(n_classes, rate)
    identity = np.eye(n_classes)
    return (1.0 - rate) * identity + rate * np.roll(identity, 1, axis=1)


def check_transition(transition: ArrayLike, n_classes: int | None = None) -> FloatMatrix:
    """T as a float64 copy, or an `InputError` that says why it is no transition matrix."""
    try:
        matrix = np.array(transition, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("a transition matrix must hold numbers, (C, C) of them.") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"a transition matrix must be square, but has shape {matrix.shape}.")
    if n_classes is not None and len(matrix) != n_classes:
        raise InputError(
            f"the transition matrix is for {len(matrix)} classes, but there are {n_classes}."
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError("a transition matrix must hold probabilities, but has negative or NaN.")
    sums = matrix.sum(axis=1)
    row = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[row] - 1) > 1e-4:
        raise InputError(
            f"each row of a transition matrix must sum to 1 (row: true class, column: perceived "
            f"class), but row {row} sums to {sums[row]:.6g}."
        )
    return np.asarray(matrix / sums[:, None])


def corrupt_labels(
    labels: ArrayLike, transition: ArrayLike, random_state: int | np.random.Generator | None = None
) -> NDArray[np.int64]:
    """(N,) perceived classes drawn from the row of T of each true class."""
    matrix = check_transition(transition)
    y = np.asarray(labels)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise InputError(
            f"labels must be (N,) class numbers, but are {y.dtype} of shape {y.shape}."
        )
    if len(y) and (y.min() < 0 or y.max() >= len(matrix)):
        raise InputError(
            f"labels must lie in 0 to {len(matrix) - 1} for a transition matrix of "
            f"{len(matrix)} classes, but range from {y.min()} to {y.max()}."
        )
    rng = np.random.default_rng(random_state)
    thresholds = np.cumsum(matrix, axis=1)[:, :-1]  # (C, C-1): the last class takes what is left
    crossed = rng.random(len(y))[:, None] >= thresholds[y]
    return np.asarray(crossed.sum(axis=1), dtype=np.int64)


def flip_judgements(
    pairs: Pairs,
    same_given_same: float,
    same_given_different: float,
    random_state: int | np.random.Generator | None = None,
) -> Pairs:
    """Judgements through an (a, b) channel: each answer is drawn anew, by itself.

    a = P("same" | same), b = P("same" | different); (1, 0) changes nothing.
    """
    for name, rate in (
        ("same_given_same", same_given_same),
        ("same_given_different", same_given_different),
    ):
        if not 0 <= rate <= 1:
            raise InputError(f"{name} must be a probability between 0 and 1, but is {rate}.")
    listed = pairs.explicit()
    rng = np.random.default_rng(random_state)
    chance = np.where(listed.same, same_given_same, same_given_different)
    return listed.with_answers(rng.random(len(listed)) < chance)


def _check_noise(n_classes: int, rate: float) -> None:
    if n_classes < 2:
        raise InputError(f"noise between classes needs at least two classes, not {n_classes}.")
    if not 0 <= rate <= 1:
        raise InputError(f"a noise rate must lie between 0 and 1, but is {rate}.")
