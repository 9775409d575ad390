"""P(two items are of one group) from their vectors, learned from beliefs about judged pairs.

A logistic regression of the beliefs on a few similarities (`pair_similarities`): too few to learn
single answers by heart, so that the result can be added to what the answers say. In turns with the
beliefs it is EM (the M-step of a mixture whose base rate depends on features).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from likewise.inference.partition.arrays import FloatArray, IndexArray, IntArray, Vectors

RIDGE = 1.0  # in pairs: a coefficient of a standardised similarity is N(0, 1 / RIDGE)


def logistic_log_odds(design: FloatArray, target: FloatArray) -> FloatArray:
    """(M,) fitted log-odds of soft targets (M,) on columns (M, F), by Newton's method."""
    if not len(design):
        return np.zeros(0)
    spread = design.std(0)
    columns = (design - design.mean(0)) / np.where(spread > 0, spread, 1.0)
    columns = np.concatenate([np.ones((len(columns), 1)), columns], axis=1)
    penalty = np.full(columns.shape[1], RIDGE)
    penalty[0] = 1e-3
    coefficient = np.zeros(columns.shape[1])
    for _ in range(25):
        p = expit(columns @ coefficient)
        slope = columns.T @ (target - p) - penalty * coefficient
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        coefficient = coefficient + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(columns @ coefficient)


def pair_similarities(X: Vectors, left: IndexArray, right: IndexArray) -> FloatArray:
    """(M, 6) cosine and distance of each pair; how much closer it is than each end's closest other.

    The last ones matter where groups are small: the best match of both records is likelier the same
    than an equally close pair whose ends have better ones.
    """
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    code, inverse = np.unique(low * len(X) + high, return_inverse=True)
    a, b = code // len(X), code % len(X)
    norm = np.linalg.norm(X, axis=1)
    cosine = np.empty(len(code))
    for begin in range(0, len(code), 1 << 16):
        part = slice(begin, begin + (1 << 16))
        cosine[part] = np.einsum("md,md->m", X[a[part]], X[b[part]], dtype=np.float64)
    cosine /= np.maximum(norm[a] * norm[b], 1e-12)
    lead = np.stack([cosine - _best_other(a, b, cosine, len(X), end) for end in (0, 1)])
    columns = np.stack(
        [
            cosine,
            np.square(cosine),
            np.log(np.maximum(1 - cosine, 1e-3)),
            lead.min(0),
            lead.max(0),
            np.minimum(norm[a], norm[b]) / np.maximum(np.maximum(norm[a], norm[b]), 1e-12),
        ],
        axis=1,
    )
    return np.asarray(columns[inverse.reshape(-1)])


def _best_other(a: IntArray, b: IntArray, value: FloatArray, n: int, end: int) -> FloatArray:
    """(P,) the largest value among an end's other pairs; the median where it has none."""
    owner = np.concatenate([a, b])
    both = np.concatenate([value, value])
    order = np.lexsort((-both, owner))
    first = np.zeros(n, np.int64)
    count = np.bincount(owner, minlength=n)
    first[1:] = np.cumsum(count)[:-1]
    ranked = np.append(both[order], 0.0)
    item = (a, b)[end]
    top = ranked[first[item]]
    second = ranked[np.minimum(first[item] + 1, len(ranked) - 1)]
    other = np.where(value >= top, second, top)
    return np.where(count[item] > 1, other, np.median(value))
