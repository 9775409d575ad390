"""How many classes there are, from the judgements and, where these contradict, from the items too.

Judgements alone are counted by `likewise.pairs.counting`. Contradictory ones show no class before
it is judged often; with features at hand, short fits with different numbers are compared instead,
by the judgements that they did not see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.inference.count_by_prediction import can_count, count_by_prediction
from likewise.pairs import Pairs
from likewise.pairs.counting import Evidence, count_from_judgements


def count_classes(
    pairs: Pairs, seed: int = 0, *, items: NDArray[Any] | None = None
) -> tuple[int, Evidence]:
    """``(number of classes, evidence)``; the evidence says by which rule, and shows its figures.

    ``items`` (N, d), where they are given, are looked at too if judgements contradict each other.
    """
    rng = np.random.default_rng(seed)
    count, evidence = count_from_judgements(pairs, rng)
    if evidence["rule"] != "spectrum" or items is None or not can_count(items, pairs):
        return count, evidence
    return count_by_prediction(items, pairs, count, rng) or (count, evidence)
