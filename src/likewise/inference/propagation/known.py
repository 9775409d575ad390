"""Classes of some items that are certain beforehand: what inference is told of them.

``known`` is (N, C), 1 where an item is known to be of a class; a row of zeros is an item of which
nothing is known. It fixes which class has which number, which judgements never say.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from likewise.noise.estimation import one_hot_evidence

SURE = 0.999  # of an item whose class is known
OF_ITS_CLUSTER = 0.9  # chance that an item is of the class of its micro-cluster


def one_hot(classes: NDArray[np.int64] | None, n_classes: int) -> Tensor | None:
    """``known`` (N, C) from the numbers (N,) of classes, -1 for an item of which none is known."""
    if classes is None:
        return None
    return one_hot_evidence(torch.from_numpy(classes), n_classes, torch.float32)


def known_rows(known: Tensor) -> Tensor:
    """(N,) whether the class of an item is known."""
    return known.sum(dim=1) > 0


def clamped(log_belief: Tensor, known: Tensor | None) -> Tensor:
    """Log beliefs (N, C), those of known items replaced by what is known."""
    if known is None:
        return log_belief
    known = known.to(log_belief)
    certain = torch.log(SURE * known + (1 - SURE) / known.shape[1])
    return torch.where(known_rows(known)[:, None], certain, log_belief)


def certain(rows: Tensor, known: Tensor | None) -> Tensor:
    """Rows (N, C) of evidence or of a posterior, certain where a class is known."""
    return rows if known is None else torch.where(known_rows(known)[:, None], known.to(rows), rows)


def certain_posterior(
    posterior: NDArray[np.float32] | None, known: Tensor | None
) -> NDArray[np.float32] | None:
    """The same of a posterior as results keep it."""
    return None if posterior is None else certain(torch.from_numpy(posterior), known).numpy()


def in_known_order(belief: Tensor, known: Tensor | None) -> Tensor:
    """Beliefs (N, C) with their classes in the order that agrees best with what is known."""
    if known is None:
        return belief
    overlap = known.double().cpu().T @ belief.double().cpu()
    order = linear_sum_assignment(-overlap.numpy())[1]
    return belief[:, torch.from_numpy(order).to(belief.device)]


def cluster_field(known: Tensor, cluster: Tensor) -> Tensor:
    """(M, C) what the known items among them say for each class of micro-clusters (N,), in nats."""
    n_classes = known.shape[1]
    gain = math.log(OF_ITS_CLUSTER) - math.log((1 - OF_ITS_CLUSTER) / (n_classes - 1))
    counts = torch.zeros(int(cluster.max()) + 1, n_classes, dtype=torch.float32)
    return gain * counts.index_add_(0, cluster, known.to(torch.float32).cpu())
