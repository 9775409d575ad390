"""How many classes: as many as make the judgements likeliest, seen and unseen, by short fits.

Too few classes call alike what people tell apart, too many call different what people call the
same. A fit to more classes than there are often leaves the spare ones empty, and finds the others
better than one to just as many: what counts is how many it uses. Of the fits that foretell unseen
judgements best, within a standard error, the one is taken under which all judgements are likeliest,
less what four more parameters a class could explain by chance (BIC, Schwarz 1978). Features help to
see classes long before the judgements alone do; where they show nothing, the groups of a search
over partitions may foretell more, and are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
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
    from_mixture,
    from_supervised,
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
FEWEST_ITEMS = 2  # of a class: one alone tells nothing of others
SURE = 0.95  # of two items of one group, that they are
ErrorOf = Callable[[Tensor], float]  # standard error of a mean of scores (m,)
PARAMETERS = 4  # of a class: its share, and how often it is called the same as itself and others


def can_count(items: NDArray[Any], pairs: Pairs) -> bool:
    """Whether features (N, d) and judgements are such that several fits take seconds each."""
    small = items.ndim == 2 and len(items) <= MAX_GAUSSIAN_ITEMS
    return small and not pairs.is_complete and FEWEST <= len(pairs) <= MOST


@dataclass(frozen=True, eq=False)
class Counted:
    """A fit to some number of classes."""

    used: int
    """Classes that it has items for."""
    criterion: float
    """Log evidence of all judgements, less what its classes cost."""
    scores: Tensor
    """(m,) log P(answer) of the unseen judgements."""


def count_by_evidence(
    items: NDArray[Any], pairs: Pairs, at_least: int, rng: np.random.Generator
) -> tuple[int, dict[str, Any]] | None:
    """``(number of classes, evidence)``: the criterion of each number of classes that fits used.

    Numbers up to ``at_least`` are tried in any case. None where no item differs from another.
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

    def fit(n_classes: int) -> Counted:
        with stage(None, 0.12):
            return _fitted(seeing, unseen, n_classes)

    def error(difference: Tensor) -> float:
        return jackknife_error(difference, unseen)

    tried = search(fit, at_least, len(items) // 5, error)
    best = likeliest(tried, error)
    shown = {str(fit.used): round(fit.criterion, 1) for fit in sorted(tried.values(), key=_order)}
    evidence: dict[str, Any] = {"rule": "evidence of short fits", "log_evidence": shown}
    count = max(best.used, 2)
    if len(items) <= MAX_ITEMS:
        alone = by_pair(_score_alone(problem.graph, unseen, rng), unseen)
        means = {"short fits": best.scores, "judgements alone": alone}
        shown = {name: round(float(scores.mean()), 4) for name, scores in means.items()}
        evidence["held_out_log_likelihood"] = shown
        lead = alone - best.scores
        if float(lead.mean()) > error(lead):
            found = infer_partition(**asked(Graph.from_pairs(pairs)), seed=int(rng.integers(2**31)))
            count, evidence["rule"] = max(found.n_groups, 2), "groups by judgements alone"
    return count, evidence


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
    while near := _untried(likeliest(tried, error).used, at_most, tried):
        tried |= {number: fit(number) for number in near}
    return tried


def likeliest(tried: dict[int, Counted], error: ErrorOf) -> Counted:
    """Of the fits that foretell best, within a standard error, the one of the highest criterion."""
    best = max(tried.values(), key=lambda fit: float(fit.scores.sum()))
    behind = {fit: best.scores - fit.scores for fit in tried.values()}
    close = [f for f, loss in behind.items() if f is best or float(loss.mean()) <= error(loss)]
    return max(close, key=lambda fit: fit.criterion)


def _untried(number: int, at_most: int, tried: dict[int, Counted]) -> list[int]:
    return [n for n in (number - 1, number, number + 1) if 2 <= n <= at_most and n not in tried]


def _order(fit: Counted) -> tuple[int, float]:
    return fit.used, fit.criterion


def _fitted(problem: JointProblem, unseen: Graph, n_classes: int) -> Counted:
    """The best of a few short fits; classes that nobody tells from another empty themselves."""
    a_class = PARAMETERS / 2 * math.log(len(problem.graph) + len(unseen))
    if n_classes == 1:
        scores = by_pair(_usual(problem.graph, unseen), unseen)
        seen = float(_usual(problem.graph, problem.graph).sum())
        return Counted(1, seen + float(scores.sum()) - a_class, scores)
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
        from_mixture(problem, channel),
        from_supervised(problem, channel),
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
    belief = best.targets.perceived
    used = max(int((torch.bincount(belief.argmax(dim=1)) >= FEWEST_ITEMS).sum()), 1)
    with torch.no_grad():
        foretold = answer_log_likelihood(belief, unseen, best.channel).double()
    scores = by_pair(foretold, unseen)
    total = best.posterior.evidence + float(scores.sum())
    return Counted(used, total - used * a_class, scores)


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
