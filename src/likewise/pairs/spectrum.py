"""The spectrum of the centred judgement matrix: what judgements say of classes, all together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from likewise.pairs.columns import BoolArray, IndexArray

FloatArray = NDArray[np.float64]

# Lanczos needs a few more items than vectors, and something to iterate on.
FEW_ITEMS = 64


def spectral_embedding(
    *,
    left: IndexArray,
    right: IndexArray,
    same: BoolArray,
    weight: NDArray[np.floating] | None,
    annotator: NDArray[np.int32] | None,
    n_items: int,
    n_vectors: int,
) -> tuple[FloatArray, FloatArray]:
    """Leading ``(values (n,), vectors (N, n))`` of the centred judgement matrix, largest first.

    The matrix (N, N) holds, for each judgement, its answer less how often whoever was asked says
    "same", times its weight.
    """
    strength = np.ones(len(left)) if weight is None else weight.astype(np.float64)
    centred = (same - _usual_answer(same, strength, annotator)) * strength
    half = sparse.coo_array((centred, (left, right)), shape=(n_items, n_items)).tocsr()
    matrix = half + half.T
    if n_items <= FEW_ITEMS or not np.any(matrix.data):  # of zeros alone, Lanczos finds no start
        return _by_dense(matrix, n_vectors)
    # A fixed start vector: Lanczos must not depend on anybody's random state.
    start = np.random.default_rng(0).normal(size=n_items)
    values, vectors = eigsh(matrix, k=n_vectors, which="LA", v0=start)
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def _by_dense(matrix: sparse.csr_array, n_vectors: int) -> tuple[FloatArray, FloatArray]:
    n_items = matrix.shape[0]
    if not np.any(matrix.data):
        return np.zeros(n_vectors), np.zeros((n_items, n_vectors))
    values, vectors = eigh(matrix.toarray())
    return values[::-1][:n_vectors], vectors[:, ::-1][:, :n_vectors]


def _usual_answer(
    same: BoolArray, strength: FloatArray, annotator: NDArray[np.int32] | None
) -> FloatArray:
    """(M,) how often "same" is said by whoever was asked: who always says it then says nothing."""
    said = same * strength
    overall = said.sum() / max(strength.sum(), 1e-12)
    if annotator is None:
        return np.full(len(same), overall)
    rate = (np.bincount(annotator, said) + overall) / (np.bincount(annotator, strength) + 1)
    return np.asarray(rate[annotator])
