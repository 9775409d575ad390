"""The spectrum of the centred judgement matrix: what judgements say of classes, all together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, aslinearoperator, eigsh

from likewise.pairs.columns import BoolArray, IndexArray

FloatArray = NDArray[np.float64]

# Lanczos needs a few more items than vectors, and something to iterate on.
FEW_ITEMS = 64
TINY = 1e-12  # what cancels leaves no more than rounding


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
    centred = (same - usual_answer(same, strength, annotator)) * strength
    half = sparse.coo_array((centred, (left, right)), shape=(n_items, n_items)).tocsr()
    matrix = half + half.T
    # A fixed start vector: Lanczos must not depend on anybody's random state.
    start = np.random.default_rng(0).normal(size=n_items)
    values, vectors = leading_vectors(matrix, n_vectors, start)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def leading_vectors(
    matrix: sparse.csr_array | LinearOperator,
    n_vectors: int,
    start: NDArray[np.floating],
    tol: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues (n,) of a symmetric matrix (N, N), rising, and vectors (N, n).

    By Lanczos from ``start`` (N,), where that can be: few items are done densely; of a matrix of
    zeros, which has no direction, and beyond the N-th, values and vectors are zero.
    """
    operator = aslinearoperator(matrix)
    n_items = operator.shape[0]
    values, vectors = np.zeros(n_vectors), np.zeros((n_items, n_vectors))
    found = min(n_vectors, n_items)
    if not np.abs(operator @ start).max(initial=0) > TINY:
        return values, vectors
    if n_items <= FEW_ITEMS or found >= n_items - 1:
        all_values, all_vectors = eigh(operator @ np.eye(n_items, dtype=operator.dtype))
        values[n_vectors - found :] = all_values[n_items - found :]
        vectors[:, n_vectors - found :] = all_vectors[:, n_items - found :]
        return values, vectors
    try:
        return eigsh(operator, k=n_vectors, which="LA", v0=start, tol=tol)  # type: ignore[no-any-return]
    except ArpackNoConvergence as partly:
        if done := len(partly.eigenvalues):
            values[n_vectors - done :] = partly.eigenvalues
            vectors[:, n_vectors - done :] = partly.eigenvectors
        return values, vectors


def usual_answer(same: BoolArray, strength: FloatArray, annotator: IndexArray | None) -> FloatArray:
    """(M,) how often "same" is said by whoever was asked: who always says it then says nothing."""
    said = same * strength
    overall = said.sum() / max(strength.sum(), 1e-12)
    if annotator is None:
        return np.full(len(same), overall)
    rate = (np.bincount(annotator, said) + overall) / (np.bincount(annotator, strength) + 1)
    return np.asarray(rate[annotator])
