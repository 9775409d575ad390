"""Search for the best partition of a weighted graph: contraction, moves of items, merges, splits.

The objective of a partition is

    sum of w over the edges inside groups  +  sum over groups of F(size of the group),

w the log-odds that the ends of an edge belong together and F the logarithm of a prior on group
sizes (`size_prior`). With F = 0 this is correlation clustering (Bansal, Blum & Chawla 2004). Pairs
without an edge say nothing. Greedy additive edge contraction (GAEC, Keuper et al. 2015) finds a
start, moves of single items (Kernighan & Lin 1970), annealed or greedy, and splits mend it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray

TOLERANCE = 1e-9
# Groups up to so many items are tried to be split by an eigenvector of a dense matrix.
MAX_SPLIT_SIZE = 600


@dataclass(frozen=True)
class WeightedGraph:
    """Each undirected edge twice, in rows: the neighbours of i are at ``start[i]:start[i + 1]``."""

    start: IntArray
    """(N + 1,) where the rows of an item begin."""
    neighbour: IntArray
    """(2E,) the other end."""
    edge: IntArray
    """(2E,) the edge's number."""
    weight: FloatArray
    """(2E,) the edge's weight."""
    left: IndexArray
    """(E,) one end of each edge as given."""
    right: IndexArray
    """(E,) its other end."""
    edge_weight: FloatArray
    """(E,) its weight."""

    @property
    def n_items(self) -> int:
        """N, with edges or without."""
        return len(self.start) - 1

    @classmethod
    def build(
        cls, left: IndexArray, right: IndexArray, weight: FloatArray, n_items: int
    ) -> WeightedGraph:
        """From distinct edges (E,), (E,) without loops and their weights (E,)."""
        owner = np.concatenate([left, right])
        order = np.argsort(owner, kind="stable")
        neighbour = np.concatenate([right, left])[order].astype(np.int64)
        edge = order % max(len(left), 1)
        start = np.zeros(n_items + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=n_items), out=start[1:])
        return cls(start, neighbour, edge, weight[edge], left, right, weight)

    def reweighted(self, weight: FloatArray) -> WeightedGraph:
        """The same edges with other weights (E,)."""
        return WeightedGraph(
            self.start,
            self.neighbour,
            self.edge,
            weight[self.edge],
            self.left,
            self.right,
            weight,
        )


