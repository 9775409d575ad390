"""What was found about groups, by judgement and by person."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.inference.partition import Partition
from likewise.pairs import Pairs


def of_judgements(
    given: Pairs, pairs: NDArray[np.int64], proba: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(M,) the probability of each judgement's pair, whatever the judgement's own weight."""
    low = np.minimum(given.left, given.right).astype(np.int64)
    code = low * given.n_items + np.maximum(given.left, given.right)
    known = pairs[:, 0] * given.n_items + pairs[:, 1]  # sorted, as the pairs are
    place = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return np.where(known[place] == code, proba[place], np.nan)


def reliability_table(
    given: Pairs, counts: NDArray[np.bool_], found: Partition
) -> dict[str, list[str] | list[int] | list[float]]:
    """Who answered, how much, and how reliably, by columns; empty where nobody is named."""
    if given.annotator is None or given.annotator_names is None:
        return {}
    answers = np.bincount(given.annotator[counts], minlength=len(given.annotator_names))
    heard = np.flatnonzero(answers)
    reliability = found.p_same[heard, 0] - found.p_same[heard, 1]
    ranked = np.argsort(-reliability, kind="stable")
    people = heard[ranked]
    return {
        "annotator": given.annotator_names[people].astype(str).tolist(),
        "answers": answers[people].tolist(),
        "same_given_same": found.p_same[people, 0].tolist(),
        "same_given_different": found.p_same[people, 1].tolist(),
        "reliability": reliability[ranked].tolist(),
    }
