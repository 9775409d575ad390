"""Triangles of judgements: what three items say together that no pair can.

A pair judged several times is one side of a triangle, and counts with the share of its "same"
answers: products of such shares over the sides have the same mean as those of single answers, where
a vote (or "same if anybody says so") would shift it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.pairs.columns import IndexArray
from likewise.pairs.edges import chunks
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.neighbours import Neighbours

# Paths of two judgements up to which triangles are counted by sparse products: under a second.
MAX_PATHS = 20_000_000
# Few items with many paths are counted by dense products, where those cost no more.
MAX_DENSE_ITEMS = 2048
DENSE_SPEED = 20  # dense multiplications in the time of a sparse one
# Paths multiplied at once: some hundred MB of products.
BLOCK_PATHS = 20_000_000
# Sampling: at most so many paths of two judgements, around centres with so many judgements in all.
SAMPLE_WEDGES = 1 << 18
SAMPLE_EDGES = 1 << 22
# With fewer triangles than this, sampled paths were too rarely closed: the graph is sparse.
ENOUGH = 2000


@dataclass(frozen=True)
class Triangles:
    """Triples of items of which all three pairs were judged: counts, or a sample of them."""

    closed: float
    """How many there are, or were seen."""
    two_same: float
    """How many of them have exactly two "same" sides."""
    three_same: float
    """How many have three."""
    sampled: bool
    """Whether they are a sample of all."""

    @property
    def transitivity(self) -> float | None:
        """Of the triangles with two "same" sides at least, the share with a third."""
        several = self.two_same + self.three_same
        return self.three_same / several if several else None


class PairIndex:
    """The judgements sorted by unordered pair, so that the answers about a pair can be looked up.

    One int64 a judgement: (smaller * N + larger) * 2 + same.
    """

    def __init__(self, graph: JudgementGraph) -> None:
        self.n_items = graph.n_items
        self._keys = np.empty(len(graph), np.int64)
        for part in chunks(len(graph)):
            code = self.code(graph.left[part], graph.right[part])
            self._keys[part] = 2 * code + graph.same[part]
        self._keys.sort()

    @classmethod
    def of_keys(cls, keys: NDArray[np.int64], n_items: int) -> PairIndex:
        """The index of judgements whose numbers (M,) are made already; they are sorted in place."""
        index = cls.__new__(cls)
        index.n_items, index._keys = n_items, keys
        keys.sort()
        return index

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
        return code // self.n_items, code % self.n_items, share

    def look_up(self, a: IndexArray, b: IndexArray) -> NDArray[np.float64]:
        """Share of "same" among the answers about each pair (a, b); NaN where it was not judged."""
        return self.share(self.code(a, b))

    def share(self, code: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same of pairs by their codes (n,)."""
        key = 2 * code
        start, middle, stop = (np.searchsorted(self._keys, key + k) for k in range(3))
        number = stop - start
        return np.where(number > 0, (stop - middle) / np.maximum(number, 1), np.nan)

    def repeated(self) -> NDArray[np.int64]:
        """The codes, sorted, of pairs that were judged more than once."""
        found = [np.empty(0, np.int64)]
        for part in chunks(len(self._keys) - 1):
            here, after = self._keys[part] >> 1, self._keys[part.start + 1 : part.stop + 1] >> 1
            found.append(np.unique(here[here == after]))  # some pairs a million times
        return np.unique(np.concatenate(found))

    def code(self, a: IndexArray, b: IndexArray) -> NDArray[np.int64]:
        """One number for each unordered pair (a, b)."""
        return np.minimum(a, b).astype(np.int64) * self.n_items + np.maximum(a, b)


def count_triangles(
    graph: JudgementGraph,
    rng: np.random.Generator,
    *,
    max_paths: float = MAX_PATHS,
    thorough: bool = False,
    index: PairIndex | None = None,
) -> Triangles:
    """Count the triangles exactly up to ``max_paths`` paths of two judgements, else sample them.

    Random paths are looked at. Where hardly one of them closes, because the graph is sparse, a
    ``thorough`` count goes on to all triangles among a random part of the items, as large as
    ``max_paths`` allows. ``index`` is the graph's own, where there is one already.
    """
    index = PairIndex(graph) if index is None else index
    paths = float(np.square(graph.degree, dtype=np.float64).sum())
    if paths <= max_paths or graph.n_items <= MAX_DENSE_ITEMS:
        return _exact(index, graph.degree, sampled=False)
    found = _sampled(graph, index, rng)
    if not thorough or found.closed >= ENOUGH:
        return found
    part = _some_items(graph, (max_paths / paths) ** (1 / 3), rng)
    among = _exact(PairIndex(part), part.degree, sampled=True)
    return max(found, among, key=lambda triangles: triangles.closed)


def complete_triangles(ids: IndexArray) -> Triangles:
    """The triangles of a complete, consistent set: two "same" sides always have the third."""
    sizes = np.bincount(ids)
    return Triangles(_triples(np.array([len(ids)])), 0.0, _triples(sizes), False)


