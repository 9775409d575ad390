"""P(group) of items by the groups of those that look like them: label spreading, calibrated.

An item's own answers are left out of what its neighbours tell of it, so that the two can be
multiplied. How far neighbours are to be believed is learned from how well they foretell the answers
about each item (marginal likelihood over a grid): where features say nothing, the result is the
share of each group, and features change nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.inference.lifting.neighbours import nearest_neighbours, principal_components
from likewise.inference.lifting.spreading import spread_mass
from likewise.inference.partition.answers import softmax_rows

FloatArray = NDArray[np.float64]
POWERS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
# Pseudo-mass of the groups' shares, relative to what a usual item is told.
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 1e6)


class NeighbourPrior:
    """What the items around say of an item's group. ``items`` (N, D)."""

    def __init__(self, items: NDArray[np.floating]) -> None:
        points = principal_components(items.astype(np.float32))
        self._near = nearest_neighbours(points)

    def __call__(self, judged: FloatArray, share: FloatArray) -> FloatArray:
        """(N, K) P(group) from log-likelihoods (N, K) of answers about items and shares (N, K)."""
        base: FloatArray = share / share.sum(1, keepdims=True)
        told = softmax_rows(np.log(np.maximum(base, 1e-12)) + judged) - base
        told = np.maximum(told, 0.0)  # what the answers added, nothing where there were none
        if told.sum() < 1e-6:
            return base
        found = spread_mass(self._near, told)
        # Class mass normalisation (see `spreading`), or none: what foretells answers better.
        mass = np.maximum(found.sum(0), 1e-9)
        likelihood = np.exp(judged - judged.max(1, keepdims=True))
        candidates = [_calibrated(each, base, likelihood) for each in (found, found / mass)]
        return max(candidates, key=lambda candidate: candidate[0])[1]


def _calibrated(
    found: FloatArray, base: FloatArray, likelihood: FloatArray
) -> tuple[float, FloatArray]:
    """How well answers are foretold by the best mixture of ``found`` (N, K), to a power, and
    ``base``; and the mixture."""
    total = found.sum(1, keepdims=True)
    usual = float(np.median(total))
    best, best_value = base, -np.inf
    for power in POWERS:
        raised = (found / np.maximum(total, 1e-30)) ** power
        raised *= total / np.maximum(raised.sum(1, keepdims=True), 1e-30)
        for share in SHARES:
            mixed = (raised + usual * share * base) / (total + usual * share)
            value = float(np.log(np.maximum((mixed * likelihood).sum(1), 1e-30)).sum())
            if value > best_value:
                best, best_value = mixed, value
    return best_value, best
