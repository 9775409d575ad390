"""Which beliefs to go on from: by judgements that they have not seen.

Evidence of the judgements that a start was made of compares starts of one kind. Starts of different
kinds (a tree, a network, the graph) fit what they have seen more or less closely, so they are made
of most judgements and compared by the rest. Standard errors are a jackknife over items: judgements
that share an item are not independent.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.inference.partition import jackknife
from likewise.inference.propagation.graph import Graph, edge_width
from likewise.noise.channels import Channel

HELD_OUT = 0.15
TINY = 1e-30


def held_out(graph: Graph, generator: torch.Generator) -> Tensor:
    """(M,) bool: the judgements to compare by, all answers about a pair together.

    Of a pair that was judged several times, one answer foretells the others whatever the classes.
    """
    pair = _pair_of(graph)
    drawn = torch.rand(int(pair.max()) + 1 if len(pair) else 0, generator=generator) < HELD_OUT
    return drawn[pair].to(graph.device)


def by_pair(scores: Tensor, graph: Graph) -> Tensor:
    """Scores (m,) of judgements so weighted that every judged pair counts alike; the same mean
    where all were judged equally often.

    Answers about one pair err together. Where few pairs have most answers, as in adaptive asking,
    these would decide alone.
    """
    pair = _pair_of(graph)
    count = torch.bincount(pair)
    weight = len(pair) / (len(count) * count[pair].double())
    return scores * weight.to(scores.device)


def share_of_pairs(graph: Graph) -> float:
    """Judged pairs for each judgement: 1 where none was judged twice."""
    return (int(_pair_of(graph).max()) + 1) / len(graph) if len(graph) else 1.0


def _pair_of(graph: Graph) -> Tensor:
    """(m,) number of each judgement's pair, whichever item is named first."""
    lower, upper = torch.minimum(graph.left, graph.right), torch.maximum(graph.left, graph.right)
    pair: Tensor = torch.unique(lower.long() * graph.n_items + upper.long(), return_inverse=True)[1]
    return pair.cpu()


def answer_log_likelihood(belief: Tensor, graph: Graph, channel: Channel) -> Tensor:
    """(M,) log P(answer) of judgements *not* used to form ``belief`` (N, C): held-out scoring.

    A channel that is unsure of a person's type tells less than a probability of either answer, so
    that the two are normalised: else whoever is known worse would seem to foretell worse.
    """
    table = channel.log_table().to(belief).exp()
    parts = []
    for part in graph.chunks(edge_width(channel, belief)):
        annotator = None if graph.annotator is None else graph.annotator[part]
        left, right = belief[graph.left[part]], belief[graph.right[part]]
        said, other = (
            _expected(table.index_select(0, channel.groups(same, annotator)), left, right)
            for same in (graph.same[part], ~graph.same[part])
        )
        told = torch.log((said / (said + other).clamp_min(TINY)).clamp_min(TINY))
        parts.append(told if graph.weight is None else told * graph.weight[part])
    return torch.cat(parts) if parts else torch.zeros(0)


def weights_of(graph: Graph) -> Tensor:
    """(M,) how often each judgement counts: one of weight 2 is the judgement twice."""
    if graph.weight is None:
        return torch.ones(len(graph), dtype=torch.float64, device=graph.device)
    return graph.weight.double()


def _expected(rows: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """(m,) what rows, (m, 2) or (m, C, C), come to under beliefs (m, C) about both ends."""
    if rows.ndim == 2:
        return rows[:, 1] + (rows[:, 0] - rows[:, 1]) * (left * right).sum(1)
    return torch.einsum("ma,mab,mb->m", left, rows, right)


def answer_scores(belief: Tensor, seen: Graph, unseen: Graph, iterations: int = 30) -> Tensor:
    """(m,) log P(answer) of unseen judgements by beliefs (N, C), through the two rates of "same"
    that suit the seen ones best; each as often as its weight says, as the fits count it."""
    rates = torch.tensor([0.9, 0.1], dtype=torch.float64)
    equal, same = _equal(belief, seen), seen.same
    prior = torch.stack([equal, 1 - equal], dim=1)
    weight = weights_of(seen)[:, None]
    for _ in range(iterations):
        share = prior * torch.where(same[:, None], rates, 1 - rates)
        share = weight * share / share.sum(1, keepdim=True)
        rates = (share[same].sum(0) + rates.new_tensor([0.9, 0.1])) / (share.sum(0) + 1)
    equal = _equal(belief, unseen)
    likely = rates[0] * equal + rates[1] * (1 - equal)
    told = torch.log(torch.where(unseen.same, likely, 1 - likely).clamp_min(1e-12))
    return told * weights_of(unseen)


def _equal(belief: Tensor, graph: Graph) -> Tensor:
    both = belief[graph.left.long()].double() * belief[graph.right.long()].double()
    return both.sum(1).clamp(1e-6, 1 - 1e-6)


def jackknife_error(scores: Tensor, graph: Graph) -> float:
    """Standard error of the mean of scores (m,), items left out one at a time."""
    values = scores.double().cpu().numpy()
    return jackknife.jackknife_error(values, graph.left.cpu().numpy(), graph.right.cpu().numpy())
