"""Answers between micro-clusters, and what they say of the two rates and of the classes' sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import cluster_field

RATE_PRIOR = 2.0  # judgements of mean .9 / .1, as `RateChannel`'s
BALANCE = 3.0


@dataclass(frozen=True)
class Tallies:
    """Answers between micro-clusters, both ways round: ``same``, ``different`` (M, M) symmetric;
    ``share`` (M,) of the items that are in each; ``known`` (M, C) what items of known class in
    them speak for, in nats, None where there are none.

    The diagonal holds each answer inside a cluster once: there the classes are equal, whatever they
    are.
    """

    same: Tensor
    different: Tensor
    share: Tensor
    known: Tensor | None = None

    @classmethod
    def of(cls, graph: Graph, cluster: NDArray[np.int64]) -> Tallies:
        """The judgements of ``graph`` by the clusters (N,) of their two items."""
        size = int(cluster.max()) + 1
        left = cluster[graph.left.cpu().numpy()]
        right = cluster[graph.right.cpu().numpy()]
        weight = np.ones(len(graph)) if graph.weight is None else graph.weight.cpu().numpy()
        same = graph.same.cpu().numpy()

        def count(which: NDArray[np.bool_]) -> Tensor:
            code = left[which].astype(np.int64) * size + right[which]
            table = np.bincount(code, weight[which], size * size).reshape(size, size)
            both = table + table.T
            both = both - np.diag(np.diag(both) / 2)
            return torch.from_numpy(both).to(torch.float32)

        share = torch.from_numpy(np.bincount(cluster) / len(cluster)).to(torch.float32)
        told = graph.known
        known = None if told is None else cluster_field(told, torch.from_numpy(cluster))
        return cls(count(same), count(~same), share, known)


def without_diagonal(table: Tensor) -> Tensor:
    return table - torch.diag(table.diagonal())


def gains(rates: Tensor) -> tuple[Tensor, Tensor]:
    """(R,) log ratios of equal to different that "same", and that "different", speaks for."""
    a, b = rates[:, 0], rates[:, 1]
    return torch.log(a / b), torch.log((1 - a) / (1 - b))


def expected(tallies: Tallies, q: Tensor) -> tuple[Tensor, Tensor]:
    """Expected (R, 2) numbers of "same" and of "different" answers, (equal, different classes)."""
    found = []
    for table in (tallies.same, tallies.different):
        off = without_diagonal(table)
        inside, total = table.diagonal().sum(), off.sum() / 2
        met = (off @ q.transpose(0, 1).reshape(len(off), -1)).view(len(off), len(q), -1)
        equal = (met.transpose(0, 1) * q).sum((1, 2)) / 2
        found.append(torch.stack([equal + inside, total - equal], dim=1))
    return found[0], found[1]


def rates_of(tallies: Tallies, q: Tensor) -> Tensor:
    """(R, 2) rates a, b that fit the expected counts and the prior, a above b."""
    same, different = expected(tallies, q)
    mean = torch.tensor([0.9, 0.1])
    rates = (same + RATE_PRIOR * mean) / (same + different + RATE_PRIOR)
    b = rates[:, 1].clamp(1e-4, 0.97)
    a = torch.maximum(rates[:, 0], 1.1 * b + 1e-3).clamp(1e-3, 1 - 1e-4)
    return torch.stack([a, b], dim=1)


def balance(tallies: Tallies, q: Tensor) -> tuple[Tensor, Tensor]:
    """(R,) BALANCE · sum_c log(C π_c), a Dirichlet prior of the classes' shares π of the items, and
    its slope (R, M, C) in q. Without it, a class that nobody belongs to costs next to nothing.
    Items of known class add what they speak for.
    """
    slope = size_slope(tallies, q.permute(1, 2, 0)).T  # (R, C)
    value = BALANCE * torch.log(q.shape[2] * BALANCE / slope).sum(1)
    per_cluster = tallies.share[:, None] * slope[:, None]
    if tallies.known is None:
        return value, per_cluster
    return value + (q * tallies.known).sum((1, 2)), per_cluster + tallies.known


def size_slope(tallies: Tallies, q: Tensor) -> Tensor:
    """(C, R) BALANCE / π of beliefs (M, C, R): what an item more in a class brings."""
    size, n_classes, runs = q.shape
    pi = (tallies.share @ q.reshape(size, -1)).view(n_classes, runs)
    return BALANCE * 1.1 / (pi + 0.1 / n_classes)
