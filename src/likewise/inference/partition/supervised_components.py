"""Directions of the features in which judgements tell items apart: supervised principal components.

Principal components show where items vary, which need not be where people tell them apart. The
directions v in which v' X' A X v is largest, A (N, N) the centred answers and X the features, agree
with the answers most (supervised PCA by the Hilbert-Schmidt independence criterion, Barshan et al.,
Pattern Recognition 2011). They are read off the answers as a whole, before any group is known;
noise that is the same for all groups shortens them and does not turn them.

Features that vary little are scaled up, as far as that foretells answers that were left out.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from likewise.inference.partition.answers import Answers
from likewise.inference.partition.arrays import FloatArray, IntArray
from likewise.pairs.spectrum import usual_answer

MOST_FEATURES = 150  # principal components that are looked at: the others are mostly noise
RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the largest variance
FOLDS = 4  # of pairs


def supervised_components(
    answers: Answers, points: FloatArray, n_components: int, rng: np.random.Generator
) -> FloatArray:
    """(N, n) scores of items at ``points`` (N, d), principal components, the largest first; what
    answers tell apart most comes first, n at most ``n_components`` and d."""
    points = points[:, :MOST_FEATURES] - points[:, :MOST_FEATURES].mean(0)
    n_components = min(n_components, points.shape[1])
    fold = rng.integers(0, FOLDS, answers.n_pairs)[answers.pair]
    usual = usual_answer(answers.same, answers.weight, answers.annotator)
    said = answers.weight * (answers.same - usual)
    parts = _by_fold(answers, points, said, fold)
    scale = _scale(points, _best_ridge(answers, points, said, fold, parts, n_components))
    whole = sum(parts, np.zeros_like(parts[0]))
    return np.asarray((points * scale) @ _leading(whole, scale, n_components)[1])


def _by_fold(
    answers: Answers, points: FloatArray, said: FloatArray, fold: IntArray
) -> list[FloatArray]:
    """(d, d) of each fold: X' A X, A its centred answers (M,)."""
    left, right = answers.left[answers.pair], answers.right[answers.pair]
    shape = (answers.n_items, answers.n_items)
    parts = []
    for k in range(FOLDS):
        own = fold == k
        half = sparse.coo_array((said[own], (left[own], right[own])), shape=shape).tocsr()
        product = points.T @ (half @ points)
        parts.append(product + product.T)
    return parts


def _scale(points: FloatArray, ridge: float) -> FloatArray:
    """(d,) what features are multiplied by: less for those that vary more."""
    variance = np.square(points).mean(0)
    return np.asarray(1 / np.sqrt(np.maximum(variance + ridge * variance.max(), 1e-24)))


def _leading(
    product: FloatArray, scale: FloatArray, n_components: int
) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues (n,) of the scaled product (d, d), and vectors (d, n)."""
    values, vectors = np.linalg.eigh(scale[:, None] * product * scale)
    return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]


def _best_ridge(
    answers: Answers,
    points: FloatArray,
    said: FloatArray,
    fold: IntArray,
    parts: list[FloatArray],
    n_components: int,
) -> float:
    """The ridge whose directions agree best with the answers of other folds."""
    left, right = answers.left[answers.pair], answers.right[answers.pair]
    whole = sum(parts, np.zeros_like(parts[0]))
    agreement = dict.fromkeys(RIDGES, 0.0)
    for ridge in RIDGES:
        scale = _scale(points, ridge)
        for k, part in enumerate(parts):
            values, vectors = _leading(whole - part, scale, n_components)
            scores = (points * scale) @ vectors
            own = fold == k
            alike = ((scores * np.maximum(values, 0))[left[own]] * scores[right[own]]).sum(1)
            agreement[ridge] += float(alike @ said[own]) / max(float(np.linalg.norm(alike)), 1e-24)
    return max(RIDGES, key=lambda ridge: agreement[ridge])
