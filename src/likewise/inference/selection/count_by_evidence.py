"""How many classes: as many as answers tell apart in the fit that makes them likeliest.

Too few classes call alike what people tell apart. Too many hurt little: spare ones empty
themselves, or cut a class in two and set a few odd items aside, which no answer tells apart
(`inference.partition.told_apart`), or divide it into looks that people call the same
(`inference.partition.looks`). So fits to several numbers are compared, and of the one that is
taken the classes are counted that answers tell apart. Of the fits that do not foretell unseen
judgements clearly worse than another, that is the one under which all judgements are likeliest,
less what its rates of "same" could explain by chance (BIC, Schwarz 1978). Features help to see
classes long before the judgements alone do; where they show nothing, the groups of a search over
partitions may foretell more, and are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.heads.gaussian import GaussianHead
from likewise.inference.partition import draw_partitions, infer_partition
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.looks import merge_alike
from likewise.inference.partition.refine import MAX_ITEMS
from likewise.inference.partition.told_apart import merge_untold
from likewise.inference.problem import MAX_GAUSSIAN_ITEMS, JointProblem, make_brief_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.channel_selection import confusable
from likewise.inference.selection.final_fit import cost_of_rates, criterion
from likewise.inference.selection.ranking import (
    answer_log_likelihood,
    by_pair,
    held_out,
    jackknife_error,
    weights_of,
)
from likewise.inference.selection.start_selection import (
    Start,
    as_start,
    asked,
    distinct,
    em_from,
    from_mixture,
    from_partition,
    from_supervised,
)
from likewise.inference.selection.starts import spectral_start
from likewise.io.progress import stage
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, RateChannel
from likewise.pairs import Pairs
from likewise.pairs.rates import moment_rates

FEWEST, MOST = 1_000, 200_000  # judgements that can tell, and that take seconds a number
LADDER = (2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 60)
WITHOUT_GAIN = 2  # steps of the ladder, beyond which no more are tried
STIFFNESS = 0.5
CLEARLY = 2.0  # standard errors: among a dozen numbers one foretells better than it should
ONE_DRAW = 0.5  # of two items, that draws put together never or always, as if by half a draw more
ErrorOf = Callable[[Tensor], float]  # standard error of a mean of scores (m,)


def can_count(items: NDArray[Any], pairs: Pairs) -> bool:
    """Whether features (N, d) and judgements are such that several fits take seconds each."""
    small = items.ndim == 2 and len(items) <= MAX_GAUSSIAN_ITEMS
    return small and not pairs.is_complete and FEWEST <= len(pairs.that_count()) <= MOST


@dataclass(frozen=True, eq=False)
class Counted:
    """A fit to some number of classes."""

    told: int
    """Classes that answers tell apart."""
    criterion: float
    """Log evidence of all judgements, less what its rates cost."""
    scores: Tensor
    """(m,) log P(answer) of the unseen judgements."""


def count_by_evidence(
    items: NDArray[Any], pairs: Pairs, at_least: int, rng: np.random.Generator
) -> tuple[int, dict[str, Any]] | None:
    """``(number of classes, evidence)``: the criterion of each number of classes that was tried.

    Numbers up to ``at_least`` are tried in any case. None where no item differs from another.
    """
    pairs = pairs.explicit().that_count()
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    held = held_out(Graph.from_pairs(pairs), generator).numpy()
    problem = make_brief_problem(items, pairs.select(~held), rng)
    if problem is None:
        return None
    unseen = Graph.from_pairs(pairs.select(held))

    def fit(n_classes: int) -> Counted:
        with stage(None, 0.12):
            return _fitted(problem, unseen, n_classes)

    def error(difference: Tensor) -> float:
        return jackknife_error(difference, unseen)

    tried = search(fit, at_least, len(items) // 5, error)
    best = likeliest(tried, error)
    evidence = {"rule": "evidence of short fits"} | _figures(tried)
    count = max(best.told, 2)
    if len(items) <= MAX_ITEMS:
        alone = by_pair(_score_alone(problem.graph, unseen, rng), unseen)
        evidence["held_out_log_likelihood"]["judgements alone"] = round(float(alone.mean()), 4)
        lead = alone - best.scores
        if float(lead.mean()) > error(lead):
            found = infer_partition(**asked(Graph.from_pairs(pairs)), seed=int(rng.integers(2**31)))
            count, evidence["rule"] = max(found.n_groups, 2), "groups by judgements alone"
    return count, evidence


def _figures(tried: dict[int, Counted]) -> dict[str, Any]:
    """What is told of each number of classes that was tried."""
    fits = {str(number): tried[number] for number in sorted(tried)}
    return {
        "log_evidence": {number: round(fit.criterion, 1) for number, fit in fits.items()},
        "told_apart": {number: fit.told for number, fit in fits.items()},
        "held_out_log_likelihood": {
            number: round(float(fit.scores.mean()), 4) for number, fit in fits.items()
        },
    }


def search(
    fit: Callable[[int], Counted], at_least: int, at_most: int, error: ErrorOf
) -> dict[int, Counted]:
    """Fits to the numbers of classes worth trying: up a ladder, then step by step by the best."""
    tried = {1: fit(1)}
    waited = 0
    for number in (n for n in LADDER if n <= max(at_most, 2)):
        before = likeliest(tried, error)
        tried[number] = fit(number)
        now = likeliest(tried, error)
        one_class = now is tried[1]  # many classes may show where few do not
        waited = 0 if one_class or now is not before else waited + 1
        if waited >= WITHOUT_GAIN and number >= at_least:
            break
    while near := _untried(likeliest(tried, error).told, at_most, tried):
        tried |= {number: fit(number) for number in near}
    return tried


def likeliest(tried: dict[int, Counted], error: ErrorOf) -> Counted:
    """Of the fits than which none foretells clearly better, the one of the highest criterion."""
    best = max(tried.values(), key=lambda fit: float(fit.scores.sum()))

    def is_close(fit: Counted) -> bool:
        behind = best.scores - fit.scores
        return fit is best or float(behind.mean()) <= CLEARLY * error(behind)

    return max(filter(is_close, tried.values()), key=lambda fit: fit.criterion)


def _untried(number: int, at_most: int, tried: dict[int, Counted]) -> list[int]:
    return [n for n in (number - 1, number, number + 1) if 2 <= n <= at_most and n not in tried]


def _fitted(problem: JointProblem, unseen: Graph, n_classes: int) -> Counted:
    """The best of a few short fits; that of one class needs none."""
    graph = problem.graph
    if n_classes == 1:
        scores = by_pair(_usual(graph, unseen), unseen)
        seen = float(_usual(graph, graph).sum())
        cost = cost_of_rates(torch.zeros(graph.n_items, dtype=torch.long), graph, cells=False)
        return Counted(1, seen + float(scores.sum()) - cost, scores)
    features = problem.features
    assert features is not None
    problem = replace(problem, n_classes=n_classes)
    head = GaussianHead(features, STIFFNESS)
    with_cells = (False, True) if confusable(graph, n_classes) else (False,)
    fits = [
        em_from(problem, head, as_start(problem, *start, confusions))
        for start in _starts(problem)
        for confusions in with_cells
    ]
    best = max(fits, key=lambda state: criterion(state, graph))
    belief = best.targets.perceived
    with torch.no_grad():
        foretold = answer_log_likelihood(belief, unseen, best.channel).double()
    scores = by_pair(foretold, unseen)
    pairs = asked(graph)
    ends = pairs["left"], pairs["right"], pairs["same"], pairs["weight"]
    groups = merge_untold(belief.argmax(dim=1).cpu().numpy(), *ends)
    groups = merge_alike(groups, Answers.build(**pairs))
    explained = criterion(best, graph) + float(scores.sum())
    return Counted(int(groups.max()) + 1, explained, scores)


def _starts(problem: JointProblem) -> list[Start]:
    """By judgements alone and with features; those that put all items alike lead to one place."""
    n_classes, graph = problem.n_classes, problem.graph
    moments = moment_rates(problem.pairs, n_classes, problem.rng)
    channel: Channel = RateChannel(moments.a, moments.b)
    if problem.n_annotators > 1:
        channel = AnnotatorChannel.from_rates(moments.a, moments.b, problem.n_annotators)
    starts = [find(problem, channel) for find in (from_mixture, from_supervised)]
    if graph.n_items <= MAX_ITEMS:
        starts.append(from_partition(problem, channel))
    else:
        seed = int(problem.rng.integers(2**31))
        posterior, channel = spectral_start(graph, channel, n_classes, seed, rounds=8)
        starts.append((posterior.belief, channel))
    return distinct(starts)


def _score_alone(seen: Graph, unseen: Graph, rng: np.random.Generator) -> Tensor:
    """(m,) log P(answer) of the unseen judgements by draws of partitions that know no features."""
    found = draw_partitions(Answers.build(**asked(seen)), rng)
    drawn = torch.from_numpy(found.drawn)
    together = (drawn[:, unseen.left.long()] == drawn[:, unseen.right.long()]).double().sum(0)
    alike = (together + ONE_DRAW) / (len(drawn) + 2 * ONE_DRAW)
    rates = torch.from_numpy(found.rates.p_same)
    if unseen.annotator is None:
        rate = rates.mean(0).expand(len(unseen), 2)
    else:  # whoever answered nothing yet is like the others
        rates = torch.cat([rates, rates.mean(0, keepdim=True)])
        rate = rates[unseen.annotator.long().clamp_max(len(rates) - 1)]
    p_same = alike * rate[:, 0] + (1 - alike) * rate[:, 1]
    return torch.where(unseen.same, p_same, 1 - p_same).log() * weights_of(unseen)


def _usual(seen: Graph, unseen: Graph) -> Tensor:
    """(m,) log-likelihood where there is but one class: everybody answers as ever."""
    person = torch.zeros_like(seen.left) if seen.annotator is None else seen.annotator
    asked = torch.zeros_like(unseen.left) if unseen.annotator is None else unseen.annotator
    count = int(max(person.max(), asked.max())) + 1
    weight = weights_of(seen)
    said = weight * seen.same
    same = torch.bincount(person, said, count) + said.sum() / weight.sum()
    rate = (same / (torch.bincount(person, weight, count) + 1)).clamp(1e-3, 1 - 1e-3)[asked]
    return torch.where(unseen.same, rate, 1 - rate).log() * weights_of(unseen)
