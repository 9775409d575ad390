"""Groups of sorted items: too many of them from eigenvectors of the piles, merged one by one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from likewise.inference.partition.arrays import FloatArray
from likewise.inference.partition.piles import (
    PileModel,
    fit_piles,
    place_items,
    pseudo_evidence,
    urn_evidence,
)
from likewise.inference.partition.sorts import Sorts
from likewise.pairs.spectrum import leading_vectors

N_STARTS = 3
ROUNDS, SWEEPS = 8, 8
ROUNDS_AFTER_MERGES = 2
N_ALIKE = 6  # pairs of classes, the most similar, that may be merged next
MAX_GROUPS = 60
CLEARLY = 10.0  # nats
TINY = 1e-9  # items, of a class that is empty

Placed = tuple[FloatArray, PileModel]
"""Beliefs (N, C) of items' classes, and how people make piles of them."""


def place_sorted(sorts: Sorts, n_groups: int, rng: np.random.Generator) -> Placed:
    """The best of several starts: so many groups, or twice as many that are merged."""
    fits = list(_from_eigenvectors(sorts, n_groups, rng))
    if (more := min(2 * n_groups, most_groups(sorts))) > n_groups:
        *_, merged = merge_path(sorts, more, n_groups, rng)
        fits.append(settle(sorts, *merged))
    return max(fits, key=lambda fit: _evidence(sorts, *fit))


def merge_path(
    sorts: Sorts, most: int, least: int, rng: np.random.Generator, n_starts: int = N_STARTS
) -> Iterator[Placed]:
    """Fits of fewer and fewer groups, the two merged that explain the piles best as one.

    Groups that are too fine can be merged; those that are too coarse would have to be cut, and
    nothing says where.
    """
    starts = _from_eigenvectors(sorts, most, rng, n_starts)
    placed = max(starts, key=lambda fit: _evidence(sorts, *fit))
    yield placed
    while (count := placed[0].shape[1]) > least:
        for _ in range(min(max(count // 12, 1), count - least)):
            placed = merge_two(sorts, *placed)
        placed = settle(sorts, *placed, ROUNDS_AFTER_MERGES)
        yield placed


def merge_two(sorts: Sorts, belief: FloatArray, model: PileModel) -> Placed:
    """Two groups merged: of the most similar ones, and of the smallest with those like it, the two
    that leave the piles likeliest."""
    scale = np.sqrt(np.diag(model.similarity))
    alike = model.similarity / np.outer(scale, scale)
    first, second = np.triu_indices(len(alike), 1)
    pairs = [(first[at], second[at]) for at in np.argsort(-alike[first, second])[:N_ALIKE]]
    smallest = int(belief.sum(0).argmin())
    nearest = [other for other in np.argsort(-alike[smallest])[:3] if other != smallest]
    pairs += [(min(smallest, other), max(smallest, other)) for other in nearest]
    merged = (_merged(belief, model, int(a), int(b)) for a, b in dict.fromkeys(pairs))
    return max(merged, key=lambda fit: _evidence(sorts, *fit))


def _merged(belief: FloatArray, model: PileModel, a: int, b: int) -> Placed:
    """Beliefs (N, C - 1) with classes ``a`` < ``b`` in one, and their mean similarities."""
    size = belief.sum(0)
    into = np.delete(np.eye(len(size)), b, axis=1)
    into[b, a] = 1
    share = into * (size[:, None] + TINY)
    share /= share.sum(0)
    return belief @ into, PileModel(share.T @ model.similarity @ share, model.concentration)


def settle(
    sorts: Sorts, belief: FloatArray, model: PileModel | None = None, rounds: int = ROUNDS
) -> Placed:
    """Beliefs (N, C) and how people make piles in turns, from a first guess.

    Every class is as likely as the others for an item: a share that is learned along lets the
    largest swallow the rest while little is known.
    """
    if model is None:
        model = PileModel.of_strangers(belief.shape[1])
    flat = np.zeros_like(belief)
    for _ in range(rounds):
        before = belief
        belief = place_items(sorts, flat, model, belief, SWEEPS)
        model = fit_piles(sorts, belief, model)
        if np.abs(belief - before).sum(1).mean() < 1e-3:
            break
    return belief, model


def most_groups(sorts: Sorts) -> int:
    """The largest number of groups that is looked for."""
    return max(min(MAX_GROUPS, sorts.n_items // 2), 2)


def _from_eigenvectors(
    sorts: Sorts, count: int, rng: np.random.Generator, n_starts: int = N_STARTS
) -> Iterator[Placed]:
    """Fits of so many groups, each begun from k-means of the piles' eigenvectors."""
    embedding = _embedding(sorts, max(count - 1, 1), rng)
    return (settle(sorts, _cluster(embedding, count, rng)) for _ in range(n_starts))


def _evidence(sorts: Sorts, belief: FloatArray, model: PileModel) -> float:
    """Log evidence of the piles by each other, a variational bound with flat classes."""
    return pseudo_evidence(sorts, belief, model) - _surprise(belief)


def is_telling(sorts: Sorts, belief: FloatArray) -> bool:
    """Whether beliefs (N, C) explain the piles better than no classes at all do."""
    flat = np.full_like(belief, 1 / belief.shape[1])
    return urn_evidence(sorts, belief) - _surprise(belief) > urn_evidence(sorts, flat) + CLEARLY


def _surprise(belief: FloatArray) -> float:
    """How far beliefs (N, C) are from flat ones, in nats."""
    entropy = -float((belief * np.log(np.clip(belief, 1e-12, None))).sum())
    return len(belief) * float(np.log(belief.shape[1])) - entropy


def _cluster(embedding: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """(N, C) k-means of the points, as beliefs."""
    from sklearn.cluster import KMeans  # takes seconds to load, and sorts are rare
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():  # items that were never sorted are all one point
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = KMeans(count, n_init=3, random_state=seed).fit(embedding).labels_
    return np.asarray(0.9 * np.eye(count)[labels] + 0.1 / count)


def _embedding(sorts: Sorts, n_vectors: int, rng: np.random.Generator) -> FloatArray:
    """(N, n) eigenvectors by their values of how much oftener two items share a pile than usual."""
    rows = np.ones(len(sorts.item))
    n_piles = len(sorts.sort_of_pile)
    piles = sparse.csr_array((rows, (sorts.item, sorts.pile)), shape=(sorts.n_items, n_piles))
    size = np.bincount(sorts.pile, minlength=n_piles).astype(np.float64)
    whole = np.bincount(sorts.sort_of_pile, size)
    usual = np.bincount(sorts.sort_of_pile, size * size) / np.maximum(whole, 1) ** 2
    in_sort = sparse.csr_array(
        (rows, (sorts.item, sorts.sort_of_pile[sorts.pile])), shape=(sorts.n_items, len(whole))
    )

    def product(vector: FloatArray) -> FloatArray:
        vector = vector.ravel()
        alike = piles @ (piles.T @ vector)
        return np.asarray(alike - in_sort @ (usual * (in_sort.T @ vector)))

    shape = (sorts.n_items, sorts.n_items)
    alike = LinearOperator(shape, matvec=product, dtype=np.float64)
    values, vectors = leading_vectors(alike, n_vectors, rng.standard_normal(sorts.n_items))
    return np.asarray(vectors * np.maximum(values, 0))
