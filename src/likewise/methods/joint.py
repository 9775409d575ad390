"""The joint objective: one alternation for judgements of every kind.

E: what is known of each item's perceived class (noisy label), from the judgement graph: components
where judgements are consistent, the graph alone where it decides, EM with the items where it does
not (`likewise.methods.evidence`). M: the recipe of the network in full, on that evidence and
through T.

The M-step trains *teachers*, each on all items but its fold and stopped on that fold, so that
every item is predicted by a network that never saw its judgements (cross-fitting). T is estimated
from those predictions of all items. A fresh *student* then learns the posterior P(y | x, evidence)
which they have found together: self-distillation, one step of EM with a new network. It learns
what z says given the item, where a network that is trained on z long enough learns z itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.errors import InputError
from likewise.io.json import Record
from likewise.methods.alignment import align_transition, distance, is_order_free, lopsided
from likewise.methods.evidence import Evidence, find_evidence
from likewise.methods.options import FitOptions
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, FloatMatrix, MethodProgram, finish
from likewise.nn.model import logits_of
from likewise.nn.networks import temperature_scaled
from likewise.noise.estimation import class_posterior, held_out_transition, suited_temperature
from likewise.training.checkpoints import Checkpoints
from likewise.training.objectives.forward_corrected import Distillation, ForwardCorrected
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

Index = NDArray[np.integer]


# Teachers are trained anew through a T that is so far from symmetric noise, in the paper's metric,
# until it moves by less than that.
MOVED = 0.1
MOST_ROUNDS = 3
SCORED = 5000  # items of a fold that choose the epoch: more would cost as much as the training


@dataclass(frozen=True)
class CrossFit:
    """What teachers found, each about the items that it did not see."""

    log_g: Tensor
    """(N, C) log posterior of the class from the item alone, out of fold."""
    transition: Tensor
    """(C, C) T by those predictions of all items."""
    teachers: list[FitResult]
    """The networks, one for each fold."""
    recipe: Recipe
    """As the last of them was trained: it may have changed once the noise was known."""


def joint_program(
    problem: Problem,
    transition: FloatMatrix | str | None = "estimate",
    noise: str = "auto",
    checkpoints: Checkpoints | None = None,
) -> MethodProgram:
    """E, then M; T is estimated, given, or None: perceived is true."""
    found = find_evidence(problem, transition, noise, checkpoints)
    if transition is None:
        transition = np.eye(problem.n_classes)
    given = transition if isinstance(transition, np.ndarray) and not found.of_classes else None
    if found.model is not None:
        fitted = _as_fitted(found, problem)
    else:
        fitted = yield from evidence_program(problem, found.rows, given, found.transition)
    return replace(
        fitted,
        choice=f"joint: {found.why}",
        channel=found.channel,
        annotators=found.annotators,
        history=[*found.history, *fitted.history],
        # Inference over the graph has seen all judgements; so have teachers, between them.
        judgements_held_out=found.channel is None and problem.recipe_for(joint=True).teachers < 2,
    )


def evidence_program(
    problem: Problem,
    evidence: Tensor,
    given: FloatMatrix | None = None,
    estimated: FloatMatrix | None = None,
) -> MethodProgram:
    """The M-step: train on ``evidence`` (N, C) of the perceived classes, through T.

    T is ``given`` in the order of whoever gives it, or was ``estimated`` with the evidence and in
    its order, or is estimated here.
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
    found = yield from cross_fit(problem, evidence, recipe, fixed)
    transition = found.transition if given is None else align_transition(given, found.transition)
    rounds = 0 if estimated is not None or lopsided(transition) < MOVED else MOST_ROUNDS
    for _ in range(rounds):
        # Before they knew T, teachers could not tell a class from what it is taken for.
        found = yield from cross_fit(problem, evidence, recipe, transition)
        if given is not None:
            break
        moved, transition = distance(found.transition, transition), found.transition
        if moved < MOVED:
            break
    for changes in recipe.students[:-1]:
        found = yield from next_generation(problem, evidence, found, transition, changes)
        transition = found.transition if given is None else transition
    student = yield from distil(problem, evidence, found, transition)
    return _with_history(student, found.teachers)


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
    run = yield _run(problem, objective, recipe, train, held, start=0)
    return _calibrated(problem, run, evidence, held)


def cross_fit(
    problem: Problem, evidence: Tensor, recipe: Recipe, fixed: Tensor | None
) -> Generator[TrainingRun, TrainingRun, CrossFit]:
    """Teachers, each on all items but its fold; what they say of the folds; T from all of it.

    With a ``fixed`` T (C, C) they are trained through it, else through what each finds on its fold.
    """

    def objective(train: Index, held: Index) -> ForwardCorrected:
        return ForwardCorrected(evidence[train], evidence[held], problem.device, fixed)

    again = 0 if fixed is None else recipe.teachers  # other starts than the first time
    return (yield from _out_of_fold(problem, evidence, recipe, objective, again))


