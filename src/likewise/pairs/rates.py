"""The two rates of a channel from the judgement graph alone, by moments.

With C balanced perceived classes, a = P(same | equal), b = P(same | different):
P(same) = [a + (C-1) b] / C, and on a triangle
P(three "same") = [a³ + 3(C-1) a b² + (C-1)(C-2) b³] / C².
The second tells slips of single judgements from class flips, which pairs alone cannot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.pairs.container import Pairs

# Beyond this many products the triangles are counted on a sample of the items.
MAX_WEDGES = 300_000_000


@dataclass(frozen=True)
class RateEstimate:
    """``a``, ``b``, and how many judged triangles they rest on (``same`` of them all "same")."""

    a: float
    b: float
    triangles: int
    triangles_same: int


def moment_rates(pairs: Pairs, n_classes: int, rng: np.random.Generator) -> RateEstimate:
    """(a, b) by pairs and triangles; with few triangles, a guess between the extremes.

    ``a`` then is where the all-"same" triangles are explained best, held below certainty: EM
    re-estimates both from there.
    """
    p_same = float(np.clip(pairs.n_same / max(len(pairs), 1), 1e-4, 1 - 1e-4))
    total, all_same = count_triangles(pairs, rng)
    a, b = _candidates(p_same, n_classes)
    triple = (
        a**3 + 3 * (n_classes - 1) * a * b**2 + (n_classes - 1) * (n_classes - 2) * b**3
    ) / n_classes**2
    likelihood = all_same * np.log(triple) + (total - all_same) * np.log1p(-triple)
    # A weak pull to a = .75: decides only where triangles are too few to.
    likelihood -= 0.5 * ((a - 0.75) / 0.25) ** 2
    best = int(np.argmax(likelihood))
    return RateEstimate(float(a[best]), float(b[best]), total, all_same)


def _candidates(p_same: float, n_classes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rates on the line that the share of "same" leaves, a above b."""
    b = np.linspace(1e-3, min(p_same, 0.999), 2000)
    a = n_classes * p_same - (n_classes - 1) * b
    possible = (a > b) & (a < 0.995)
    if not possible.any():  # classes far from balanced: stay near what was observed
        return np.array([min(p_same + 0.3, 0.9)]), np.array([max(p_same - 0.1, 0.02)])
    return a[possible], b[possible]


def count_triangles(pairs: Pairs, rng: np.random.Generator) -> tuple[int, int]:
    """Number of judged triangles, and of those judged "same" three times; sampled where huge."""
    degree = np.bincount(pairs.left, minlength=pairs.n_items)
    degree += np.bincount(pairs.right, minlength=pairs.n_items)
    wedges = float((degree.astype(np.float64) ** 2).sum())
    if wedges > MAX_WEDGES:
        size = max(int(pairs.n_items * (MAX_WEDGES / wedges) ** (1 / 3)), 50)
        pairs = pairs.subset(rng.choice(pairs.n_items, min(size, pairs.n_items), replace=False))
    judged = _adjacency(pairs, np.ones(len(pairs), bool))
    same = _adjacency(pairs, pairs.same)
    return _triangles(judged), _triangles(same)


def _adjacency(pairs: Pairs, keep: NDArray[np.bool_]) -> sparse.csr_array:
    left, right = pairs.left[keep], pairs.right[keep]
    ends = (np.concatenate([left, right]), np.concatenate([right, left]))
    shape = (pairs.n_items, pairs.n_items)
    matrix = sparse.coo_array((np.ones(2 * len(left), np.float32), ends), shape=shape).tocsr()
    matrix.data[:] = 1  # a repeated judgement is one edge
    return matrix


def _triangles(adjacency: sparse.csr_array) -> int:
    return round(float((adjacency @ adjacency).multiply(adjacency).sum()) / 6)
