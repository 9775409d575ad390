"""Lifting: micro-clusters of the items carry the judgements of their members.

Few judgements an item are many judgements a cluster. Under (a, b) = P("same" | classes of the two
clusters equal, different), which the purity of the clusters is a part of, the classes of M clusters
are inferred by mean field from many beginnings at once, with deterministic annealing (Rose 1998);
then two classes are joined and a third is split as in split-and-merge EM (Ueda et al. 2000). The
bound on the evidence log P(judgements | clusters) compares beginnings, numbers of clusters and
embeddings alike: clusters that are too coarse foretell answers badly, those that are too fine have
to be told apart one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from likewise.inference.lifting.tallies import (
    Tallies,
    balance,
    expected,
    gains,
    rates_of,
    size_slope,
    without_diagonal,
)
from likewise.inference.propagation.graph import Graph

RESTARTS = 24
TEMPERATURES = (4.0, 2.5, 1.6, 1.0)
SWEEPS = 10  # at each temperature but the last
SETTLE = 40  # sweeps at temperature 1, at most
STILL = 1e-3  # change of a belief over three sweeps below which they have settled
IMPROVEMENTS = 6
JOINED = 4  # pairs of classes that are tried
TINY = 1e-30


@dataclass(frozen=True)
class Lifted:
    """What the judgements say of micro-clusters.

    ``cluster`` (N,) of each item; ``belief`` (M, C) classes of the clusters; ``a``, ``b`` the rates
    at which answers between clusters say "same"; ``evidence`` a lower bound of
    log P(judgements | clusters).
    """

    cluster: NDArray[np.int64]
    belief: Tensor
    a: float
    b: float
    evidence: float
    kappa: float = 0.0

    def items(self) -> Tensor:
        """(N, C) classes of the items: those of their clusters."""
        return self.belief[torch.from_numpy(self.cluster)]


def micro_clusters(points: NDArray[np.float32], number: int, seed: int) -> NDArray[np.int64]:
    """(N,) k-means cells of points (N, d), numbered without gaps."""
    number = min(number, len(points))
    found = KMeans(number, n_init=1, max_iter=50, random_state=seed).fit(points).labels_
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def lift(graph: Graph, cluster: NDArray[np.int64], n_classes: int, seed: int) -> Lifted:
    """Classes of the clusters (N,), from random beginnings.

    The best of them is then improved by joining two classes and splitting a third: what mean field
    cannot do one cluster at a time.
    """
    tallies = Tallies.of(graph, cluster)
    generator = torch.Generator().manual_seed(seed)
    random = torch.rand((RESTARTS, len(tallies.same), n_classes), generator=generator)
    found = _best(tallies, torch.softmax(2 * random, dim=2), TEMPERATURES)
    for _ in range(IMPROVEMENTS if n_classes > 2 else 0):
        proposals = joined_and_split(tallies, found[0], found[1])
        better = _best(tallies, proposals, (1.0,), settle=20)
        if better[2] <= found[2] + 0.1:
            break
        found = better
    q, rates, evidence = found
    return Lifted(cluster, q, float(rates[0]), float(rates[1]), evidence)


def _best(
    tallies: Tallies, begun: Tensor, temperatures: tuple[float, ...], settle: int = SETTLE
) -> tuple[Tensor, Tensor, float]:
    """Beliefs (M, C), rates (2,) and evidence of the best of the beginnings (R, M, C)."""
    q, rates = _mean_field(tallies, begun, temperatures, settle)
    evidence = _evidence(tallies, q, rates)
    best = int(evidence.argmax())
    return q[best], rates[best], float(evidence[best])


def _mean_field(
    tallies: Tallies, begun: Tensor, temperatures: tuple[float, ...], settle: int
) -> tuple[Tensor, Tensor]:
    """Beliefs (R, M, C) and rates (R, 2) from beginnings (R, M, C), side by side.

    While it is hot, rates are those of clear answers: beliefs that are still vague would make every
    answer look like noise. Clusters are renewed half at a time, so that two that are told apart do
    not swap for ever.
    """
    runs, size, n_classes = begun.shape
    rates = (
        rates_of(tallies, begun)
        if len(temperatures) == 1
        else _clear_rates(tallies, runs, n_classes)
    )
    halves = slice(0, None, 2), slice(1, None, 2)
    off = [without_diagonal(table) for table in (tallies.same, tallies.different)]
    parts = [torch.cat([table[half] for table in off]) for half in halves]
    # Runs last: they are many and short rows are slow.
    q = begun.permute(1, 2, 0).contiguous()  # (M, C, R)
    for temperature in temperatures:
        before = q.clone()
        for sweep in range(settle if temperature == 1 else SWEEPS):
            log_same, log_different = gains(rates)
            for half, part in zip(halves, parts):
                met, parted = (part @ q.view(size, -1)).view(2, -1, n_classes, runs)
                field = met.mul_(log_same).addcmul_(parted, log_different)
                field += tallies.share[half, None, None] * size_slope(tallies, q)
                if tallies.known is not None:
                    field += tallies.known[half, :, None]
                q[half] = torch.softmax(field.div_(temperature), dim=1)
            if temperature == 1 and sweep % 3 == 2:
                if float((q - before).abs().max()) < STILL:
                    break
                before, rates = q.clone(), rates_of(tallies, q.permute(2, 0, 1))
    q = q.permute(2, 0, 1).contiguous()
    return q, rates_of(tallies, q)


def _clear_rates(tallies: Tallies, runs: int, n_classes: int) -> Tensor:
    """(R, 2) rates to begin with, from sure answers to unsure ones, that fit the share of "same"
    were the classes of one size."""
    same, different = float(tallies.same.sum()), float(tallies.different.sum())
    share = min(max(same / max(same + different, 1.0), 1e-3), 1 - 1e-3)
    a = torch.linspace(0.5, 0.95, runs)
    b = ((share - a / n_classes) * n_classes / (n_classes - 1)).clamp(5e-3, 0.9)
    return torch.stack([torch.maximum(a, b + 0.05), b], dim=1)


def joined_and_split(tallies: Tallies, q: Tensor, rates: Tensor) -> Tensor:
    """(R, M, C) beginnings near q (M, C): two classes joined, and another split in the freed place.

    The classes to join are those whose answers speak least against it; a class is split where its
    own answers speak most for it.
    """
    log_same, log_different = gains(rates[None])
    weight = log_same * without_diagonal(tallies.same)
    weight = weight + log_different * without_diagonal(tallies.different)
    between = q.T @ weight @ q  # (C, C) what joining two classes brings
    n_classes = len(between)
    first, second = torch.triu_indices(n_classes, n_classes, 1)
    order = torch.argsort(between[first, second], descending=True)[:JOINED]
    label = q.argmax(1)
    halves = [_half(weight, torch.where(label == c)[0]) for c in range(n_classes)]
    found = [q]
    for i, j in zip(first[order].tolist(), second[order].tolist()):
        joined = q.clone()
        joined[:, i] += joined[:, j]
        joined[:, j] = 0
        for split in range(n_classes):
            if split != j and len(halves[split]):
                moved = joined.clone()
                moved[halves[split]] = 0
                moved[halves[split], j] = 1
                found.append(moved)
    return torch.stack(found)


def _half(weight: Tensor, members: Tensor) -> Tensor:
    """Those of the clusters ``members`` on one side of the leading split of their answers."""
    if len(members) < 2:
        return members[:0]
    own = weight[members][:, members]
    _, vectors = torch.linalg.eigh(own - own.mean())
    return members[vectors[:, -1] > 0]


def _evidence(tallies: Tallies, q: Tensor, rates: Tensor) -> Tensor:
    """(R,) E_q log P(judgements | classes) + entropy of q - log of C^M: a lower bound."""
    same, different = expected(tallies, q)
    told = same * torch.log(rates) + different * torch.log1p(-rates)
    entropy = -(q * torch.log(q.clamp_min(TINY))).sum((1, 2))
    _, size, n_classes = q.shape
    prior = balance(tallies, q)[0] - size * float(np.log(n_classes))
    return told.sum(1) + entropy + prior
