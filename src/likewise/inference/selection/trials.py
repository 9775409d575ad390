"""One fit to most of the judgements, and what it foretells about the rest.

Errors are a jackknife over items; every judged pair counts alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from likewise.inference.em import Options, State
from likewise.inference.heads.cross_fitting import Head, log_perceived
from likewise.inference.heads.silent_heads import AsFoundHead, PerceivedHead
from likewise.inference.problem import JointProblem, nearly_identity
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.posterior import entropy
from likewise.inference.propagation.sort_graph import SortGraph
from likewise.inference.selection.as_found import as_found
from likewise.inference.selection.ranking import (
    answer_log_likelihood,
    by_pair,
    jackknife_error,
    share_of_pairs,
)
from likewise.inference.selection.start_selection import Start, em_from
from likewise.io.progress import stage

ROUNDS = 20  # of EM: cheap with these heads, and slow to settle
PART = 0.03  # of the job at hand, which takes about thirty fits like it
MANY_CLASSES, FEW_ITERATIONS = 15, 10
LEAST_ERROR = 1e-3  # nats a judgement: fits that agree differ by less, and always the same way
FADED = 0.9  # of the entropy of knowing nothing
GOOD_PART = 1 / 5  # of the entropy of the classes
KEPT = 0.9  # of the classes that another trial has


@dataclass(frozen=True, eq=False)
class Trial:
    """A fit to the seen judgements, and log P(answer) (m,) of the unseen ones."""

    state: State
    head: Head
    scores: Tensor
    start: Start
    """Where it began."""
    number: int = 0
    """Of the start."""


def fit_with(problem: JointProblem, head: Head, start: Start) -> State:
    """EM on all judgements with one head; T is the identity where features cannot tell it."""
    if isinstance(head, AsFoundHead):
        return as_found(problem, start)
    rounds = max(problem.options.rounds, ROUNDS)
    iterations = problem.options.iterations
    if problem.n_classes > MANY_CLASSES:  # messages cost as many: go on from the last round's
        iterations = min(iterations, FEW_ITERATIONS)
    options: Options = replace(problem.options, rounds=rounds, iterations=iterations)
    if not head.reads_transition:
        options = replace(options, transition=nearly_identity(problem.n_classes))
    state = em_from(problem, head, start, options)
    if isinstance(head, PerceivedHead):
        return as_perceived(state)
    if head.reads_transition:
        return state
    # However sure they are of other classes: what people see is what an item is.
    return replace(state, targets=replace(state.targets, classes=state.targets.perceived))


def as_perceived(state: State) -> State:
    """The same with f = g @ T as the class posterior, and no T: people see what an item is."""
    identity = nearly_identity(len(state.transition)).to(state.transition)
    targets = replace(state.targets, classes=state.targets.perceived)
    log_f = log_perceived(state.log_g, state.transition)
    return replace(state, targets=targets, transition=identity, log_g=log_f)


def tried(seen: JointProblem, unseen: Graph, head: Head, start: Start) -> Trial:
    with stage(None, PART):
        state = fit_with(seen, head, start)
    belief = state.targets.perceived
    if isinstance(seen.graph, SortGraph) and isinstance(unseen, SortGraph):
        return Trial(state, head, seen.graph.unseen_scores(belief, unseen), start)
    scores = answer_log_likelihood(belief, unseen, state.channel).double()
    return Trial(state, head, by_pair(scores, unseen), start)


def most_telling(trials: list[Trial], unseen: Graph) -> Trial:
    """Of the trials within a standard error of the best (the one-standard-error rule, Breiman et
    al. 1984), the one under which all judgements are likeliest; one that has faded says nothing,
    and one that has lost classes is none of so many classes."""
    decided = [trial for trial in trials if not has_faded(trial.state)] or trials
    most = max(n_used(trial.state) for trial in decided)
    decided = [trial for trial in decided if n_used(trial.state) >= KEPT * most]
    best = max(decided, key=foretold)
    close = [trial for trial in decided if ahead(best, trial, unseen) <= 1]
    return max(close, key=of_all_judgements)


def of_all_judgements(trial: Trial) -> float:
    """Log evidence by the chain rule: log P(seen) + log P(unseen | seen).

    The features' own density, which is part of a state's evidence, would outvote people.
    """
    return trial.state.posterior.evidence + foretold(trial)


def is_better(one: Trial, other: Trial, unseen: Graph) -> bool:
    """Whether it foretells better by more than a standard error, or else makes all judgements
    likelier."""
    lead = ahead(one, other, unseen)
    return lead > 1 or (lead > -1 and of_all_judgements(one) > of_all_judgements(other))


def has_faded(state: State) -> bool:
    """Whether every class is about as likely for a usual item."""
    belief = state.targets.perceived
    return bool(entropy(belief).mean() > FADED * math.log(belief.shape[1]))


def n_used(state: State) -> int:
    """How many classes are the likeliest one of some item."""
    return len(torch.unique(state.targets.perceived.argmax(dim=1)))


def foretold(trial: Trial) -> float:
    """log P(all unseen answers)."""
    return float(trial.scores.sum())


def ahead(one: Trial, other: Trial, unseen: Graph) -> float:
    """By how many standard errors one foretells unseen judgements better than the other."""
    gain = one.scores - other.scores
    if not len(gain):
        return 0.0
    error = jackknife_error(gain, unseen)
    return float(gain.mean()) / max(error, LEAST_ERROR)


def explains_more(best: Trial, shuffled: Trial, graph: Graph) -> bool:
    """Whether features make all judgements likelier than those of other items do, by a good part of
    what it would take to name every item's class; a pair of the ``graph`` counts once, however many
    answers about it err together."""
    belief = best.state.targets.perceived
    gain = of_all_judgements(best) - of_all_judgements(shuffled)
    once = 1.0 if isinstance(graph, SortGraph) else share_of_pairs(graph)
    return once * gain > GOOD_PART * len(belief) * float(entropy(belief.mean(0)))
