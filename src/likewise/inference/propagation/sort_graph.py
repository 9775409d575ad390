"""Sorts in place of single judgements, for EM: piles are read as what they are.

All pairs of a sort come from one act of one person. As single judgements they would count as
hundreds of independent ones, and a coarse sort would say "same" of classes that its piles merge
(`likewise.inference.partition.piles`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.partition.piles import (
    fit_piles,
    place_items,
    pseudo_evidence,
    unseen_log_chances,
)
from likewise.inference.partition.sort_search import is_telling, place_sorted, settle
from likewise.inference.partition.sorts import Sorts, find_sorts
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.posterior import Posterior, guess
from likewise.noise.channels import ConfusionChannel
from likewise.pairs import Pairs
from likewise.pairs.closure import may_be_sorts
from likewise.pairs.shards import PairShard

FloatMatrix = NDArray[np.float64]


@dataclass(frozen=True)
class SortGraph(Graph):
    """Sorted items; a row is one item in one sort, ``left`` and ``right`` both that item."""

    sorts: Sorts = field(kw_only=True)
    """Which pile of which sort each row is in."""

    @classmethod
    def of(cls, sorts: Sorts, device: torch.device | str, known: Tensor | None = None) -> SortGraph:
        item = torch.from_numpy(sorts.item).to(device)
        same = torch.ones(len(item), dtype=torch.bool, device=device)
        return cls(item, item, same, sorts.n_items, known=known, sorts=sorts)

    def select(self, keep: Tensor) -> SortGraph:
        kept = torch.zeros(len(self), dtype=torch.bool, device=self.device)
        kept[keep] = True
        return SortGraph.of(self.sorts.select(kept.cpu().numpy()), self.device, self.known)

    def infer(self, log_prior: Tensor, iterations: int, start: Posterior | None) -> Posterior:
        """The posterior of z under ``log_prior`` (N, C) and the piles."""
        prior = log_prior.double().cpu().numpy()
        belief = _softmax(prior) if start is None else start.belief.double().cpu().numpy()
        model = fit_piles(self.sorts, belief)
        found = place_items(self.sorts, prior, model, belief, iterations)
        log_found = np.log(np.clip(found, 1e-12, None))
        evidence = pseudo_evidence(self.sorts, found, model)
        evidence += float((found * (prior - log_found)).sum())
        return Posterior(torch.from_numpy(log_found).to(log_prior), evidence, iterations, True)

    def unseen_scores(self, belief: Tensor, unseen: SortGraph) -> Tensor:
        """(e,) log P(pile) of rows that ``belief`` (N, C) has not seen."""
        known = belief.double().cpu().numpy()
        model = fit_piles(self.sorts, known)
        return torch.from_numpy(unseen_log_chances(self.sorts, unseen.sorts, known, model))


def sorts_of(pairs: Pairs, n_items: int | None = None) -> Sorts | None:
    """The sorts that judgements were made from; None where they are single judgements.

    None, too, of the judgements that one of several processes has: parts of sorts are no sorts.
    """
    if pairs.is_complete or isinstance(pairs, PairShard):
        return None
    if pairs.annotator is None or pairs.weight is not None:
        return None
    if not may_be_sorts(pairs):
        return None
    count = n_items or pairs.n_items
    return find_sorts(pairs.left, pairs.right, pairs.same, pairs.annotator, count)


def sorted_starts(
    graph: SortGraph, n_classes: int, clusters: NDArray[np.integer], rng: np.random.Generator
) -> list[Tensor] | None:
    """First beliefs (N, C) by the piles alone: from their eigenvectors, and from clusters (N,).

    None where the piles tell nothing: too few items of a class in a sort, all pairs are better.
    """
    by_piles, _ = place_sorted(graph.sorts, n_classes, rng)
    if not is_telling(graph.sorts, by_piles):
        return None
    by_items, _ = settle(graph.sorts, 0.9 * np.eye(n_classes)[clusters] + 0.1 / n_classes)
    return [torch.from_numpy(found).float().to(graph.device) for found in (by_piles, by_items)]


def pairwise_channel(belief: Tensor, graph: Graph) -> ConfusionChannel:
    """P(same | z, z') over all pairs of all sorts: what one more answer would be like."""
    channel = ConfusionChannel.from_rates(0.8, 0.2, belief.shape[1])
    return channel.update(edge_statistics(guess(belief), graph, channel))


def _softmax(values: FloatMatrix) -> FloatMatrix:
    shifted = np.exp(values - values.max(1, keepdims=True))
    chances: FloatMatrix = shifted / shifted.sum(1, keepdims=True)
    return chances
