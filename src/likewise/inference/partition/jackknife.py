"""Standard errors of what is measured on pairs that share items."""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.arrays import FloatArray, IndexArray


def jackknife_error(scores: FloatArray, left: IndexArray, right: IndexArray) -> float:
    """Standard error of the mean of scores (m,) of pairs, items left out one at a time."""
    ends = np.concatenate([left, right])
    own = np.bincount(ends, np.concatenate([scores, scores]))
    count = np.bincount(ends)
    judged = (count > 0) & (count < len(scores))
    if not judged.any():
        return float("inf")
    means = (scores.sum() - own[judged]) / (len(scores) - count[judged])  # without each item
    # Leaving out an item takes the other end of its judgements with it: each is left out twice.
    share = (len(means) - 1) / len(means) / 2
    return float(np.sqrt(share * np.square(means - means.mean()).sum()))
