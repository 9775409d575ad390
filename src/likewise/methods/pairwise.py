"""The pairwise methods, which take judgements one by one, each a short program.

KCL and MCL without a noise model (Hsu et al., ICLR 2018 and 2019), MNS with a transition matrix
(multi-class classification from noisy-similarity-labelled data; Wu et al., 2020). A program yields
the runs it wants trained and returns a `FitResult` (`likewise.training.scheduler`), so that one
method on a laptop and a grid of them on a GPU are the same code.
"""

from __future__ import annotations

import copy
from collections.abc import Generator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from likewise.errors import InputError
from likewise.methods.options import FitOptions
from likewise.methods.problem import COVERAGE, Problem, check_judgements
from likewise.methods.result import FitResult, FloatMatrix, MethodProgram, finish
from likewise.metrics import best_matching, confusion
from likewise.nn.model import logits_of
from likewise.nn.networks import temperature_scaled
from likewise.noise.estimation import (
    TEMPERATURES,
    anchor_transition,
    count_transition,
    gram_transition,
    one_hot_evidence,
)
from likewise.training.objectives.pairwise import CompletePairwise, Objective, PairwiseLoss
from likewise.training.objectives.shared_pairs import JUDGEMENTS_PER_STEP, listed_objective
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun


def mcl_method(problem: Problem, options: FitOptions) -> MethodProgram:
    """MCL, the likelihood of each judgement by itself."""
    return pairwise_program(problem, "mcl")


def kcl_method(problem: Problem, options: FitOptions) -> MethodProgram:
    """KCL, a contrast of the two items' class distributions."""
    return pairwise_program(problem, "kcl")


def mns_method(problem: Problem, options: FitOptions) -> MethodProgram:
    """MNS: with T as given, or estimated from a network of stage 1."""
    if options.transition is None or options.given_transition is not None:
        return pairwise_program(problem, "mns", options.given_transition)
    return mns_program(problem, options.anchors)


def pairwise_program(
    problem: Problem,
    kind: str,
    transition: FloatMatrix | None = None,
    balance: float = 0.0,
    start: nn.Module | None = None,
    loss: PairwiseLoss | None = None,
    calibrate: bool = True,
) -> MethodProgram:
    """MCL, KCL, MNS with T given, or a ``loss`` of one's own: one run over independent pairs.

    MNS that goes on from a ``start`` first finds out how sure that must be behind T (`calibrate`).
    """
    recipe = problem.recipe_for(joint=False)
    _, _, train_pairs, held_pairs = problem.parts
    check_judgements(train_pairs, "training")
    check_judgements(held_pairs, "held-out")
    matrix = None if transition is None else torch.as_tensor(transition, dtype=torch.float32)
    if matrix is not None:
        matrix = matrix.to(problem.device)
    loss = loss or PairwiseLoss(
        kind,
        matrix,
        balance=balance or recipe.balance,
        self_pairs=recipe.self_pairs,
        stop_by=recipe.stop_by,
        compile=recipe.compile,
    )
    objective: Objective
    if problem.pairs.is_complete:
        objective = CompletePairwise(loss, train_pairs, held_pairs, problem.device)
    else:
        recipe, asked = _recipe_for_listed(recipe), recipe.batch_size
        objective = listed_objective(
            loss, train_pairs, held_pairs, problem.device, asked, problem.seed
        )
    if start is not None and matrix is not None and calibrate:
        start = calibrate_start(problem, start, objective)
    if start is None and recipe.starts > 1:
        run = yield from _best_start(problem, objective, recipe)
    else:
        run = problem.run(objective, recipe, start)
    for epoch in sorted({round(share * recipe.epochs) for share in recipe.split_merged_at} - {0}):
        run = yield from _until(run, epoch)
        run.split_merged_outputs()
    run.until = None
    run = yield run
    return finish(run, "mns" if matrix is not None else kind, transition)


def _recipe_for_listed(recipe: Recipe) -> Recipe:
    """The recipe for a list of judgements, of which ``batch_size`` are a step."""
    if recipe.mixup:
        raise InputError(
            "mixup mixes items whose perceived classes are known, which a list of judgements does "
            "not tell a pairwise method; leave it out, or take method='joint'."
        )
    return recipe.with_(batch_size=recipe.batch_size or JUDGEMENTS_PER_STEP)


def _best_start(
    problem: Problem, objective: Objective, recipe: Recipe
) -> Generator[TrainingRun, TrainingRun, TrainingRun]:
    """Begin several times; go on with the start that explains held-out judgements best."""
    starts = []
    for start in range(recipe.starts):
        run = problem.run(objective, recipe, problem.model(start))
        run.until = max(1, round(recipe.start_share * recipe.epochs))
        starts.append((yield run))
    return min(starts, key=lambda run: float(run.best.score))