def canonical(labels: IndexArray) -> IntArray:
    """(N,) the same groups numbered 0, 1, … by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.reshape(-1)]


def objective(graph: WeightedGraph, labels: IndexArray, size_prior: FloatArray) -> float:
    """Weights inside groups plus F over sizes; ``size_prior`` (N + 1,) holds F, F(0) = 0."""
    inside = labels[graph.left] == labels[graph.right]
    sizes = np.bincount(labels) if len(labels) else np.zeros(0, np.int64)
    return float(graph.edge_weight[inside].sum() + size_prior[sizes].sum())


def contract(
    graph: WeightedGraph,
    labels: IndexArray,
    size_prior: FloatArray,
    n_groups: int | None = None,
) -> IntArray:
    """Merge the two groups that gain most, again and again (GAEC on a lazy heap).

    From ``labels`` (N,), while there is a gain; with ``n_groups``, until so many are left, at a
    loss if need be (groups without an edge between them then count as weight 0).
    """
    labels = canonical(labels)
    between = _between_groups(graph, labels)
    size = np.bincount(labels).tolist()
    prior = size_prior.tolist()

    def gain(a: int, b: int) -> float:
        merged: float = between[a][b] + prior[size[a] + size[b]] - prior[size[a]] - prior[size[b]]
        return merged

    def gains() -> list[tuple[float, int, int]]:
        found = [(-gain(a, b), a, b) for a, row in enumerate(between) for b in row if a < b]
        if n_groups is None:
            found = [one for one in found if one[0] < -TOLERANCE]
        heapq.heapify(found)
        return found

    heap = gains()
    parent = list(range(len(size)))
    left_over = len(size)
    while n_groups is None or left_over > n_groups:
        # Old gains are wrong where groups have grown: most have fallen, and are seen to when it is
        # their turn; of those that have risen some are found only when all others are done with.
        if not heap and not (heap := gains()):
            break
        negative, a, b = heapq.heappop(heap)
        if b not in between[a]:  # one of them is gone
            continue
        now = gain(a, b)
        if now < -negative - TOLERANCE:
            if n_groups is not None or now > TOLERANCE:
                heapq.heappush(heap, (-now, a, b))
            continue
        if len(between[a]) < len(between[b]):
            a, b = b, a
        for c in _absorb(between, a, b):
            value = gain_of(between, size, prior, a, b, c)
            if n_groups is not None or value > TOLERANCE:
                heapq.heappush(heap, (-value, min(a, c), max(a, c)))
        size[a] += size[b]
        parent[b] = a
        left_over -= 1
    found = canonical(_roots(parent)[labels])
    return found if n_groups is None else _merge_smallest(found, n_groups)


def gain_of(
    between: list[dict[int, float]],
    size: list[int],
    prior: list[float],
    a: int,
    b: int,
    c: int,
) -> float:
    """What merging c into a gains once a has absorbed b."""
    grown = size[a] + size[b]
    return between[a][c] + prior[grown + size[c]] - prior[grown] - prior[size[c]]


def split(graph: WeightedGraph, labels: IndexArray, size_prior: FloatArray) -> IntArray:
    """Cut groups in two where that gains: the leading eigenvector of the weights, then moves."""
    labels = canonical(labels)
    sizes = np.bincount(labels)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    inside = np.flatnonzero(labels[graph.left] == labels[graph.right])
    owner = labels[graph.left[inside]]
    inside = inside[np.argsort(owner, kind="stable")]
    edges = np.split(inside, np.cumsum(np.bincount(owner, minlength=len(sizes)))[:-1])
    place = np.empty(graph.n_items, np.int64)
    n_labels = len(sizes)
    for group, own in zip(members, edges, strict=True):
        if not 2 < len(group) <= MAX_SPLIT_SIZE:
            continue
        place[group] = np.arange(len(group))
        weights = np.zeros((len(group), len(group)))
        a, b = place[graph.left[own]], place[graph.right[own]]
        weights[a, b] = weights[b, a] = graph.edge_weight[own]
        half = _bisect(weights, size_prior)
        if half is not None:
            labels[group[half]] = n_labels
            n_labels += 1
    return labels


def leading_vector(matrix: FloatArray) -> FloatArray:
    """(n,) the eigenvector of the largest eigenvalue of a symmetric matrix (n, n)."""
    last = len(matrix) - 1
    vectors = eigh(matrix, subset_by_index=(last, last))[1]
    if not vectors.shape[1]:  # some LAPACKs miss the one that they are asked for among equal ones
        vectors = eigh(matrix)[1]
    return np.asarray(vectors[:, -1])


def _bisect(weights: FloatArray, size_prior: FloatArray) -> BoolArray | None:
    """(n,) one side of the best cut found of a group with weights (n, n); None if none gains."""
    n = len(weights)
    leading = leading_vector(weights - weights.sum() / (n * max(n - 1, 1)))
    side = np.where(leading >= 0, 1.0, -1.0)
    pull = weights @ side
    for _ in range(2 * n):  # Kernighan-Lin moves between the two sides
        here = np.where(side > 0, (side > 0).sum(), (side < 0).sum())
        there = n - here
        change = size_prior[here - 1] + size_prior[there + 1] - size_prior[here] - size_prior[there]
        gain = -side * pull + change
        best = int(np.argmax(gain))
        if gain[best] <= TOLERANCE:
            break
        pull -= 2 * side[best] * weights[best]
        side[best] = -side[best]
    first = side > 0
    cut = weights[first][:, ~first].sum()
    m = int(first.sum())
    if not 0 < m < n or size_prior[m] + size_prior[n - m] - size_prior[n] - cut <= TOLERANCE:
        return None
    return first


def _between_groups(graph: WeightedGraph, labels: IntArray) -> list[dict[int, float]]:
    """For each group, the summed weight to every other group that an edge leads to."""
    a, b = labels[graph.left], labels[graph.right]
    outside = a != b
    n = int(labels.max(initial=-1)) + 1
    low, high = np.minimum(a, b)[outside], np.maximum(a, b)[outside]
    code, inverse = np.unique(low * n + high, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), graph.edge_weight[outside], len(code))
    rows: list[dict[int, float]] = [{} for _ in range(n)]
    for x, y, w in zip((code // max(n, 1)).tolist(), (code % max(n, 1)).tolist(), total.tolist()):
        rows[x][y] = w
        rows[y][x] = w
    return rows


def _absorb(between: list[dict[int, float]], a: int, b: int) -> list[int]:
    """Give the edges of b to a; the groups that they lead to."""
    del between[a][b]
    del between[b][a]
    row = between[a]
    touched = list(between[b])
    for c, w in between[b].items():
        del between[c][b]
        row[c] = between[c][a] = row.get(c, 0.0) + w
    between[b] = {}
    return touched


def _roots(parent: list[int]) -> IntArray:
    for node in range(len(parent)):
        root = node
        while parent[root] != root:
            root = parent[root]
        while parent[node] != root:
            parent[node], node = root, parent[node]
    return np.array(parent, np.int64)


def _merge_smallest(labels: IntArray, n_groups: int) -> IntArray:
    """Join the smallest groups until ``n_groups`` are left: nothing connects them."""
    sizes = np.bincount(labels)
    excess = len(sizes) - n_groups
    if excess <= 0:
        return labels
    smallest = np.argsort(sizes, kind="stable")[: excess + 1]
    return canonical(np.where(np.isin(labels, smallest), smallest[0], labels))