def _exact(index: PairIndex, degree: NDArray[np.int64], sampled: bool) -> Triangles:
    low, high, share = index.shares()
    paths = float(np.square(degree, dtype=np.float64).sum())
    if index.n_items <= MAX_DENSE_ITEMS and DENSE_SPEED * paths >= index.n_items**3:
        said, asked = np.zeros((2, index.n_items, index.n_items))
        said[low, high] = said[high, low] = share
        asked[low, high] = asked[high, low] = 1
        through = said @ said
        two, three = float((through * (asked - said)).sum()), float((through * said).sum())
        return Triangles(float(((asked @ asked) * asked).sum()) / 6, two / 2, three / 6, sampled)
    # Each side points to the item with more judgements, so that a triangle is met once, from its
    # least judged corner, and the paths through much judged items are few.
    rank = np.empty(index.n_items, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(index.n_items)
    ends = np.minimum(rank[low], rank[high]), np.maximum(rank[low], rank[high])
    shape = (index.n_items, index.n_items)
    same = sparse.csr_array((share, ends), shape=shape)
    same.eliminate_zeros()
    judged = sparse.csr_array((np.ones(len(share)), ends), shape=shape)
    closed = several = three = 0.0
    for rows in _row_blocks(judged):
        said, asked = same[rows], judged[rows]
        through = said @ same
        three += float((through * said).sum())
        several += float((through * asked).sum())
        several += float(((said @ judged + asked @ same) * said).sum())
        closed += float(((asked @ judged) * asked).sum())
    return Triangles(closed, several - 3 * three, three, sampled)


def _row_blocks(judged: sparse.csr_array) -> Iterator[slice]:
    """Slices of rows whose products with the whole matrix stay within `BLOCK_PATHS`."""
    paths = np.cumsum(judged @ np.diff(judged.indptr).astype(np.float64))
    start = 0
    while start < len(paths):
        done = paths[start - 1] if start else 0.0
        stop = max(int(np.searchsorted(paths, done + BLOCK_PATHS, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _some_items(graph: JudgementGraph, share: float, rng: np.random.Generator) -> JudgementGraph:
    """The judgements among a random ``share`` of the items, indexed among these."""
    chosen = rng.choice(graph.n_items, max(int(graph.n_items * share), 3), replace=False)
    position = np.full(graph.n_items, -1, np.int32)
    position[chosen] = np.arange(len(chosen), dtype=np.int32)
    lefts, rights, answers = [], [], []
    for part in chunks(len(graph)):
        left, right = position[graph.left[part]], position[graph.right[part]]
        inside = (left >= 0) & (right >= 0)
        lefts.append(left[inside])
        rights.append(right[inside])
        answers.append(graph.same[part][inside])
    return JudgementGraph(
        left=np.concatenate(lefts),
        right=np.concatenate(rights),
        same=np.concatenate(answers),
        n_items=len(chosen),
    )


def _sampled(graph: JudgementGraph, index: PairIndex, rng: np.random.Generator) -> Triangles:
    """Uniform paths a - centre - b; those whose ends were judged too are uniform triangles."""

    def neighbours(centres: IndexArray) -> tuple[NDArray[np.int64], IndexArray]:
        found = Neighbours(centres, graph.n_items)
        found.add(graph.left, graph.right)
        return found.lists()

    centre, a, b = draw_wedges(graph.degree, rng, neighbours)
    third = index.look_up(a, b)
    closed = ~np.isnan(third)
    centre, a, b, third = centre[closed], a[closed], b[closed], third[closed]
    return triangles_of_wedges(third, index.look_up(centre, a), index.look_up(centre, b))


def triangles_of_wedges(
    third: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> Triangles:
    """A sample, by the shares of "same" (n,) of paths' sides; NaN in ``third``: not closed."""
    closed = ~np.isnan(third)
    third, first, second = third[closed], first[closed], second[closed]
    three = first * second * third
    two = first * second + second * third + third * first - 3 * three
    return Triangles(float(len(third)), float(two.sum()), float(three.sum()), True)


def draw_wedges(
    degree: NDArray[np.int64],
    rng: np.random.Generator,
    neighbours: Callable[[IndexArray], tuple[NDArray[np.int64], IndexArray]],
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Random paths of two judgements: ``(centre, end, other end)``, ends distinct.

    ``degree`` (N,) is how many judgements each item has; ``neighbours`` is asked once, for the
    partners of chosen items as `Neighbours` lists them.
    """
    paths = np.cumsum(degree * (degree - 1.0))
    usual = float(np.average(degree, weights=degree * (degree - 1.0)))
    n_centres = int(max(1, min(SAMPLE_WEDGES, SAMPLE_EDGES / usual)))
    drawn = np.searchsorted(paths, rng.random(n_centres) * paths[-1], side="right")
    centres = np.unique(np.minimum(drawn, len(degree) - 1))
    start, neighbour = neighbours(centres)
    # As many wedges from each drawn centre; a centre drawn twice gives twice as many.
    each = np.searchsorted(centres, np.repeat(drawn, max(1, SAMPLE_WEDGES // n_centres)))
    size = start[each + 1] - start[each]
    one = rng.integers(size)
    other = (one + 1 + rng.integers(size - 1)) % size
    a, b = neighbour[start[each] + one], neighbour[start[each] + other]
    distinct = a != b  # a pair judged twice is no path
    return centres[each][distinct], a[distinct], b[distinct]


def _triples(sizes: NDArray[np.int64]) -> float:
    exact = sum(int(n) * (int(n) - 1) * (int(n) - 2) // 6 for n in sizes)
    return float(exact)