def _until(run: TrainingRun, epoch: int) -> Generator[TrainingRun, TrainingRun, TrainingRun]:
    """Go on until an epoch, unless the run is that far."""
    run.until = epoch
    return run if run.finished else (yield run)


def mns_program(
    problem: Problem, anchors: str | float = "counts", balance: float = 0.0
) -> MethodProgram:
    """The paper's Algorithm 1: stage 1 without T, T estimated from it, stage 2 with T fixed."""
    stage1 = yield from pairwise_program(problem, "mcl", balance=balance)
    return (yield from mns_stage2(problem, stage1, anchors, balance))


def mns_stage2(
    problem: Problem,
    stage1: FitResult,
    anchors: str | float = "counts",
    balance: float = 0.0,
    as_published: bool = False,
) -> MethodProgram:
    """Stage 2 of MNS from a finished stage 1 (the MCL run of the same problem).

    ``as_published``, it goes on from stage 1 whatever that is; else from one that it can use.
    """
    transition = estimate_transition(problem, stage1.model, anchors)
    if as_published:
        start: nn.Module | None = copy.deepcopy(stage1.model).requires_grad_(True)
    else:
        start = starting_point(problem, stage1.model)
    fitted = yield from pairwise_program(
        problem, "mns", transition, balance, start, calibrate=not as_published
    )
    return replace(fitted, history=stage1.history + fitted.history)


def starting_point(problem: Problem, stage1: nn.Module) -> nn.Module | None:
    """Where stage 2 begins: from stage 1 if every class is alive there, or merged outputs can be
    split, else (None) anew.

    T was estimated in stage 1's order of classes, and from a fresh start the pairwise loss often
    merges classes at high noise; but a class that stage 1 has lost would stay lost.
    """
    logits = logits_of(stage1, problem.take(problem.parts[1]), problem.device)
    alive = torch.bincount(logits.argmax(dim=1), minlength=problem.n_classes) > 0
    if not bool(alive.all()) and not problem.recipe_for(joint=False).split_merged_at:
        return None
    return copy.deepcopy(stage1).requires_grad_(True)


def calibrate_start(problem: Problem, start: nn.Module, objective: Objective) -> nn.Module:
    """A model that goes on with a new objective, temperature-scaled to held-out judgements.

    Stage 1 learned f; with T behind it the same model must be surer, and would spend the first
    epochs on nothing else.
    """
    held = problem.take(problem.parts[1])
    logits = logits_of(start, held, problem.device)
    costs = torch.stack([objective.score(logits / temperature) for temperature in TEMPERATURES])
    few = held[:2]
    return temperature_scaled(
        start,
        TEMPERATURES[int(costs.argmin())],
        lambda model: logits_of(model, few, problem.device),
    )


def estimate_transition(
    problem: Problem, stage1: nn.Module, anchors: str | float = "counts"
) -> FloatMatrix:
    """T from a stage-1 model, in that model's class order.

    ``anchors`` is "argmax" (the paper's), a quantile such as 0.97, or "counts": perceived classes
    counted among confident held-out items, where judgements are consistent; where they are not,
    the two rates of "same" within and across predicted classes.
    """
    train, held, _, held_pairs = problem.parts
    if anchors == "argmax" or isinstance(anchors, float):
        logits = logits_of(stage1, problem.take(train), problem.device)
        quantile = anchors if isinstance(anchors, float) else None
        return anchor_transition(logits.softmax(dim=1).cpu().numpy(), quantile)
    if anchors != "counts":
        raise InputError(f"anchors must be 'counts', 'argmax' or a quantile, not {anchors!r}.")
    logits = logits_of(stage1, problem.take(held), problem.device).cpu()
    predicted = logits.argmax(dim=1).numpy()
    ids = problem.components[held]
    if problem.pairs.is_consistent() and (ids >= 0).mean() >= COVERAGE:
        aligned = align(ids, predicted, problem.n_classes)
        known = one_hot_evidence(torch.from_numpy(aligned), problem.n_classes, logits.dtype)
        counted = count_transition(logits, known)
        return counted.double().numpy()
    listed = held_pairs.explicit()
    return gram_transition(
        predicted[listed.left], predicted[listed.right], listed.same, problem.n_classes
    )


def align(
    ids: NDArray[np.integer], predicted: NDArray[np.integer], n_classes: int
) -> NDArray[np.int64]:
    """Component ids renumbered to agree best with predicted classes; -1 stays -1."""
    known = ids >= 0
    counts = confusion(ids[known], predicted[known], n_classes)[:, :n_classes]
    match = best_matching(counts)
    return np.where(known, match[ids], -1).astype(np.int64)
