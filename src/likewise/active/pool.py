"""The pairs that may be asked about: which there are, and which of them are taken."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.active.information import class_entropy
from likewise.errors import InputError
from likewise.io.npy import Array
from likewise.pairs import Pairs

FloatMatrix = NDArray[np.float64]
Positions = NDArray[np.int64]
LIKELY_CLASSES = 3
ALL_PAIRS = 100_000  # at most so many pairs are listed, to choose from
PARTNERS = 4  # of each likely class, for every item
# What the next question about an item is worth before the last one is answered. Mutual information
# alone hardly falls where people err often: it takes their mistakes about one item for independent.
REPEATED = 0.5


def likely_pairs(
    belief: FloatMatrix, pairs: Pairs, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pairs of an uncertain item with sure ones of its likely classes."""
    n_classes = belief.shape[1]
    uncertain = np.argsort(-class_entropy(belief), kind="stable")[: max(4 * n, 200)]
    likely = np.argsort(-belief[uncertain], axis=1)[:, : min(LIKELY_CLASSES, n_classes)]
    best = belief.argmax(axis=1)
    sure_of = [_surest(belief, best, k) for k in range(n_classes)]
    found = []
    for column in likely.T:
        for _ in range(PARTNERS):
            partner = np.array([rng.choice(sure_of[k]) for k in column])
            found.append(np.stack([uncertain, partner], axis=1))
    return unjudged(np.concatenate(found), pairs)


def unjudged(pool: Array, pairs: Pairs) -> NDArray[np.int64]:
    """The distinct pairs of ``pool`` (K, 2) that nobody has judged, smaller index first; what is of
    weight 0 is no judgement."""
    n_items, pairs = pairs.n_items, pairs.that_count()
    ends = np.sort(pool, axis=1).astype(np.int64)
    judged = np.sort(np.stack([pairs.left, pairs.right]).astype(np.int64), axis=0)
    code = np.unique(ends[:, 0] * n_items + ends[:, 1])
    code = np.setdiff1d(code, judged[0] * n_items + judged[1])
    left, right = code // n_items, code % n_items
    return np.asarray(np.stack([left, right], axis=1)[left != right], np.int64)


def any_unjudged(pairs: Pairs, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n, 2) pairs by chance that nobody has judged; fewer only where there are no more."""
    n_items, pairs = pairs.n_items, pairs.that_count()
    found = unjudged(rng.integers(0, n_items, (2 * n, 2)), pairs)
    if len(found) < n:  # few are left, or few there ever were
        total = n_items * (n_items - 1) // 2
        judged = np.sort(np.stack([pairs.left, pairs.right]).astype(np.int64), axis=0)
        left_over = total - len(np.unique(judged[0] * n_items + judged[1]))
        n = min(n, left_over)
        if total <= ALL_PAIRS or 2 * max(n, total - left_over) > total:
            found = unjudged(np.stack(np.triu_indices(n_items, 1), axis=1), pairs)
        while len(found) < n:
            drawn = rng.integers(0, n_items, (2 * n, 2))
            found = unjudged(np.concatenate([found, drawn]), pairs)
    return found[rng.permutation(len(found))][:n]


def reach_of(group: Array, pool: NDArray[np.int64]) -> NDArray[np.float64]:
    """(K,) how many items an exact answer is about: what "same" has joined moves as one."""
    size = np.bincount(group)[group][pool].astype(np.float64)  # (K, 2)
    return np.asarray(size.min(axis=1) + np.log(size.max(axis=1)))


def fill(chosen: NDArray[np.int64], rest: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """``chosen``, then as many others as are lacking."""
    both = np.concatenate([chosen, rest])
    _, first = np.unique(both, axis=0, return_index=True)
    return both[np.sort(first)][:n]


def _surest(belief: FloatMatrix, best: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The surer half of the items of class ``k``; where it has none, those nearest to it."""
    members = np.flatnonzero(best == k)
    if len(members) == 0:
        members = np.argsort(-belief[:, k], kind="stable")[:2]
    order = np.argsort(-belief[members, k], kind="stable")
    return np.asarray(members[order][: max(len(members) // 2, 1)], np.int64)


def checked_pool(candidates: ArrayLike, n_items: int) -> NDArray[np.int64]:
    pool = np.asarray(candidates)
    if pool.ndim != 2 or pool.shape[1] != 2:
        raise InputError(f"candidates must be pairs, shape (K, 2), but have shape {pool.shape}.")
    if len(pool) and (pool.min() < 0 or pool.max() >= n_items):
        raise InputError(f"candidates must name items from 0 to {n_items - 1}.")
    return pool.astype(np.int64)


def spread(value: NDArray[np.float64], pool: NDArray[np.int64], n: int) -> Positions:
    """Positions of ``n`` pairs of ``pool`` (K, 2) of most ``value`` (K,), spread over the items.

    Greedily, and every earlier pair that names one of its items halves what a pair is worth. Worth
    only falls, so what was once computed bounds it, and few pairs need be looked at again (the lazy
    greedy algorithm of Minoux, 1978).
    """
    ends = pool.tolist()
    named = [0] * (1 + int(pool.max(initial=-1)))
    heap = [(-worth, position, 0) for position, worth in enumerate(value.tolist())]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < n:
        worth, position, before = heapq.heappop(heap)
        i, j = ends[position]
        times = named[i] + named[j]
        if times > before:
            heapq.heappush(heap, (worth * REPEATED ** (times - before), position, times))
            continue
        named[i] += 1
        named[j] += 1
        chosen.append(position)
    return np.array(chosen, np.int64)
