"""Drawing distinct pairs of items at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.pairs.columns import IndexArray


def random_pairs(
    n_items: int, count: int, rng: np.random.Generator
) -> tuple[IndexArray, IndexArray]:
    """``count`` distinct unordered pairs of items, uniformly, as sorted ``(left, right)``."""
    total = n_items * (n_items - 1) // 2
    if count > total:
        raise InputError(f"{n_items} items have only {total} pairs, but {count} were asked for.")
    if count > total // 3:  # rejection would repeat itself: choose among all of them
        codes = rng.choice(total, size=count, replace=False)
    else:
        codes = np.unique(rng.integers(total, size=count))
        while len(codes) < count:
            codes = np.unique(np.append(codes, rng.integers(total, size=count - len(codes))))
    return unordered_pair(codes)


def unordered_pair(codes: NDArray[np.int64]) -> tuple[IndexArray, IndexArray]:
    """The pair ``left < right`` with number ``right * (right - 1) / 2 + left``."""
    right = ((1 + np.sqrt(1 + 8 * codes.astype(np.float64))) / 2).astype(np.int64)
    right -= right * (right - 1) // 2 > codes  # at large codes the root is rounded up
    return codes - right * (right - 1) // 2, right
