"""Students: fresh networks that learn the posterior which others have found, in generations.

Self-distillation as in born-again networks (Furlanello et al., ICML 2018), where the teachers'
posterior of an item takes in what people said of it: P(y | x, evidence).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from likewise.io.json import Record
from likewise.io.progress import announce
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, Row
from likewise.methods.teachers import (
    CrossFit,
    Index,
    at_temperature,
    calibrated,
    network_run,
    student_epochs,
)
from likewise.nn.model import logits_of
from likewise.noise.estimation import TINY, class_posterior
from likewise.training.objectives.forward_corrected import Distillation
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

POOLING = 100  # iterations of EM for a handful of weights


def generations(
    problem: Problem, evidence: Tensor, found: CrossFit, transition: Tensor
) -> Generator[TrainingRun, TrainingRun, FitResult]:
    """Students one after the other, each taught by all networks before it (`pooled`).

    The last of several learns from the held-out items too: nothing is left to choose by them.
    """
    g, rows = [found.log_g.exp()], list[Row]()
    before: FitResult | None = None
    for number, changes in enumerate(found.recipe.students, start=1):
        pool = pooled(torch.stack(g), transition, evidence, problem.parts[1])
        posterior = class_posterior(pool.clamp_min(TINY).log(), transition, evidence)
        recipe, start = _student_recipe(found.recipe, changes), (2 + number) * found.recipe.teachers
        left = student_epochs(found.recipe, number - 1)
        announce(f"student {number} of {len(found.recipe.students)}", recipe.epochs / left)
        if number == len(found.recipe.students):
            break
        before = yield from distil(problem, evidence, posterior, transition, recipe, start)
        rows += [row | {"method": f"student {number}"} for row in before.history]
        everything = problem.take(np.arange(len(problem.items)))
        logits = logits_of(before.model, everything, problem.device).cpu()
        g.append(logits.float().softmax(dim=1))
    last = yield from distil(problem, evidence, posterior, transition, recipe, start, before)
    return replace(last, history=rows + last.history)


def pooled(g: Tensor, transition: Tensor, evidence: Tensor, held: Index) -> Tensor:
    """(N, C) linear pool of K networks' posteriors ``g`` (K, N, C) of the class.

    Each has the weight that explains best what was judged of the ``held`` items, which none of
    them was trained on (stacking, Wolpert 1992; the weights by EM).
    """
    given_class = evidence[held] @ transition.T  # (H, C) likelihood of what was judged
    explained = (g[:, held] * given_class).sum(dim=2).clamp_min(TINY)  # (K, H)
    weight = torch.full((len(g), 1), 1 / len(g))
    for _ in range(POOLING):
        share = weight * explained
        weight = (share / share.sum(dim=0)).mean(dim=1, keepdim=True)
    return (weight[:, :, None] * g).sum(dim=0)


def distil(
    problem: Problem,
    evidence: Tensor,
    posterior: Tensor,
    transition: Tensor,
    recipe: Recipe,
    start: int,
    before: FitResult | None = None,
) -> Generator[TrainingRun, TrainingRun, FitResult]:
    """A fresh network that learns the ``posterior`` (N, C) which others have found.

    After one of its kind, ``before``, it learns from all items, and takes over what only held-out
    items tell: its score, how sure to be, and that the end of the recipe is the time to stop.
    """
    train, held, _, _ = problem.parts
    if before is not None:
        train = np.arange(len(problem.items))
    own = posterior[train], evidence[train], evidence[held]
    objective = Distillation(*own, problem.device, transition)
    run = yield network_run(problem, objective, recipe, train, held, start)
    student = calibrated(problem, run, evidence, held)
    if before is not None:
        student = replace(
            student,
            model=student.last_model,
            best_epoch=recipe.epochs - 1,
            score=before.score,
        )
        student = at_temperature(problem, student, before.calibration_temperature or 1.0)
    return replace(student, posterior=posterior.numpy())


def _student_recipe(recipe: Recipe, changes: Record) -> Recipe:
    """A student has teachers of its own: it needs no other, and its noise is known."""
    alone = recipe.with_(mean_teacher_from=None, high_noise=None, teachers=0, students=({},))
    return alone.with_(**changes)
