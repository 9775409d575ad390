"""How many classes: as many as make consistent judgements likeliest, carried by the items.

Before groups of items judged the same have grown together, at fewer than some C judgements an item,
a set of groups that all differ is only a lower bound. Clusters of the items that carry the
judgements of their members (`inference.lifting.lifted_start`) are compared with that many classes
and more: the evidence pays for every class that is not needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.inference.lifting.lifted_start import Forest, embeddings, lifted_start, plant
from likewise.inference.lifting.neighbours import NEIGHBOURS
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.ranking import weights_of
from likewise.pairs import Pairs
from likewise.pairs.counting import Evidence

FEWEST_ITEMS, MOST_ITEMS = 8 * NEIGHBOURS, 100_000
MOST_FEATURES = 5_000
FEWEST_JUDGEMENTS = 100
WITHOUT_GAIN = 2  # more classes in a row, beyond which no more are tried
CLEARLY = 10.0  # nats by which classes must be likelier than a mere share of "same"


def can_lift(items: NDArray[np.generic], pairs: Pairs) -> bool:
    """Whether the items may show clusters, and there is something to carry."""
    n_features = int(np.prod(items.shape[1:]))
    sizes = FEWEST_ITEMS <= len(items) <= MOST_ITEMS and n_features <= MOST_FEATURES
    return sizes and not pairs.is_complete and len(pairs.that_count()) >= FEWEST_JUDGEMENTS


def count_by_lifting(
    items: NDArray[np.generic], pairs: Pairs, at_least: int, seed: int
) -> tuple[int, Evidence] | None:
    """``(number of classes, evidence)``: log evidence of each number that was tried.

    None where the items have no clusters that explain the judgements.
    """
    forest = plant(embeddings(items, at_least, seed), seed)
    graph = Graph.from_pairs(pairs.that_count())
    tried = _climb(graph, forest, max(at_least, 2), len(items) // 5, seed)
    count = max(tried, key=lambda number: tried[number])
    if tried[count] < _of_share(graph) + CLEARLY:
        return None
    shown = {str(number): round(value, 1) for number, value in tried.items()}
    return count, {"rule": "lifted judgements", "log_evidence": shown}


def _climb(
    graph: Graph, forest: Forest, at_least: int, at_most: int, seed: int
) -> dict[int, float]:
    """Evidence of ``at_least`` classes and more, as long as more make a difference."""
    tried: dict[int, float] = {}
    for number in range(at_least, max(at_most, at_least) + 1):
        tried[number] = lifted_start(graph, forest, number, seed).evidence
        if number - max(tried, key=lambda n: tried[n]) >= WITHOUT_GAIN:
            break
    return tried


def _of_share(graph: Graph) -> float:
    """Log-likelihood of the answers by their share of "same" alone, weighted as lifting does it."""
    weight = weights_of(graph)
    same, total = float(weight[graph.same].sum()), float(weight.sum())
    parts = np.array([same, total - same]) / total
    return float(total * (parts * np.log(np.maximum(parts, 1e-12))).sum())
