"""Which start to go on from: by judgements that it has not seen.

Evidence of the judgements that a start was made of compares starts of one kind. Starts of different
kinds (a tree, a network, the graph) fit what they have seen more or less closely, so they are made
of most judgements and compared by the rest. Standard errors are a jackknife over items: judgements
that share an item are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.inference.graph import Graph

HELD_OUT = 0.15
GROUPS = 20

Maker = Callable[[Graph], Tensor]


@dataclass(frozen=True)
class Ranking:
    """``best``: the name of the start taken; ``score``: mean log-likelihood of an unseen judgement
    of each; ``behind``: by how many standard errors each is behind the best."""

    best: str
    score: dict[str, float]
    behind: dict[str, float]


def answer_scores(belief: Tensor, seen: Graph, unseen: Graph, iterations: int = 30) -> Tensor:
    """(m,) log P(answer) of unseen judgements by beliefs (N, C), through the two rates of "same"
    that suit the seen ones best."""
    rates = torch.tensor([0.9, 0.1], dtype=torch.float64)
    equal, same = _equal(belief, seen), seen.same
    prior = torch.stack([equal, 1 - equal], dim=1)
    for _ in range(iterations):
        share = prior * torch.where(same[:, None], rates, 1 - rates)
        share = share / share.sum(1, keepdim=True)
        rates = (share[same].sum(0) + rates.new_tensor([0.9, 0.1])) / (share.sum(0) + 1)
    equal = _equal(belief, unseen)
    likely = rates[0] * equal + rates[1] * (1 - equal)
    return torch.log(torch.where(unseen.same, likely, 1 - likely).clamp_min(1e-12))


def _equal(belief: Tensor, graph: Graph) -> Tensor:
    both = belief[graph.left.long()].double() * belief[graph.right.long()].double()
    return both.sum(1).clamp(1e-6, 1 - 1e-6)


def jackknife_error(scores: Tensor, graph: Graph, generator: torch.Generator) -> float:
    """Standard error of the mean of scores (m,), items left out a group at a time."""
    group = torch.randint(GROUPS, (graph.n_items,), generator=generator)
    left, right = group[graph.left.long()], group[graph.right.long()]
    means = []
    for k in range(GROUPS):
        rest = (left != k) & (right != k)
        if bool(rest.any()):
            means.append(scores[rest].mean())
    spread = torch.stack(means)
    count = len(spread)
    # Leaving out a group of items takes both ends with it: twice a group's share of judgements.
    return float(((count - 1) / count * ((spread - spread.mean()) ** 2).sum() / 2).sqrt())


def rank(makers: Mapping[str, Maker], graph: Graph, generator: torch.Generator) -> Ranking:
    """Make every start of most judgements, and compare them by the rest.

    On a tie, within one standard error of the best, the one named first is taken.
    """
    held = torch.rand(len(graph), generator=generator) < HELD_OUT
    seen, unseen = graph.select(~held), graph.select(held)
    scores = {name: answer_scores(make(seen), seen, unseen) for name, make in makers.items()}
    mean = {name: float(score.mean()) for name, score in scores.items()}
    top = max(mean, key=lambda name: mean[name])
    behind = {}
    for name, score in scores.items():
        error = jackknife_error(scores[top] - score, unseen, generator)
        behind[name] = 0.0 if name == top else (mean[top] - mean[name]) / max(error, 1e-12)
    best = next(name for name in makers if behind[name] <= 1)
    return Ranking(best, mean, behind)
