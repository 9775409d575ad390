"""Groups of sorted items: eigenvectors of the piles for starts, then classes that explain piles.

The number of groups, where it is not known, is the one that foretells best the piles of items that
were left out: evidence would merge what most people merge.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from likewise.inference.partition.arrays import FloatArray
from likewise.inference.partition.sorts import (
    Sorts,
    fit_concentration,
    place_items,
    sorts_evidence,
    unseen_log_chances,
)

N_STARTS = 6
ROUNDS, SWEEPS = 6, 20
FIRST_CONCENTRATION = 1.0  # before there are classes to fit it to
MAX_GROUPS = 60
LADDER = (2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 60)
HELD_OUT = 0.1
CLEARLY = 10.0  # nats


def place_sorted(
    sorts: Sorts, n_groups: int | None, rng: np.random.Generator
) -> tuple[FloatArray, float, float]:
    """``(beliefs (N, C), concentration, log evidence)``: the best of several starts."""
    if n_groups is None:
        n_groups = count_groups(sorts, rng)
    embedding = _embedding(sorts, max(n_groups - 1, 1), rng)
    best: tuple[FloatArray, float, float] | None = None
    for _ in range(N_STARTS):
        belief, concentration = settle(sorts, _cluster(embedding, n_groups, rng))
        evidence = soft_evidence(sorts, belief, concentration)
        if best is None or evidence > best[2]:
            best = belief, concentration, evidence
    assert best is not None
    return best


def count_groups(sorts: Sorts, rng: np.random.Generator) -> int:
    """How many groups foretell best the piles of items that were left out of a sort."""
    held = rng.random(len(sorts.item)) < HELD_OUT
    seen, unseen = sorts.select(~held), sorts.select(held)
    most = min(MAX_GROUPS, sorts.n_items // 4)
    tried: dict[int, FloatArray] = {}

    def score(count: int) -> FloatArray:
        belief, concentration, _ = place_sorted(seen, count, rng)
        return unseen_log_chances(seen, unseen, belief, concentration)

    for count in (n for n in LADDER if n <= max(most, 2)):
        tried[count] = score(count)
        best = max(tried, key=lambda number: float(tried[number].mean()))
        if count > 2 * best:
            break
    while near := [n for n in (best - 1, best + 1) if 2 <= n <= most and n not in tried]:
        tried |= {number: score(number) for number in near}
        best = max(tried, key=lambda number: float(tried[number].mean()))
    return best


def settle(sorts: Sorts, belief: FloatArray) -> tuple[FloatArray, float]:
    """Beliefs (N, C) and concentration in turns, from a first guess.

    Every class is as likely as the others for an item: a share that is learned along lets the
    largest swallow the rest while little is known.
    """
    concentration = FIRST_CONCENTRATION
    flat = np.zeros_like(belief)
    for _ in range(ROUNDS):
        before = belief
        belief = place_items(sorts, flat, concentration, belief, SWEEPS)
        concentration = fit_concentration(sorts, belief)
        if np.abs(belief - before).sum(1).mean() < 1e-3:
            break
    return belief, concentration


def soft_evidence(sorts: Sorts, belief: FloatArray, concentration: float) -> float:
    """Log evidence of the piles, a variational bound with flat classes."""
    entropy = -float((belief * np.log(np.clip(belief, 1e-12, None))).sum())
    flat = len(belief) * float(np.log(belief.shape[1]))
    return sorts_evidence(sorts, belief, concentration) + entropy - flat


def is_telling(sorts: Sorts, belief: FloatArray, concentration: float) -> bool:
    """Whether beliefs (N, C) explain the piles better than no classes at all do."""
    flat = np.full_like(belief, 1 / belief.shape[1])
    nothing = sorts_evidence(sorts, flat, fit_concentration(sorts, flat))
    return soft_evidence(sorts, belief, concentration) > nothing + CLEARLY


def _cluster(embedding: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """(N, C) k-means of the points, as beliefs."""
    from sklearn.cluster import KMeans  # takes seconds to load, and sorts are rare

    seed = int(rng.integers(2**31))
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
    count = min(n_vectors, sorts.n_items - 2)
    start = rng.standard_normal(sorts.n_items)
    values, vectors = eigsh(
        LinearOperator(shape, matvec=product, dtype=np.float64), k=count, which="LA", v0=start
    )
    return np.asarray(vectors * np.maximum(values, 0))
