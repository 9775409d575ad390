"""Answers inside and across groups, counted, and the rates of "same" that they show."""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.arrays import FloatArray, IntArray


def cell_counts(one: IntArray, other: IntArray, weight: FloatArray, k: int) -> FloatArray:
    """(K, K) symmetric sums of weights (M,) inside and across the groups (M,) at both ends.

    Those inside stand on the diagonal, once.
    """
    cell = np.minimum(one, other) * k + np.maximum(one, other)
    upper = np.bincount(cell, weight, k * k).reshape(k, k)
    return np.asarray(upper + np.triu(upper, 1).T)


def shrunken_rates(said: FloatArray, asked: FloatArray, strength: float) -> FloatArray:
    """(K, K) rates of "same", ``said`` of ``asked``, drawn towards the rate of all answers inside
    groups, or across, as if ``strength`` more answers had it."""
    inside = np.eye(len(asked), dtype=bool)
    rate = np.empty(asked.shape)
    for part in (inside, ~inside):
        usual = (said[part].sum() + 1) / (asked[part].sum() + 2)
        rate[part] = (said[part] + strength * usual) / (asked[part] + strength)
    return rate
