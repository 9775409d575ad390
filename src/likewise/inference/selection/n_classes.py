"""How many classes there are, from the judgements and, where these do not tell, the items too.

Judgements alone are counted by `likewise.pairs.counting`. Contradictory ones show no class before
it is judged often; with features at hand, short fits with different numbers are compared instead,
by the judgements that they did not see. Consistent ones that are few tell but a lower bound; from
there on, clusters of the items carry them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.inference.propagation.sort_graph import sorts_of
from likewise.inference.selection.count_by_evidence import can_count, count_by_evidence
from likewise.inference.selection.count_by_lifting import can_lift, count_by_lifting
from likewise.inference.selection.count_sorted import count_sorted
from likewise.pairs import Pairs
from likewise.pairs.counting import Evidence, count_from_judgements


def count_classes(
    pairs: Pairs, seed: int = 0, *, items: NDArray[Any] | None = None
) -> tuple[int, Evidence]:
    """``(number of classes, evidence)``; the evidence says by which rule, and shows its figures.

    ``items`` (N, ...), where they are given, are looked at too if judgements contradict each other
    or are too few.
    """
    rng = np.random.default_rng(seed)
    if (sorts := sorts_of(pairs)) is not None:
        return count_sorted(pairs, sorts, items, rng)
    count, evidence = count_from_judgements(pairs, rng)
    found: tuple[int, Evidence] | None = None
    if items is not None and evidence["rule"] == "spectrum" and can_count(items, pairs):
        found = count_by_evidence(items, pairs, count, rng)
    few = evidence["rule"] == "groups judged different"
    if items is not None and few and can_lift(items, pairs):
        found = count_by_lifting(items, pairs, count, seed)
    return found or (count, evidence)
