"""The two rates of a channel from the judgement graph alone, by the method of moments.

With C balanced perceived classes, a = P(same | equal) and b = P(same | different):
P(same) = p = [a + (C-1) b] / C and, with d = (a - b) / C, P(three "same" in a triangle) =
p³ + (C-1) d³: the third moment of the eigenvalues of the C x C matrix of rates. The second tells
slips of single judgements from class flips, which pairs alone cannot: flips of the perceived class
change neither moment, as long as the perceived classes are balanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.container import Pairs
from likewise.pairs.triangles import Triangles, count_triangles

# A fit takes longer than counting this many paths of two judgements does (some seconds).
MAX_PATHS = 300_000_000

FloatVector = NDArray[np.float64]


@dataclass(frozen=True)
class RateEstimate:
    """The two rates, and the triangles that they rest on."""

    a: float
    """P(same | equal perceived classes)."""
    b: float
    """P(same | different perceived classes)."""
    triangles: Triangles
    """What was counted."""


def moment_rates(pairs: Pairs, n_classes: int, rng: np.random.Generator) -> RateEstimate:
    """(a, b) of judgements, by their pairs and triangles; see `rates_from_triangles`."""
    graph = pairs.graph
    triangles = count_triangles(graph, rng, max_paths=MAX_PATHS, thorough=True)
    return rates_from_triangles(graph.n_same / max(len(graph), 1), triangles, n_classes)


def rates_from_triangles(p_same: float, triangles: Triangles, n_classes: int) -> RateEstimate:
    """(a, b) under which the share ``p_same`` of "same" holds and the triangles are most likely.

    With few triangles, a guess between the extremes: EM re-estimates both from there.
    """
    a, b = _candidates(float(np.clip(p_same, 1e-4, 1 - 1e-4)), n_classes)
    triple = three_same_probability(a, b, n_classes)
    others = triangles.closed - triangles.three_same
    likelihood = triangles.three_same * np.log(triple) + others * np.log1p(-triple)
    # A weak pull to a = .75: decides only where triangles are too few to.
    likelihood -= 0.5 * ((a - 0.75) / 0.25) ** 2
    best = int(np.argmax(likelihood))
    return RateEstimate(float(a[best]), float(b[best]), triangles)


def three_same_probability(a: FloatVector, b: FloatVector, n_classes: int) -> FloatVector:
    """P(three "same" in a triangle) at rates ``a``, ``b`` (n,) and balanced classes."""
    p, d = (a + (n_classes - 1) * b) / n_classes, (a - b) / n_classes
    return np.asarray(p**3 + (n_classes - 1) * d**3)


def _candidates(p_same: float, n_classes: int) -> tuple[FloatVector, FloatVector]:
    """Rates on the line that the share of "same" leaves, a above b."""
    b = np.linspace(1e-3, min(p_same, 0.999), 2000)
    a = n_classes * p_same - (n_classes - 1) * b
    possible = (a > b) & (a < 0.995)
    if not possible.any():  # classes far from balanced: stay near what was observed
        return np.array([min(p_same + 0.3, 0.9)]), np.array([max(p_same - 0.1, 0.02)])
    return a[possible], b[possible]
