"""The joint objective: one alternation for judgements of every kind.

E: what is known of each item's perceived class (noisy label), from the judgement graph: components
where judgements are consistent, the graph alone where it decides, EM with the items where it does
not (`likewise.methods.evidence`). M: the recipe of the network in full, on that evidence and
through T.

The M-step trains *teachers*, each on all items but its fold and stopped on that fold, so that
every item is predicted by a network that never saw its judgements (cross-fitting,
`likewise.methods.teachers`). Where EM went through networks on the same features, these have been
the teachers. T is estimated from those predictions of all items. A fresh *student*
(`likewise.methods.students`) then learns the posterior P(y | x, evidence)
which they have found together: self-distillation, one step of EM with a new network. It learns
what z says given the item, where a network that is trained on z long enough learns z itself. A
recipe may ask for several generations of students, each taught by all networks before it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.inference.annotator_table import annotator_table
from likewise.inference.problem import has_rich_features
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import certain_posterior, one_hot
from likewise.io.progress import stage
from likewise.methods.alignment import (
    align_transition,
    distance,
    is_order_free,
    least_apart,
    lopsided,
)
from likewise.methods.evidence import Evidence, find_evidence
from likewise.methods.item_noise import depends_on_items, learn_from_neighbours, with_marginal
from likewise.methods.options import FitOptions
from likewise.methods.problem import Problem
from likewise.methods.result import Columns, FitResult, FloatMatrix, MethodProgram
from likewise.methods.students import generations
from likewise.methods.teachers import CrossFit, calibrated, cross_fit, network_run
from likewise.methods.warnings import doubts_about_given
from likewise.noise.annotators import AnnotatorChannel
from likewise.pairs.shards import exchange_of, total_of
from likewise.training.checkpoints import Checkpoints
from likewise.training.objectives.forward_corrected import ForwardCorrected
from likewise.training.recipe import Recipe

# Teachers are trained anew through a T that is so far from symmetric noise, in the paper's metric,
# until it moves by less than that.
MOVED = 0.1
MOST_ROUNDS = 3
MUCH_LESS = 0.3  # of the mean diagonal of T
HARDLY = 1 / 4


def joint_program(
    problem: Problem,
    transition: FloatMatrix | str | None = "estimate",
    noise: str = "auto",
    checkpoints: Checkpoints | None = None,
    known: Tensor | None = None,
) -> MethodProgram:
    """E, then M; T is estimated, given, or None: perceived is true.

    ``known`` (N, C) are classes that are certain beforehand (`inference.propagation.known`).
    """
    by_em = has_rich_features(problem.items, problem.network)  # then no network comes after
    with stage("what the judgements say together", 0.95 if by_em else 0.3):
        found = find_evidence(problem, transition, noise, checkpoints, known)
    if transition is None:
        transition = np.eye(problem.n_classes)
    given = transition if isinstance(transition, np.ndarray) and not found.of_classes else None
    if found.model is not None:
        fitted = _as_fitted(found, problem)
    else:
        estimated = found.transition
        if found.of_classes and estimated is not None:
            estimated = np.eye(problem.n_classes)
        # EM's networks have been teachers already. Of images they were too short-lived for that.
        log_g = found.log_g if problem.items.ndim == 2 else None
        fitted = yield from evidence_program(problem, found.rows, given, estimated, log_g)
        if found.of_classes and found.transition is not None:
            fitted = replace(fitted, transition=found.transition)
        if _did_not_learn(fitted, found):
            fitted = replace(fitted, transition=found.transition, posterior=found.posterior)
    return replace(
        fitted,
        choice=f"joint: {found.why}" + (f"; {fitted.choice}" if fitted.choice else ""),
        channel=found.channel,
        annotators=found.annotators or _people(problem, found, fitted),
        history=[*found.history, *fitted.history],
        posterior=certain_posterior(fitted.posterior, known),
        # Inference over the graph has seen all judgements; so have teachers, between them.
        judgements_held_out=found.channel is None and problem.recipe_for(joint=True).teachers < 2,
    )


def evidence_program(
    problem: Problem,
    evidence: Tensor,
    given: FloatMatrix | None = None,
    estimated: FloatMatrix | None = None,
    log_g: Tensor | None = None,
) -> MethodProgram:
    """The M-step: train on ``evidence`` (N, C) of the perceived classes, through T.

    T is ``given`` in the order of whoever gives it, or was ``estimated`` with the evidence and in
    its order, or is estimated here. ``log_g`` (N, C) are the predictions of networks that have
    taught already, each of items that it did not see.
    """
    if int((evidence.sum(dim=0) > 0.5).sum()) < 2:
        raise InputError(
            "the judgements form fewer than two groups of items judged the same, so that there "
            "is nothing to tell apart; more judgements are needed."
        )
    recipe = problem.recipe_for(joint=True)
    if recipe.teachers < 2:
        return (yield from _one_network(problem, evidence, recipe, given, estimated))
    fixed = None if estimated is None else torch.as_tensor(estimated, dtype=torch.float32)
    if log_g is not None and fixed is not None and given is None:
        found = CrossFit(log_g, fixed, [], recipe)
    else:  # the order of a T that is given is found by teachers
        found = yield from cross_fit(problem, evidence, recipe, fixed)
    transition, doubts = found.transition, list[str]()
    if given is not None:
        transition = align_transition(given, found.transition)
        doubts = doubts_about_given(transition, found.transition, found.log_g, evidence)
    rounds = 0 if estimated is not None or lopsided(transition) < MOVED else MOST_ROUNDS
    for _ in range(rounds):
        # Before they knew T, teachers could not tell a class from what it is taken for.
        found = yield from cross_fit(problem, evidence, recipe, transition)
        # A T that is given may now be seen to have been read in the wrong order.
        renewed = found.transition
        if given is not None:
            renewed = align_transition(transition.numpy(), found.transition)
        moved, transition = distance(renewed, transition), renewed
        if moved < MOVED:
            break
    beliefs = None
    if given is None and estimated is None:
        beliefs = depends_on_items(problem, evidence, found)
    if beliefs is None:
        student = yield from generations(problem, evidence, found, transition)
        student = with_marginal(problem, evidence, found, student)
    else:
        student, found = yield from learn_from_neighbours(problem, evidence, beliefs, found)
    rows = [
        row | {"method": f"teacher {number}"}
        for number, teacher in enumerate(found.teachers, start=1)
        for row in teacher.history
    ]
    return replace(student, history=rows + student.history, warnings=doubts)


def _one_network(
    problem: Problem,
    evidence: Tensor,
    recipe: Recipe,
    given: FloatMatrix | None,
    estimated: FloatMatrix | None,
) -> MethodProgram:
    """Without teachers: T is estimated along the way, from the held-out items; one that is given
    waits for that where its order matters."""
    train, held, _, _ = problem.parts
    known = given if estimated is None else estimated
    if known is given and given is not None and not is_order_free(given):
        free = yield from _one_network(problem, evidence, recipe, given=None, estimated=None)
        known = align_transition(given, torch.as_tensor(free.transition)).numpy()
    fixed = None if known is None else torch.as_tensor(known, dtype=torch.float32)
    objective = ForwardCorrected(evidence[train], evidence[held], problem.device, fixed)
    run = yield network_run(problem, objective, recipe, train, held, start=0)
    return calibrated(problem, run, evidence, held)


def _people(problem: Problem, found: Evidence, fitted: FitResult) -> Columns | None:
    """A table of the people whom a fit without EM told apart, measured by the classes it found."""
    pairs = problem.pairs
    if not isinstance(found.channel, AnnotatorChannel) or pairs.annotator_names is None:
        return None
    classes = found.rows if fitted.posterior is None else torch.from_numpy(fitted.posterior)
    graph = Graph.from_pairs(pairs)
    return annotator_table(graph, classes.float(), pairs.annotator_names, exchange_of(pairs))


def _did_not_learn(fitted: FitResult, found: Evidence) -> bool:
    """Whether a network's T keeps far less than EM's, or hardly tells apart two classes that EM's
    does: what it could not learn from the items it takes for noise, and its posterior would forget
    what was judged."""
    if found.posterior is None or found.transition is None or fitted.transition is None:
        return False
    lost = np.trace(found.transition) - np.trace(fitted.transition)
    apart = least_apart(fitted.transition) < HARDLY * least_apart(found.transition)
    return apart or bool(lost > MUCH_LESS * len(found.transition))


def _as_fitted(found: Evidence, problem: Problem) -> FitResult:
    """EM's own classifier, where no network would improve on it."""
    assert found.model is not None
    evidence = [float(str(row["evidence"])) for row in found.history]
    return FitResult(
        method="joint",
        model=found.model,
        last_model=found.model,
        transition=found.transition,
        history=[],
        best_epoch=int(np.argmax(evidence)),
        score=-max(evidence) / total_of(problem.pairs),
        posterior=found.posterior,
    )


def joint_method(problem: Problem, options: FitOptions) -> MethodProgram:
    """The joint objective as the registry knows it."""
    known = one_hot(options.known, problem.n_classes)
    transition = _transition_of(options)
    return joint_program(problem, transition, options.noise, options.checkpoints, known)


def _transition_of(options: FitOptions) -> FloatMatrix | str | None:
    """T as it was asked for; None where the noise model says that no item is mistaken."""
    if options.noise != "judgement":
        return options.transition
    given = options.given_transition
    if given is not None and not np.allclose(given, np.eye(len(given))):
        raise InputError(
            "noise='judgement' says that items are never mistaken, but the transition matrix says "
            "how they are; take noise='both', or leave the matrix out."
        )
    return None
