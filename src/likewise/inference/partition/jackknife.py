"""Standard errors of what is measured on items several times, and on pairs that share them."""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.arrays import FloatArray, IndexArray


def jackknife_error(scores: FloatArray, *ends: IndexArray) -> float:
    """Standard error of the mean of scores (m,), items left out one at a time.

    ``ends``, each (m,): the item that a score is about, or the two of a pair.
    """
    items = np.concatenate(ends)
    own = np.bincount(items, np.tile(scores, len(ends)))
    count = np.bincount(items)
    judged = (count > 0) & (count < len(scores))
    if not judged.any():
        return float("inf")
    means = (scores.sum() - own[judged]) / (len(scores) - count[judged])  # without each item
    # Leaving out an item takes the other end of its pairs with it: each of these is left out twice.
    share = (len(means) - 1) / len(means) / len(ends)
    return float(np.sqrt(share * np.square(means - means.mean()).sum()))
