"""How many classes: as many as foretell best the judgements that a fit has not seen.

Too few classes call alike what people tell apart, too many call different what people call the
same; both cost likelihood. Features help to see classes long before the judgements alone do; where
they show nothing, the groups of a search over partitions may foretell more, and are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.em import Options, first_targets, run_em
from likewise.inference.heads.gaussian import Features, GaussianHead
from likewise.inference.partition import infer_partition
from likewise.inference.partition.refine import MAX_ITEMS
from likewise.inference.problem import MAX_GAUSSIAN_ITEMS, JointProblem, make_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.channel_selection import confusable
from likewise.inference.selection.ranking import (
    answer_log_likelihood,
    by_pair,
    held_out,
    jackknife_error,
)
from likewise.inference.selection.start_selection import (
    as_start,
    asked,
    from_clusters,
    from_mixture,
)
from likewise.inference.selection.starts import spectral_start
from likewise.inference.selection.trials import MANY_CLASSES
from likewise.io.progress import stage
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, RateChannel
from likewise.pairs import Pairs
from likewise.pairs.rates import moment_rates

FEWEST, MOST = 1_000, 200_000  # judgements that can tell, and that take seconds a number
LADDER = (2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 60)
WITHOUT_GAIN = 2  # steps of the ladder, beyond which no more are tried
STIFFNESS = 0.5
SURE = 0.95  # of two items of one group, that they are
PART = 0.2  # of what a class brought that is too little for one more

Scorer = Callable[[int], Tensor]


def can_count(items: NDArray[Any], pairs: Pairs) -> bool:
    """Whether features (N, d) and judgements are such that several fits take seconds each."""
    small = items.ndim == 2 and len(items) <= MAX_GAUSSIAN_ITEMS
    return small and not pairs.is_complete and FEWEST <= len(pairs) <= MOST


def count_by_prediction(
    items: NDArray[Any], pairs: Pairs, at_least: int, rng: np.random.Generator
) -> tuple[int, dict[str, Any]] | None:
    """``(number of classes, evidence)``: held-out log-likelihood a judgement of each number tried.

    `simplest` says which is taken. Numbers up to ``at_least`` are tried in any case. None where
    no item differs from another.
    """
    pairs = pairs.explicit()
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    held = held_out(Graph.from_pairs(pairs), generator).numpy()
    problem = make_problem(
        items,
        pairs.select(~held),
        n_classes=2,
        network=None,
        transition="estimate",
        rng=rng,
        device="cpu",
        options=Options(rounds=5),
    )
    unseen = Graph.from_pairs(pairs.select(held))
    features = problem.features or Features.of(problem.items)
    if features is None:
        return None
    seeing = replace(problem, features=features)

    def score(n_classes: int) -> Tensor:
        with stage(None, 0.12):
            return by_pair(_score(seeing, unseen, n_classes), unseen)

    tried = search(score, at_least, len(items) // 5)
    count = simplest(tried)
    shown = {str(number): round(float(tried[number].mean()), 4) for number in sorted(tried)}
    evidence: dict[str, Any] = {"rule": "held-out judgements", "log_likelihood": shown}
    if len(items) <= MAX_ITEMS:
        alone = by_pair(_score_alone(problem.graph, unseen, rng), unseen)
        evidence["judgements_alone"] = round(float(alone.mean()), 4)
        lead = alone - tried[_best(tried)]
        if float(lead.mean()) > jackknife_error(lead, unseen):
            found = infer_partition(**asked(Graph.from_pairs(pairs)), seed=int(rng.integers(2**31)))
            count, evidence["rule"] = max(found.n_groups, 2), "groups by judgements alone"
    return count, evidence


def search(score: Scorer, at_least: int, at_most: int) -> dict[int, Tensor]:
    """Scores (m,) of the numbers worth trying: up a ladder, then step by step around the best."""
    tried = {1: score(1)}  # to know what the second class brings
    waited = 0
    for number in (n for n in LADDER if n <= max(at_most, 2)):
        tried[number] = score(number)
        best = _best(tried)
        waited = 0 if best in (1, number) else waited + 1  # many classes may show where few do not
        if waited >= WITHOUT_GAIN and number >= at_least:
            break
    while True:
        best = _best(tried)
        near = [n for n in (best - 1, best + 1) if 2 <= n <= at_most and n not in tried]
        if not near:
            break
        tried |= {number: score(number) for number in near}
    while (below := simplest(tried) - 1) not in tried:
        tried[below] = score(below)
    return tried


def simplest(tried: dict[int, Tensor]) -> int:
    """The smallest number, from 2, beyond which there is little left to gain.

    Little is one standard error, or a small part of what the last class brought: many numbers were
    tried, and classes that do not exist can still take up what makes single items special.
    """
    mean = {number: float(scores.mean()) for number, scores in tried.items()}
    best = _best(tried)
    for below, number in pairwise(sorted(tried)):
        loss = tried[best] - tried[number]
        error = float(loss.std()) / len(loss) ** 0.5
        brought = (mean[number] - mean[below]) / (number - below)
        if float(loss.mean()) <= max(error, PART * brought):
            return number
    return max(best, 2)


def _best(tried: dict[int, Tensor]) -> int:
    return max(tried, key=lambda number: float(tried[number].mean()))


def _score(problem: JointProblem, unseen: Graph, n_classes: int) -> Tensor:
    """(m,) log-likelihood of each unseen judgement by the best of a few short fits."""
    if n_classes == 1:
        return _usual(problem.graph, unseen)
    features = problem.features
    assert features is not None
    problem = replace(problem, n_classes=n_classes)
    moments = moment_rates(problem.pairs, n_classes, problem.rng)
    channel: Channel = RateChannel(moments.a, moments.b)
    if problem.n_annotators > 1:
        channel = AnnotatorChannel.from_rates(moments.a, moments.b, problem.n_annotators)
    seed = int(problem.rng.integers(2**31))
    posterior, by_graph = spectral_start(problem.graph, channel, n_classes, seed, rounds=8)
    starts = [
        (posterior.belief, by_graph),
        from_clusters(problem, channel),
        from_mixture(problem, channel),
    ]
    if n_classes <= MANY_CLASSES and confusable(problem.graph, n_classes):
        starts = [as_start(problem, *start, confusions=True) for start in starts]
    head = GaussianHead(features, STIFFNESS)
    states = [
        run_em(
            problem.graph,
            head,
            found,
            first_targets(belief),
            problem.options,
            problem.generator,
        )
        for belief, found in starts
    ]
    best = max(states, key=lambda state: state.posterior.evidence)  # of the judgements alone
    with torch.no_grad():
        return answer_log_likelihood(best.targets.perceived, unseen, best.channel).double()


def _score_alone(seen: Graph, unseen: Graph, rng: np.random.Generator) -> Tensor:
    """(m,) the same by groups of the judgements alone, as many as a search finds."""
    found = infer_partition(**asked(seen), seed=int(rng.integers(2**31)), quick=True)
    group = torch.from_numpy(found.labels)
    alike = torch.where(group[unseen.left.long()] == group[unseen.right.long()], SURE, 1 - SURE)
    rates = torch.from_numpy(found.p_same)
    if unseen.annotator is None:
        rate = rates.mean(0).expand(len(unseen), 2)
    else:  # whoever answered nothing yet is like the others
        rates = torch.cat([rates, rates.mean(0, keepdim=True)])
        rate = rates[unseen.annotator.long().clamp_max(len(rates) - 1)]
    p_same = alike * rate[:, 0] + (1 - alike) * rate[:, 1]
    return torch.where(unseen.same, p_same, 1 - p_same).log()


def _usual(seen: Graph, unseen: Graph) -> Tensor:
    """(m,) log-likelihood where there is but one class: everybody answers as ever."""
    person = torch.zeros_like(seen.left) if seen.annotator is None else seen.annotator
    asked = torch.zeros_like(unseen.left) if unseen.annotator is None else unseen.annotator
    count = int(max(person.max(), asked.max())) + 1
    same = torch.bincount(person, seen.same.double(), count) + seen.same.double().mean()
    rate = (same / (torch.bincount(person, minlength=count) + 1)).clamp(1e-3, 1 - 1e-3)[asked]
    return torch.where(unseen.same, rate, 1 - rate).log()
