"""Noise that depends on the item: seen by where the boundaries of the classes lie.

Where items near another class are taken for it, the perceived classes follow the items all the way:
a network learns the mistakes, T at the items it is sure of is near the identity, and no likelihood
of judgements tells that from classes which overlap. What does is the cluster assumption: boundaries
between classes lie where items are few (`inference.lifting.neighbours.Neighbours.prefers`). If
perceived classes that were spread among neighbours (`inference.lifting.spreading`) tell clearly
fewer neighbours apart than the network does, and agree with what people said nearly as often, they
are believed, and the rest is noise.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from likewise.inference.lifting.neighbours import (
    NEIGHBOURS,
    nearest_neighbours,
    principal_components,
)
from likewise.inference.lifting.spreading import spread
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult
from likewise.methods.students import generations
from likewise.methods.teachers import CrossFit, cross_fit
from likewise.nn.model import logits_of
from likewise.noise.estimation import TINY, count_transition, marginal_transition
from likewise.training.run import TrainingRun

# By how much T must keep more than agrees over all items, to ask whether noise depends on them.
UNEXPLAINED = 0.12
MOST_ITEMS = 100_000


def depends_on_items(problem: Problem, evidence: Tensor, found: CrossFit) -> Tensor | None:
    """(N, C) beliefs of the classes by neighbours, where these should be believed; None elsewhere.

    ``evidence`` (N, C) is of perceived classes, ``found`` what networks say that learned from it.
    Images that are read from disk batch by batch have none: all would have to be held at once.
    """
    if not isinstance(problem.items, np.ndarray) or not _leaves_unexplained(found, evidence):
        return None
    n_items, evidence = len(problem.items), _perceived(found, evidence)
    if not 4 * max(NEIGHBOURS, problem.n_classes) <= n_items <= MOST_ITEMS:
        return None
    near = nearest_neighbours(principal_components(problem.items, seed=problem.seed))
    beliefs = spread(near, evidence)
    return beliefs if near.prefers(beliefs, found.log_g, evidence) else None


def _leaves_unexplained(found: CrossFit, evidence: Tensor) -> bool:
    """Whether T keeps clearly more than perceived classes agree with the network over all items."""
    overall = marginal_transition(found.log_g, _perceived(found, evidence)).diagonal().mean()
    return float(found.transition.diagonal().mean() - overall) >= UNEXPLAINED


def with_marginal(
    problem: Problem, evidence: Tensor, found: CrossFit, student: FitResult
) -> FitResult:
    """The student beside T over all items by its own classes, where T leaves much unexplained.

    Elsewhere T is the better one of the two: the student's own mistakes are not in it.
    """
    if not _leaves_unexplained(found, evidence):
        return student
    everything = problem.take(np.arange(len(problem.items)))
    logits = logits_of(student.model, everything, problem.device).cpu()
    over_all = marginal_transition(logits, _perceived(found, evidence))
    return replace(student, marginal_transition=over_all.double().numpy())


def _perceived(found: CrossFit, evidence: Tensor) -> Tensor:
    """(N, C) posterior of the perceived class: soft evidence, as of slips, is no disagreement."""
    rows = (found.log_g.exp() @ found.transition.to(found.log_g)) * evidence
    return rows / rows.sum(dim=1, keepdim=True).clamp_min(TINY)


def learn_from_neighbours(
    problem: Problem, evidence: Tensor, beliefs: Tensor, before: CrossFit
) -> Generator[TrainingRun, TrainingRun, tuple[FitResult, CrossFit]]:
    """Networks that learn beliefs (N, C) about the classes themselves, and what the perceived
    classes say of them: T at the items they are sure of, and over all items."""
    identity, perceived = torch.eye(problem.n_classes), _perceived(before, evidence)
    found = yield from cross_fit(problem, beliefs, before.recipe, identity)
    student = yield from generations(problem, beliefs, found, identity)
    fitted = replace(
        student,
        transition=count_transition(found.log_g, perceived).double().numpy(),
        marginal_transition=marginal_transition(beliefs, perceived).double().numpy(),
        choice="noise depends on the item, so that neighbours decide",
    )
    return fitted, found
