"""How many classes there are, from the judgements alone.

Consistent judgements: the groups that "same" joins and "different" holds apart. Where the groups
have grown together there is one a class; before that, the largest set of groups of which any two
were judged different cannot be larger than the number of classes, and nearly reaches it.

Contradictory judgements: every class beyond the first lifts one eigenvalue of the centred judgement
matrix above what the same graph shows with its answers shuffled. That sees no class before it is
judged often; with features at hand, short fits with different numbers are compared instead, by the
judgements that they did not see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.inference.channel_selection import redundant
from likewise.inference.count_by_prediction import can_count, count_by_prediction
from likewise.inference.graph import Contraction, Graph, contract
from likewise.inference.starts import spectral_embedding
from likewise.pairs import Pairs

MAX_CLASSES = 60
MAX_ITEMS = 200_000  # the spectrum of more is that of a sample
SHUFFLES = 3
MARGIN = 1.03
CANDIDATES = 400
TRIES = 200


def count_classes(
    pairs: Pairs, seed: int = 0, *, items: NDArray[Any] | None = None
) -> tuple[int, dict[str, Any]]:
    """``(number of classes, evidence)``; the evidence says by which rule, and shows its figures.

    ``items`` (N, d), where they are given, are looked at too if judgements contradict each other.
    """
    rng = np.random.default_rng(seed)
    if pairs.is_complete:
        return _by_size(np.bincount(pairs.components()))
    if pairs.n_items > MAX_ITEMS:
        pairs = pairs.subset(np.sort(rng.choice(pairs.n_items, MAX_ITEMS, replace=False)))
    graph = Graph.from_pairs(pairs)
    merged = contract(graph)
    if merged.contradictions == 0:
        count, evidence = _by_groups(merged, rng)
        return count, evidence | {"redundant": redundant(merged, graph)}
    count, evidence = _by_spectrum(graph, rng)
    if items is None or not can_count(items, pairs):
        return count, evidence
    return count_by_prediction(items, pairs, count, rng) or (count, evidence)


def _by_size(sizes: NDArray[np.int64]) -> tuple[int, dict[str, Any]]:
    """Groups as large as classes are: those before the steepest fall of the sizes."""
    largest = np.sort(sizes)[::-1][: MAX_CLASSES + 1]
    count = _before_the_fall(largest)
    return count, {"rule": "components", "sizes": largest[: count + 3].tolist()}


def _before_the_fall(sizes: NDArray[np.int64]) -> int:
    """How many of the falling sizes come before the largest ratio of neighbours, at least 2."""
    following = np.append(sizes[1:], 0)
    ratio = sizes / (following + 1.0)  # the 1 keeps a fall from 2 to 0 from being the steepest
    return int(np.argmax(ratio[1:])) + 2 if len(sizes) > 1 else 1


def _by_groups(merged: Contraction, rng: np.random.Generator) -> tuple[int, dict[str, Any]]:
    sizes = merged.sizes.cpu().numpy()
    largest = np.sort(sizes)[::-1][: MAX_CLASSES + 1]
    count = _before_the_fall(largest)
    grown = largest[:count].sum() >= 0.6 * sizes.sum()
    if grown and largest[count - 1] >= 4 * max(largest[count] if count < len(largest) else 0, 1):
        return count, {"rule": "components", "sizes": largest[: count + 3].tolist()}
    clique = _largest_clique(merged, rng)
    evidence = {"rule": "groups judged different", "sizes": np.sort(sizes[clique])[::-1].tolist()}
    return max(len(clique), 2), evidence


def _largest_clique(merged: Contraction, rng: np.random.Generator) -> NDArray[np.int64]:
    """Nodes of which any two are judged different, as many as a randomised greedy search finds."""
    sizes = merged.sizes.cpu().numpy()
    nodes = np.argsort(-sizes, kind="stable")[:CANDIDATES]
    rank = np.full(len(sizes), -1)
    rank[nodes] = np.arange(len(nodes))
    left, right = rank[merged.graph.left.cpu().numpy()], rank[merged.graph.right.cpu().numpy()]
    both = (left >= 0) & (right >= 0)
    apart = np.zeros((len(nodes), len(nodes)), bool)
    apart[left[both], right[both]] = apart[right[both], left[both]] = True
    best: list[int] = []
    for attempt in range(TRIES):
        # Large nodes first, the order a little different each time.
        jitter = 0.0 if attempt == 0 else 1.0
        order = np.argsort(-np.log(sizes[nodes]) - jitter * rng.gumbel(size=len(nodes)) * 0.5)
        chosen = _grow(apart, order)
        if len(chosen) > len(best):
            best = chosen
    return nodes[best]


def _grow(apart: NDArray[np.bool_], order: NDArray[np.int64]) -> list[int]:
    chosen: list[int] = []
    open_ = np.ones(len(apart), bool)
    for node in order:
        if open_[node]:
            chosen.append(int(node))
            open_ &= apart[node]
    return chosen


def _by_spectrum(graph: Graph, rng: np.random.Generator) -> tuple[int, dict[str, Any]]:
    wanted = min(MAX_CLASSES, graph.n_items - 2)
    if wanted < 1:
        return 2, {"rule": "spectrum", "eigenvalues": [], "edge": 0.0}
    values, _ = spectral_embedding(graph, wanted)
    edge = MARGIN * max(_shuffled_edge(graph, rng) for _ in range(SHUFFLES))
    count = 1 + int((values > edge).sum())
    shown = [round(float(value), 4) for value in values[: count + 2]]
    # Nothing above the edge: the judgements are too few or too noisy to say more than "two".
    return max(count, 2), {"rule": "spectrum", "eigenvalues": shown, "edge": round(edge, 4)}


def _shuffled_edge(graph: Graph, rng: np.random.Generator) -> float:
    """The largest eigenvalue that the same pairs show when their answers mean nothing."""
    order = rng.permutation(len(graph))
    shuffled = Graph(graph.left, graph.right, graph.same[order], graph.n_items, None, graph.weight)
    return float(spectral_embedding(shuffled, 1)[0][0])
