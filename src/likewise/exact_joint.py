"""The joint objective where judgements are consistent: one network, or one after others.

Perceived classes are then known, as the components of the "same" graph, and a network is fitted to
them through T. With *forerunners* that is only the beginning: a fresh network is fitted to the
posterior P(y | x, z) which they have found, as EM would. It learns what z says given the item,
where a network that is trained on z long enough learns z itself (docs/measured.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from likewise.errors import InputError
from likewise.fitted import Fitted, FloatMatrix, MethodProgram, finish
from likewise.model import logits_of
from likewise.networks import at_temperature
from likewise.perceived_classes import (
    PerceivedClasses,
    TaughtClasses,
    class_posterior,
    perceived_costs,
)
from likewise.problem import Problem
from likewise.recipes import Recipe
from likewise.training import TrainingRun


def joint_program(problem: Problem, transition: FloatMatrix | None = None) -> MethodProgram:
    """The joint objective where judgements are consistent: perceived classes are components.

    With forerunners in the recipe, a last network learns what those have found out together.
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
    trained: list[Fitted] = []
    wanted = 1
    while len(trained) < wanted:
        objective = PerceivedClasses(
            ids[train], ids[held], problem.n_classes, problem.device, matrix
        )
        run = yield _joint_run(problem, objective, recipe, start=len(trained))
        trained.append(_as_sure_as_found(problem, run))
        wanted = run.recipe.forerunners  # may have been changed, once the noise was known
    if wanted:
        posterior = shared_posterior(problem, trained)
        taught = TaughtClasses(ids[train], ids[held], posterior, problem.device, matrix)
        alone = run.recipe.with_(teacher_from=None, high_noise=None, forerunners=0)
        run = yield _joint_run(problem, taught, alone, start=len(trained))
        trained.append(_as_sure_as_found(problem, run))
    return _kept(problem, trained)


def _joint_run(
    problem: Problem, objective: PerceivedClasses, recipe: Recipe, start: int
) -> TrainingRun:
    model = problem.model(start)
    model.mirror = recipe.flip and problem.items.ndim > 2
    return problem.run(objective, recipe, model, start)


def _as_sure_as_found(problem: Problem, run: TrainingRun) -> Fitted:
    """A joint run's outcome. Its T was estimated together with a temperature, which the model
    takes over: mixing items leaves a network too unsure."""
    learned = run.best_objective["transition"].cpu().double().numpy()
    fitted = finish(run, "joint", learned)
    few = problem.take(problem.parts[1][:2])
    calibrated = at_temperature(
        fitted.model,
        float(run.best_objective["temperature"]),
        lambda model: logits_of(model, few, problem.device),
    )
    return replace(fitted, model=calibrated)


def shared_posterior(problem: Problem, forerunners: list[Fitted]) -> torch.Tensor:
    """(n, C) P(y | x, z) of the training items, of what several networks believe on average.

    Each of them has numbered the classes as their perceived classes are, so that they agree on
    those.
    """
    train, _, _, _ = problem.parts
    items, ids = problem.take(train), torch.from_numpy(problem.components[train]).long()
    beliefs = [logits_of(f.model, items, problem.device).softmax(dim=1) for f in forerunners]
    matrices = [torch.as_tensor(f.transition, dtype=torch.float32) for f in forerunners]
    log_belief = torch.stack(beliefs).mean(dim=0).cpu().log()
    return class_posterior(log_belief, torch.stack(matrices).mean(dim=0), ids)


def _kept(problem: Problem, trained: list[Fitted]) -> Fitted:
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
    names = [*(f"forerunner {number}" for number in range(1, len(trained))), "taught"]
    rows = [
        row | {"method": name}
        for name, other in zip(names, trained, strict=True)
        if other is not kept
        for row in other.history
    ]
    return replace(kept, history=rows + kept.history)


def costs_of(problem: Problem, fitted: Fitted) -> torch.Tensor:
    """-log P(z) of each held-out item whose perceived class is known."""
    held = problem.parts[1]
    ids = torch.from_numpy(problem.components[held]).long()
    transition = torch.as_tensor(fitted.transition, dtype=torch.float32)
    logits = logits_of(fitted.model, problem.take(held), problem.device).cpu()
    return perceived_costs(logits, transition, ids)[ids >= 0]
