"""How many classes there are, from the judgements alone.

Consistent judgements: the groups that "same" joins and "different" holds apart.

- Where any two groups were judged different (a complete set, or one that says as much), the groups
  *are* the perceived classes: as many as there are groups of two items or more. A single item that
  differs from all others is an outlier: no class can be learned from it.
- Where the groups have grown together there is one a class. Before that, the largest set of groups
  of which any two were judged different (a clique) cannot be larger than the number of classes, and
  nearly reaches it.

Contradictory judgements: every class beyond the first lifts one eigenvalue of the centred judgement
matrix above what the same graph shows with its answers shuffled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.container import Pairs
from likewise.pairs.graph import Contraction
from likewise.pairs.spectrum import spectral_embedding

MAX_CLASSES = 60  # that are looked for in a spectrum
MAX_ITEMS = 200_000  # the spectrum of more is that of a sample
SHUFFLES = 3
MARGIN = 1.03
CANDIDATES = 400
TRIES = 200
SHOWN = 60  # sizes of groups that the evidence lists

Evidence = dict[str, object]
"""By which ``rule`` the classes were counted, and its figures, as JSON can hold them."""


def count_from_judgements(pairs: Pairs, rng: np.random.Generator) -> tuple[int, Evidence]:
    """``(number of classes, evidence)``; judgements of weight 0 count for nothing.

    The evidence's ``rule`` is "components", "groups judged different" or "spectrum"; the last
    where judgements contradict each other.
    """
    if pairs.is_complete:
        return _by_components(np.bincount(pairs.components()))
    pairs = pairs.that_count()
    if pairs.n_items > MAX_ITEMS:
        pairs = pairs.subset(np.sort(rng.choice(pairs.n_items, MAX_ITEMS, replace=False)))
    merged = pairs.graph.contract()
    if merged.contradictions:
        return _by_spectrum(pairs, rng)
    if merged.is_complete:
        count, evidence = _by_components(merged.sizes[merged.judged])
    else:
        count, evidence = _by_groups(merged, rng)
    return count, evidence | {"redundant": merged.redundant}


def _by_components(sizes: NDArray[np.int64]) -> tuple[int, Evidence]:
    """Each group of two or more is a class, where any two groups are known to differ."""
    count = int(np.count_nonzero(sizes > 1))
    single = len(sizes) - count
    evidence = _sizes("components", sizes[sizes > 1]) | {"single items": single}
    # Two answers need two classes: with one group alone, what differs from it is the other.
    return max(count, min(len(sizes), 2)), evidence


def _by_groups(merged: Contraction, rng: np.random.Generator) -> tuple[int, Evidence]:
    """Groups before the steepest fall of the sizes, where they have grown; or more, if apart."""
    largest = np.sort(merged.sizes)[::-1]
    count = _before_the_fall(largest)
    grown = largest[:count].sum() >= 0.6 * largest.sum()
    after = largest[count] if count < len(largest) else 0
    if grown and largest[count - 1] >= 4 * max(after, 1):
        clique = _largest_clique(merged, rng, at_least=2)
        if len(clique) <= count:
            return count, _sizes("components", largest[: count + 3])
    else:
        clique = _largest_clique(merged, rng, at_least=1)
    return max(len(clique), 2), _sizes("groups judged different", merged.sizes[clique])


def _before_the_fall(sizes: NDArray[np.int64]) -> int:
    """How many of the falling sizes come before the largest ratio of neighbours, at least 2."""
    following = np.append(sizes[1:], 0)
    ratio = sizes / (following + 1.0)  # the 1 keeps a fall from 2 to 0 from being the steepest
    return int(np.argmax(ratio[1:])) + 2 if len(sizes) > 1 else 1


def _sizes(rule: str, sizes: NDArray[np.int64]) -> Evidence:
    return {"rule": rule, "sizes": np.sort(sizes)[::-1][:SHOWN].tolist()}


def _largest_clique(
    merged: Contraction, rng: np.random.Generator, at_least: int
) -> NDArray[np.int64]:
    """Nodes of which any two are judged different, as many as a randomised greedy search finds.

    Among the largest nodes of ``at_least`` so many items.
    """
    nodes = np.argsort(-merged.sizes, kind="stable")[:CANDIDATES]
    nodes = nodes[merged.sizes[nodes] >= at_least]
    apart, size = merged.apart(nodes), np.log(merged.sizes[nodes])
    best: list[int] = []
    for attempt in range(TRIES):
        # Large nodes first, the order a little different each time.
        jitter = 0.0 if attempt == 0 else 1.0
        order = np.argsort(-size - jitter * rng.gumbel(size=len(nodes)) * 0.5)
        chosen = _grow(apart, order)
        if len(chosen) > len(best):
            best = chosen
        if len(best) == len(nodes):
            break
    return nodes[best]


def _grow(apart: NDArray[np.bool_], order: NDArray[np.int64]) -> list[int]:
    chosen: list[int] = []
    open_ = np.ones(len(apart), bool)
    for node in order:
        if open_[node]:
            chosen.append(int(node))
            open_ &= apart[node]
    return chosen


def _by_spectrum(pairs: Pairs, rng: np.random.Generator) -> tuple[int, Evidence]:
    wanted = min(MAX_CLASSES, pairs.n_items - 2)
    if wanted < 1:
        return 2, {"rule": "spectrum", "eigenvalues": [], "edge": 0.0}
    values = _eigenvalues(pairs, pairs.same, pairs.annotator, wanted)
    # The largest that the same pairs show when their answers mean nothing.
    shuffled = (pairs.same[rng.permutation(len(pairs))] for _ in range(SHUFFLES))
    edge = MARGIN * max(float(_eigenvalues(pairs, same, None, 1)[0]) for same in shuffled)
    count = 1 + int((values > edge).sum())
    shown = [round(float(value), 4) for value in values[: count + 2]]
    # Nothing above the edge: the judgements are too few or too noisy to say more than "two".
    return max(count, 2), {"rule": "spectrum", "eigenvalues": shown, "edge": round(edge, 4)}


def _eigenvalues(
    pairs: Pairs, same: NDArray[np.bool_], annotator: NDArray[np.int32] | None, count: int
) -> NDArray[np.float64]:
    values, _ = spectral_embedding(
        left=pairs.left,
        right=pairs.right,
        same=same,
        weight=pairs.weight,
        annotator=annotator,
        n_items=pairs.n_items,
        n_vectors=count,
    )
    return values
