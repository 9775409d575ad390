"""Lifting under the prior of a tree of the micro-clusters (`hierarchy`).

Structured mean field (Saul & Jordan 1996): a cluster's judgements by the mean belief of those it
was compared to, the tree exactly.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.lifting.hierarchy import Tree
from likewise.inference.lifting.lifting import SWEEPS, Lifted, joined_and_split
from likewise.inference.lifting.tallies import (
    Tallies,
    balance,
    expected,
    gains,
    rates_of,
    without_diagonal,
)
from likewise.inference.propagation.graph import Graph

KAPPAS = (0.5, 1.0, 2.0, 4.0)  # times C: see `hierarchy`


def lift_tree(
    graph: Graph,
    cluster: NDArray[np.int64],
    tree: Tree,
    n_classes: int,
    hints: list[Tensor],
    kappa: float | None = None,
    improvements: int = 0,
) -> Lifted:
    """Classes of the clusters (N,) under the prior of their `Tree`, from ``hints`` (M, C).

    As in `lift`, ``improvements`` join and split classes. Each hint is tried with κ, or
    with every one of `KAPPAS`. The evidence is of the same judgements as `lift`'s.
    """
    tallies = Tallies.of(graph, cluster)
    kappas = torch.tensor([k * n_classes for k in KAPPAS] if kappa is None else [kappa])
    begun = torch.stack(hints).repeat_interleave(len(kappas), 0)
    q, rates, evidence, kept = _settled(tallies, tree, begun, kappas.repeat(len(hints)), SWEEPS)
    for _ in range(improvements if n_classes > 2 else 0):
        proposals = joined_and_split(tallies, q, rates)
        better = _settled(tallies, tree, proposals, kept.expand(len(proposals)), SWEEPS)
        if better[2] <= evidence + 0.1:
            break
        q, rates, evidence, kept = better
    if improvements:
        q, rates, evidence, kept = _settled(tallies, tree, q[None], kept[None], SWEEPS)
    return Lifted(cluster, q, float(rates[0]), float(rates[1]), evidence, float(kept))


def _settled(
    tallies: Tallies, tree: Tree, begun: Tensor, kappa: Tensor, sweeps: int
) -> tuple[Tensor, Tensor, float, Tensor]:
    """The best of beginnings (R, M, C), with κ (R,): beliefs (M, C), rates (2,), evidence, κ."""
    runs, size, n_classes = begun.shape
    keep = tree.keep(kappa)
    q, rates = begun.clone(), rates_of(tallies, begun)
    off_same, off_different = (without_diagonal(t) for t in (tallies.same, tallies.different))

    def fields() -> Tensor:
        log_same, log_different = gains(rates)
        flat = q.permute(1, 0, 2).reshape(size, runs * n_classes)
        met = (off_same @ flat).view(size, runs, n_classes)
        parted = (off_different @ flat).view(size, runs, n_classes)
        field = log_same[:, None] * met + log_different[:, None] * parted
        return field.permute(1, 0, 2) + balance(tallies, q)[1]

    for sweep in range(sweeps):
        updated, _ = tree.marginals(fields(), keep)
        change = float((updated - q).abs().mean()) * n_classes
        q = 0.3 * q + 0.7 * updated
        if change < 1e-3:
            break
        if sweep % 3 == 2:
            rates = rates_of(tallies, q)
    field = fields()
    q, log_z = tree.marginals(field, keep)  # so that KL(q | tree) = E_q field - log Z, exactly
    same, different = expected(tallies, q)
    told = (same * torch.log(rates) + different * torch.log1p(-rates)).sum(1)
    evidence = told - (q * field).sum((1, 2)) + log_z + balance(tallies, q)[0]
    best = int(evidence.argmax())
    return q[best], rates[best], float(evidence[best]), kappa[best]


def carried(belief: Tensor, cluster: NDArray[np.int64]) -> Tensor:
    """(M, C) mean belief (N, C) of each cluster's items (N,), blurred a little."""
    index = torch.from_numpy(cluster)
    total = torch.zeros(int(index.max()) + 1, belief.shape[1]).index_add_(0, index, belief)
    mean = total / torch.bincount(index)[:, None]
    return 0.95 * mean + 0.05 / belief.shape[1]