def next_generation(
    problem: Problem,
    evidence: Tensor,
    found: CrossFit,
    transition: Tensor,
    changes: Record,
) -> Generator[TrainingRun, TrainingRun, CrossFit]:
    """Students of the teachers before them, cross-fitted as these were, that will teach in turn."""
    posterior = class_posterior(found.log_g, transition, evidence)
    recipe = _student_recipe(found.recipe, changes).with_(teachers=found.recipe.teachers)

    def objective(train: Index, held: Index) -> ForwardCorrected:
        own = evidence[train], evidence[held]
        return Distillation(posterior[train], *own, problem.device, transition)

    grown = yield from _out_of_fold(problem, evidence, recipe, objective, 2 * recipe.teachers)
    return replace(grown, recipe=found.recipe)


def _out_of_fold(
    problem: Problem,
    evidence: Tensor,
    recipe: Recipe,
    objective: Callable[[Index, Index], ForwardCorrected],
    first_start: int,
) -> Generator[TrainingRun, TrainingRun, CrossFit]:
    """One network for each fold, trained on the others; T from what they say of their own."""
    folds = fold_of_items(problem, recipe.teachers)
    log_g = torch.empty_like(evidence)
    networks: list[FitResult] = []
    for fold in range(recipe.teachers):
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        scored = held[:: max(1, len(held) // SCORED)]
        run = yield _run(
            problem, objective(train, scored), recipe, train, scored, start=first_start + fold
        )
        networks.append(_calibrated(problem, run, evidence, held))
        logits = logits_of(networks[-1].model, problem.take(held), problem.device).cpu()
        log_g[held] = logits.float().log_softmax(dim=1)
    there = log_g.to(problem.device), evidence.to(problem.device)
    transition, temperature = (found.cpu() for found in held_out_transition(*there))
    return CrossFit((log_g / temperature).log_softmax(dim=1), transition, networks, run.recipe)


def _student_recipe(recipe: Recipe, changes: Record) -> Recipe:
    """A student has teachers of its own: it needs no other, and its noise is known."""
    alone = recipe.with_(mean_teacher_from=None, high_noise=None, teachers=0, students=({},))
    return alone.with_(**changes)


def distil(
    problem: Problem, evidence: Tensor, found: CrossFit, transition: Tensor
) -> Generator[TrainingRun, TrainingRun, FitResult]:
    """A fresh network that learns the posterior which the teachers have found."""
    train, held, _, _ = problem.parts
    posterior = class_posterior(found.log_g, transition, evidence)
    objective = Distillation(
        posterior[train], evidence[train], evidence[held], problem.device, transition
    )
    recipe = _student_recipe(found.recipe, found.recipe.students[-1])
    run = yield _run(problem, objective, recipe, train, held, start=3 * len(found.teachers))
    return replace(_calibrated(problem, run, evidence, held), posterior=posterior.numpy())


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
        score=-max(evidence) / len(problem.pairs),
        posterior=found.posterior,
    )


def fold_of_items(problem: Problem, folds: int) -> Index:
    """(N,) fold of each item, as even as can be."""
    order = np.random.default_rng([problem.seed, 2]).permutation(len(problem.items))
    return order % folds


def _run(
    problem: Problem,
    objective: ForwardCorrected,
    recipe: Recipe,
    train: Index,
    held: Index,
    start: int,
) -> TrainingRun:
    model = problem.model(start)
    model.flip_tta = recipe.flip and problem.items.ndim > 2
    return problem.run(objective, recipe, model, start, split=(train, held))


def _calibrated(problem: Problem, run: TrainingRun, evidence: Tensor, held: Index) -> FitResult:
    """A run's outcome, its confidence mended on the held-out items (temperature scaling): mixing
    items leaves a network too unsure."""
    transition = run.best.estimates["transition"]
    fitted = finish(run, "joint", transition.cpu().double().numpy())
    logits = logits_of(fitted.model, problem.take(held), problem.device)
    temperature = suited_temperature(logits, transition, evidence[held].to(logits.device))
    few = problem.take(held[:2])
    calibrated = temperature_scaled(
        fitted.model, float(temperature), lambda model: logits_of(model, few, problem.device)
    )
    return replace(fitted, model=calibrated)


def _with_history(student: FitResult, teachers: list[FitResult]) -> FitResult:
    """The student with the history of all, its own at the end."""
    rows = [
        row | {"method": f"teacher {number}"}
        for number, teacher in enumerate(teachers, start=1)
        for row in teacher.history
    ]
    return replace(student, history=rows + student.history)


def joint_method(problem: Problem, options: FitOptions) -> MethodProgram:
    """The joint objective as the registry knows it."""
    return joint_program(problem, options.transition, options.noise, options.checkpoints)
