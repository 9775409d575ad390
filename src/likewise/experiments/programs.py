"""What is trained for a chain of cells, as a program that `likewise.training.scheduler` can run."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from likewise.experiments.cells import Cell
from likewise.experiments.problem import Problems, Truth
from likewise.experiments.scoring import score
from likewise.experiments.settings import TableSettings
from likewise.io.json import Record
from likewise.methods.joint import joint_program
from likewise.methods.options import FitOptions
from likewise.methods.pairwise import (
    mns_program,
    mns_stage2,
    pairwise_program,
    starting_point,
)
from likewise.methods.problem import Problem
from likewise.methods.registry import METHODS
from likewise.methods.result import FitResult, MethodProgram
from likewise.training.scheduler import Program


@dataclass(frozen=True)
class Outcome:
    """A trained cell: its figures, and all that was learned."""

    cell: Cell  # which one
    result: Record  # its figures
    fitted: FitResult  # what was learned


def chain_program(
    chain: Sequence[Cell],
    problems: Problems,
    settings: TableSettings,
    finished: Callable[[Outcome], None],
    stage_one: dict[str, Tensor] | None = None,
) -> Program[None]:
    """Train the cells of a chain one after the other; ``finished`` is told of each.

    ``stage_one`` are the weights of the MCL cell, where that was trained before.
    """
    problem, truth = problems(chain[0])
    before = None if stage_one is None else _restored(problem, stage_one)
    for cell in chain:
        start = time.perf_counter()
        own = dataclasses.replace(problem, recipe=settings.recipe(cell.method))
        fitted = yield from _program(cell, own, truth, before, settings)
        figures = score(cell, fitted, own, truth)
        figures |= {
            "estimator": _estimator(cell, settings),
            "best_epoch": fitted.best_epoch,
            # Of the last network that saw no held-out item; an error where the recipe stops by it.
            "held_out_cost": fitted.score,
            "epochs": settings.recipe(cell.method).epochs,
            "seconds": round(fitted.seconds_before + time.perf_counter() - start, 2),
        }
        finished(Outcome(cell, figures, fitted))
        if cell.method == "mcl":
            before = fitted


def _program(
    cell: Cell,
    problem: Problem,
    truth: Truth,
    before: FitResult | None,
    settings: TableSettings,
) -> MethodProgram:
    if cell.method == "joint":
        return joint_program(problem)
    if cell.method == "mns_true":
        start = None
        own = settings.as_published or not is_exchangeable(truth.transition)
        if before is not None and not own:
            start = starting_point(problem, before.model)
        return pairwise_program(problem, "mns", truth.transition, start=start)
    if cell.method == "mns_estimated" and before is not None:
        alone = dataclasses.replace(before, history=[])  # stage 1 has a history of its own
        return mns_stage2(problem, alone, settings.estimator, as_published=settings.as_published)
    if cell.method == "mns_estimated":  # where stage 1 is no cell of its own
        return mns_program(problem, settings.estimator)
    return METHODS[cell.method].start(problem, FitOptions())


def is_exchangeable(transition: NDArray[np.float64] | None) -> bool:
    """Whether T is the same in every order of the classes, so that any stage 1 fits it."""
    if transition is None:
        return False
    kept = np.diag(transition)
    moved = transition[~np.eye(len(transition), dtype=bool)]
    return bool(np.ptp(kept) < 1e-9 and np.ptp(moved) < 1e-9)


def _restored(problem: Problem, weights: dict[str, Tensor]) -> FitResult:
    """A stage 1 that was trained before, from its weights."""
    model = problem.model().to(problem.device)
    model.load_state_dict(weights)
    model.eval()
    return FitResult("mcl", model, model, None, [], best_epoch=0, score=0.0)


def _estimator(cell: Cell, settings: TableSettings) -> str | float | None:
    """How the T of a result was come by, in a word."""
    known = {"mns_true": "given", "joint": "likelihood", "mns_estimated": settings.estimator}
    return known.get(cell.method)
