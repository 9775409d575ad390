"""Teachers: networks trained on the evidence, each on all items but its fold (cross-fitting).

Every item is predicted by a network that never saw its judgements, and T is estimated from those
predictions of all items.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.io.progress import announce
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, finish
from likewise.nn.model import logits_of
from likewise.nn.networks import temperature_scaled
from likewise.noise.estimation import held_out_transition, suited_temperature
from likewise.training.objectives.forward_corrected import ForwardCorrected
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

Index = NDArray[np.integer]

SCORED = 2500  # items of a fold that choose the epoch: more would cost as much as the training


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


def cross_fit(
    problem: Problem, evidence: Tensor, recipe: Recipe, fixed: Tensor | None
) -> Generator[TrainingRun, TrainingRun, CrossFit]:
    """Teachers, each on all items but its fold; what they say of the folds; T from all of it.

    With a ``fixed`` T (C, C) they are trained through it, else through what each finds on its fold.
    """

    again = 0 if fixed is None else recipe.teachers  # other starts than the first time
    folds = fold_of_items(problem, recipe.teachers)
    log_g = torch.empty_like(evidence)
    networks: list[FitResult] = []
    for fold in range(recipe.teachers):
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        scored = held[:: max(1, len(held) // SCORED)]
        objective = ForwardCorrected(evidence[train], evidence[scored], problem.device, fixed)
        words, left = f"teacher {fold + 1} of {recipe.teachers}", recipe.teachers - fold
        announce(words, recipe.epochs / (left * recipe.epochs + student_epochs(recipe)))
        run = yield network_run(problem, objective, recipe, train, scored, start=again + fold)
        networks.append(calibrated(problem, run, evidence, held))
        logits = logits_of(networks[-1].model, problem.take(held), problem.device).cpu()
        log_g[held] = logits.float().log_softmax(dim=1)
    there = log_g.to(problem.device), evidence.to(problem.device)
    transition, temperature = (found.cpu() for found in held_out_transition(*there))
    return CrossFit((log_g / temperature).log_softmax(dim=1), transition, networks, run.recipe)


def student_epochs(recipe: Recipe, after: int = 0) -> int:
    """How many epochs the students after the first few are trained for, all together."""
    return sum(int(str(c.get("epochs", recipe.epochs))) for c in recipe.students[after:])


def fold_of_items(problem: Problem, folds: int) -> Index:
    """(N,) fold of each item, as even as can be."""
    order = np.random.default_rng([problem.seed, 2]).permutation(len(problem.items))
    return order % folds


def network_run(
    problem: Problem,
    objective: ForwardCorrected,
    recipe: Recipe,
    train: Index,
    held: Index,
    start: int,
) -> TrainingRun:
    """A fresh network on some items, held to others."""
    model = problem.model(start)
    model.flip_tta = recipe.flip and problem.items.ndim > 2
    return problem.run(objective, recipe, model, start, split=(train, held))


def calibrated(problem: Problem, run: TrainingRun, evidence: Tensor, held: Index) -> FitResult:
    """A run's outcome, its confidence mended on the held-out items: mixing items leaves a network
    too unsure."""
    transition = run.best.estimates["transition"]
    fitted = finish(run, "joint", transition.cpu().double().numpy())
    logits = logits_of(fitted.model, problem.take(held), problem.device)
    temperature = suited_temperature(logits, transition, evidence[held].to(logits.device))
    return at_temperature(problem, fitted, float(temperature))


def at_temperature(problem: Problem, fitted: FitResult, temperature: float) -> FitResult:
    """The outcome with its logits divided by a temperature (temperature scaling)."""
    few = problem.take(problem.parts[1][:2])
    scaled = temperature_scaled(
        fitted.model, temperature, lambda model: logits_of(model, few, problem.device)
    )
    return replace(fitted, model=scaled, calibration_temperature=temperature)
