"""The joint objective where judgements are consistent: one network, or one after others.

Perceived classes are then known, as the components of the "same" graph, and a network is fitted to
them through T. With *teachers* that is only the beginning: a fresh network is fitted to the
posterior P(y | x, z) which they have found, as EM would. It learns what z says given the item,
where a network that is trained on z long enough learns z itself (docs/measured.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from likewise.errors import InputError
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, FloatMatrix, MethodProgram, finish
from likewise.nn.model import logits_of
from likewise.nn.networks import temperature_scaled
from likewise.training.objectives.forward_corrected import (
    Distillation,
    ForwardCorrected,
    class_posterior,
    forward_costs,
)
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun


def joint_program(problem: Problem, transition: FloatMatrix | None = None) -> MethodProgram:
    """The joint objective where judgements are consistent: perceived classes are components.

    With teachers in the recipe, a last network learns what those have found out together.
    """
    ids = problem.components
    if len(np.unique(ids[ids >= 0])) < 2:
        raise InputError(
            "the judgements form fewer than two groups of items judged the same, so that there "
            "is nothing to tell apart; more judgements are needed."
        )
    train, held, _, _ = problem.parts
    matrix = None if transition is None else torch.as_tensor(transition, dtype=torch.float32)
    recipe = problem.recipe_for(joint=True)
    trained: list[FitResult] = []
    wanted = 1
    while len(trained) < wanted:
        objective = ForwardCorrected(
            ids[train], ids[held], problem.n_classes, problem.device, matrix
        )
        run = yield _joint_run(problem, objective, recipe, start=len(trained))
        trained.append(_calibrated(problem, run))
        wanted = run.recipe.teachers  # may have been changed, once the noise was known
    if wanted:
        posterior = shared_posterior(problem, trained)
        distillation = Distillation(ids[train], ids[held], posterior, problem.device, matrix)
        alone = run.recipe.with_(mean_teacher_from=None, high_noise=None, teachers=0)
        run = yield _joint_run(problem, distillation, alone, start=len(trained))
        trained.append(_calibrated(problem, run))
    return _kept(problem, trained)


def _joint_run(
    problem: Problem, objective: ForwardCorrected, recipe: Recipe, start: int
) -> TrainingRun:
    model = problem.model(start)
    model.flip_tta = recipe.flip and problem.items.ndim > 2
    return problem.run(objective, recipe, model, start)


def _calibrated(problem: Problem, run: TrainingRun) -> FitResult:
    """A joint run's outcome. Its T was estimated together with a temperature, which the model
    takes over: mixing items leaves a network too unsure."""
    learned = run.best.estimates["transition"].cpu().double().numpy()
    fitted = finish(run, "joint", learned)
    few = problem.take(problem.parts[1][:2])
    calibrated = temperature_scaled(
        fitted.model,
        float(run.best.estimates["temperature"]),
        lambda model: logits_of(model, few, problem.device),
    )
    return replace(fitted, model=calibrated)


def shared_posterior(problem: Problem, teachers: list[FitResult]) -> torch.Tensor:
    """(n, C) P(y | x, z) of the training items, of what several networks believe on average.

    Each of them has numbered the classes as their perceived classes are, so that they agree on
    those.
    """
    train, _, _, _ = problem.parts
    items, ids = problem.take(train), torch.from_numpy(problem.components[train]).long()
    beliefs = [logits_of(f.model, items, problem.device).softmax(dim=1) for f in teachers]
    matrices = [torch.as_tensor(f.transition, dtype=torch.float32) for f in teachers]
    log_belief = torch.stack(beliefs).mean(dim=0).cpu().log()
    return class_posterior(log_belief, torch.stack(matrices).mean(dim=0), ids)


def _kept(problem: Problem, trained: list[FitResult]) -> FitResult:
    """The last network, which learned from the others, unless held-out judgements speak against it:
    by more than their standard error, another explains them better. The history is that of all,
    with its own at the end.
    """
    if len(trained) == 1:
        return trained[0]
    costs = [costs_of(problem, fitted) for fitted in trained]
    best = min(range(len(trained)), key=lambda k: float(costs[k].mean()))
    worse = costs[-1] - costs[best]
    refuted = float(worse.mean()) > float(worse.std()) / len(worse) ** 0.5
    kept = trained[best if refuted else -1]
    names = [*(f"teacher {number}" for number in range(1, len(trained))), "taught"]
    rows = [
        row | {"method": name}
        for name, other in zip(names, trained, strict=True)
        if other is not kept
        for row in other.history
    ]
    return replace(kept, history=rows + kept.history)


def costs_of(problem: Problem, fitted: FitResult) -> torch.Tensor:
    """-log P(z) of each held-out item whose perceived class is known."""
    held = problem.parts[1]
    ids = torch.from_numpy(problem.components[held]).long()
    transition = torch.as_tensor(fitted.transition, dtype=torch.float32)
    logits = logits_of(fitted.model, problem.take(held), problem.device).cpu()
    return forward_costs(logits, transition, ids)[ids >= 0]
