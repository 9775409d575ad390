"""Triangles of judgements: what three items say together that no pair can.

A pair judged several times counts with the share of its "same" answers: products of such shares
over the sides of a triangle have the same mean as those of single answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.pairs.edges import chunks

IndexArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

# Counted exactly: few items by dense products, few paths of two judgements by sparse ones, both
# under a second. Otherwise sampled.
MAX_DENSE_ITEMS = 2048
MAX_SPARSE_PATHS = 20_000_000
# Sampling: at most so many paths of two judgements, around centres with so many judgements in all.
SAMPLE_WEDGES = 1 << 18
SAMPLE_EDGES = 1 << 22


@dataclass(frozen=True)
class Triangles:
    """Triples of items of which all three pairs were judged: counts, or a sample of them.

    Attributes
    ----------
    closed : how many there are, or were seen.
    two_same, three_same : how many of them have exactly two, and three, "same" sides.
    sampled : whether they are a uniform sample.
    """

    closed: float
    two_same: float
    three_same: float
    sampled: bool

    @property
    def transitivity(self) -> float | None:
        """Of the triangles with two "same" sides at least, the share with a third."""
        several = self.two_same + self.three_same
        return self.three_same / several if several else None


class PairIndex:
    """The judgements sorted by unordered pair, so that the answers about a pair can be looked up.

    One int64 a judgement: (smaller * N + larger) * 2 + same.
    """

    def __init__(self, left: IndexArray, right: IndexArray, same: BoolArray, n_items: int) -> None:
        self._n_items = n_items
        self._keys = np.empty(len(left), np.int64)
        for part in chunks(len(left)):
            self._keys[part] = 2 * self._code(left[part], right[part]) + same[part]
        self._keys.sort()

    def count(self) -> tuple[int, int]:
        """``(distinct pairs, pairs that got both answers)``."""
        if not len(self._keys):
            return 0, 0
        distinct, both = 1, 0
        for part in chunks(len(self._keys) - 1):
            here, after = self._keys[part], self._keys[part.start + 1 : part.stop + 1]
            new = here >> 1 != after >> 1
            distinct += int(np.count_nonzero(new))
            both += int(np.count_nonzero(~new & (here != after)))
        return distinct, both

    def shares(self) -> tuple[IndexArray, IndexArray, NDArray[np.float64]]:
        """Each distinct pair ``(smaller, larger, share of "same" answers)``."""
        code, first, number = np.unique(self._keys >> 1, return_index=True, return_counts=True)
        share = np.add.reduceat(self._keys & 1, first) / number if len(code) else np.empty(0)
        return code // self._n_items, code % self._n_items, share

    def look_up(self, a: IndexArray, b: IndexArray) -> NDArray[np.float64]:
        """Share of "same" among the answers about each pair (a, b); NaN where it was not judged."""
        key = 2 * self._code(a, b)
        start, middle, stop = (np.searchsorted(self._keys, key + k) for k in range(3))
        number = stop - start
        return np.where(number > 0, (stop - middle) / np.maximum(number, 1), np.nan)

    def _code(self, a: IndexArray, b: IndexArray) -> NDArray[np.int64]:
        return np.minimum(a, b).astype(np.int64) * self._n_items + np.maximum(a, b)


def count_triangles(
    left: IndexArray,
    right: IndexArray,
    index: PairIndex,
    degree: NDArray[np.int64],
    rng: np.random.Generator,
) -> Triangles:
    """Count the triangles exactly where the graph is small, and sample them where it is not."""
    paths = float(np.square(degree, dtype=np.float64).sum())
    if len(degree) <= MAX_DENSE_ITEMS or paths <= MAX_SPARSE_PATHS:
        return _exact(index, len(degree))
    return _sampled(left, right, index, degree, rng)


def complete_triangles(ids: IndexArray) -> Triangles:
    """The triangles of a complete, consistent set: two "same" sides always have the third."""
    sizes = np.bincount(ids)
    return Triangles(_triples(np.array([len(ids)])), 0.0, _triples(sizes), False)


def rates_from_triangles(
    same_share: float, three_same_share: float, n_classes: int
) -> tuple[float, float]:
    """Rates ``(P(different | same), P(same | different))`` of flipped judgements.

    For C balanced classes, a judgement says "same" with probability a on a pair of one class and b
    on another. Then P(same) = p = [a + (C-1) b] / C and, with d = (a - b) / C, P(three "same" in a
    triangle) = p³ + (C-1) d³: the third moment of the eigenvalues of the C x C matrix of rates.
    Flips of the perceived class change neither, as long as the perceived classes are balanced.
    """
    p = same_share
    d = float(np.cbrt((three_same_share - p**3) / (n_classes - 1)))
    a, b = p + (n_classes - 1) * d, p - d
    return float(np.clip(1 - a, 0, 1)), float(np.clip(b, 0, 1))


def _exact(index: PairIndex, n_items: int) -> Triangles:
    same, judged = _matrices(index, n_items)
    paths = same @ same
    three = float((paths * same).sum()) / 6
    two = float((paths * (judged - same)).sum()) / 2
    closed = float(((judged @ judged) * judged).sum()) / 6
    return Triangles(closed, two, three, False)


def _matrices(index: PairIndex, n_items: int) -> tuple[Any, Any]:
    """(N, N) share of "same" answers, and whether there is any; dense where that is small."""
    low, high, share = index.shares()
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    same, judged = (
        sparse.csr_array((np.concatenate([v, v]), (rows, columns)), shape=(n_items, n_items))
        for v in (share, np.ones(len(share)))
    )
    if n_items <= MAX_DENSE_ITEMS:
        return same.toarray(), judged.toarray()
    return same, judged


def _sampled(
    left: IndexArray,
    right: IndexArray,
    index: PairIndex,
    degree: NDArray[np.int64],
    rng: np.random.Generator,
) -> Triangles:
    """Uniform paths a - centre - b; those whose ends were judged too are uniform triangles."""
    centre, a, b = _draw_wedges(left, right, degree, rng)
    third = index.look_up(a, b)
    closed = ~np.isnan(third)
    centre, a, b, third = centre[closed], a[closed], b[closed], third[closed]
    first, second = index.look_up(centre, a), index.look_up(centre, b)
    three = first * second * third
    two = first * second + second * third + third * first - 3 * three
    return Triangles(float(len(third)), float(two.sum()), float(three.sum()), True)


def _draw_wedges(
    left: IndexArray, right: IndexArray, degree: NDArray[np.int64], rng: np.random.Generator
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Random paths of two judgements: ``(centre, end, other end)``, ends distinct."""
    paths = np.cumsum(degree * (degree - 1.0))
    usual = float(np.average(degree, weights=degree * (degree - 1.0)))
    n_centres = int(max(1, min(SAMPLE_WEDGES, SAMPLE_EDGES / usual)))
    drawn = np.searchsorted(paths, rng.random(n_centres) * paths[-1], side="right")
    centres = np.unique(np.minimum(drawn, len(degree) - 1))
    start, neighbour = _neighbours(left, right, centres, len(degree))
    # As many wedges from each drawn centre; a centre drawn twice gives twice as many.
    each = np.searchsorted(centres, np.repeat(drawn, max(1, SAMPLE_WEDGES // n_centres)))
    size = start[each + 1] - start[each]
    one = rng.integers(size)
    other = (one + 1 + rng.integers(size - 1)) % size
    a, b = neighbour[start[each] + one], neighbour[start[each] + other]
    distinct = a != b  # a pair judged twice is no path
    return centres[each][distinct], a[distinct], b[distinct]


def _neighbours(
    left: IndexArray, right: IndexArray, centres: IndexArray, n_items: int
) -> tuple[NDArray[np.int64], IndexArray]:
    """The partners of the chosen items: ``neighbour[start[k] : start[k + 1]]`` of centre k."""
    position = np.full(n_items, -1, np.int32)
    position[centres] = np.arange(len(centres), dtype=np.int32)
    owners, partners = [], []
    for part in chunks(len(left)):
        for here, there in ((left[part], right[part]), (right[part], left[part])):
            owner = position[here]
            chosen = owner >= 0
            owners.append(owner[chosen])
            partners.append(there[chosen])
    owner, partner = np.concatenate(owners), np.concatenate(partners)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(centres)))])
    return start, partner[np.argsort(owner, kind="stable")]


def _triples(sizes: NDArray[np.int64]) -> float:
    exact = sum(int(n) * (int(n) - 1) * (int(n) - 2) // 6 for n in sizes)
    return float(exact)
