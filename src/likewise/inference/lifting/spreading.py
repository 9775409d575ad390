"""Label spreading: noisy classes of items, smoothed over the graph of their nearest neighbours.

Zhou et al., "Learning with local and global consistency" (NIPS 2003): F = (I - αS)⁻¹ Z, S the
symmetrically normalised affinity and Z the evidence. Then class mass normalisation (Zhu, Ghahramani
& Lafferty, ICML 2003): a class for which others are often taken would swallow them, so each class
counts by its share of all mass.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.lifting.neighbours import Neighbours
from likewise.inference.partition.arrays import Float

# How far classes spread; by simulated noise of five other kinds than any data set here
# (docs/measured.md), where .8 and .97 were worse.
ALPHA = 0.9
SWEEPS = 60  # ALPHA ** SWEEPS of what a class has to say is left out


def spread(near: Neighbours, evidence: Tensor) -> Tensor:
    """(N, C) beliefs by evidence (N, C) of the items around each, but not by its own: the two can
    then be compared."""
    found = spread_mass(near, evidence.cpu().numpy().astype(np.float32))
    found = found / np.maximum(found.sum(axis=0), 1e-12)
    total = np.maximum(found.sum(axis=1, keepdims=True), 1e-30)
    return torch.from_numpy(np.asarray(found / total, np.float32))


def spread_mass(near: Neighbours, told: NDArray[Float]) -> NDArray[Float]:
    """(N, C) how much of the evidence (N, C) reaches each item from the others, not normalised."""
    walk = near.walk[0].astype(told.dtype)
    found = told
    for _ in range(SWEEPS):
        found = ALPHA * (walk @ found) + told
    return np.asarray(found - told)
