"""Which method fits these judgements, said in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.methods.joint import joint_program
from likewise.methods.pairwise import BALANCE, mns_program, pairwise_program
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, MethodProgram
from likewise.pairs import Pairs
from likewise.training.checkpoints import Checkpoints, digest_of
from likewise.training.progress import Report
from likewise.training.scheduler import run_program

METHODS = ("auto", "joint", "mns", "mcl", "kcl")
NOISES = ("auto", "class", "judgement", "both", "annotator", "confusion")
FloatMatrix = NDArray[np.float64]
FloatVector = NDArray[np.float64]
COMPARED_EPOCHS = 40  # a pairwise method is at its best by then, or never
COMPARED_JUDGEMENTS = 4_000_000  # that a pairwise method may look at to be compared
FEWEST_TO_COMPARE = 50  # held-out judgements, below which they cannot tell two methods apart


def number_of_classes(
    n_classes: int | str, pairs: Pairs, n_items: int, items: NDArray[Any] | None = None
) -> tuple[int, dict[str, Any] | None]:
    """The number of classes, given or read off the judgements, with the evidence for the latter.

    ``items`` help to read it off judgements that contradict each other.
    """
    if n_classes == "auto":
        from likewise.inference.n_classes import count_classes

        count, evidence = count_classes(pairs, items=items)
        return count, evidence
    if isinstance(n_classes, str) or int(n_classes) != n_classes:
        raise InputError(f"n_classes must be a whole number or 'auto', not {n_classes!r}.")
    if n_classes < 2:
        raise InputError(f"a classifier needs at least two classes, but n_classes is {n_classes}.")
    if n_classes > n_items:
        raise InputError(f"there are more classes ({n_classes}) than items ({n_items}).")
    return int(n_classes), None


def fit(
    problem: Problem,
    method: str,
    transition: FloatMatrix | str | None,
    noise: str,
    anchors: str | float,
    progress: Report | None = None,
    checkpoints: Checkpoints | None = None,
) -> FitResult:
    """Train by the method asked for; "auto" chooses and says why in ``choice``.

    With ``checkpoints``, a fit of the same problem and options that was cut short goes on.
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not {method!r}.")
    if noise not in NOISES:
        raise InputError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}.")
    if isinstance(transition, str) and transition != "estimate":
        raise InputError(f"transition must be 'estimate', a matrix or None, not {transition!r}.")
    given = transition if isinstance(transition, np.ndarray) else None
    if checkpoints is not None:
        options: dict[str, Any] = {"method": method, "noise": noise, "anchors": anchors}
        options["transition"] = transition if given is None else given.tolist()
        checkpoints = checkpoints.bound(identity(problem) | options)
    if method in ("mcl", "kcl"):
        return _done(problem, pairwise_program(problem, method), "as asked", progress, checkpoints)
    if method == "mns":
        program = (
            mns_program(problem, anchors)
            if transition is not None and given is None
            else pairwise_program(problem, "mns", given)
        )
        return _done(problem, program, "as asked", progress, checkpoints)
    program = joint_program(problem, transition, noise, checkpoints)
    return run_program(program, progress, checkpoints)


def _done(
    problem: Problem,
    program: MethodProgram,
    why: str,
    progress: Report | None,
    checkpoints: Checkpoints | None,
) -> FitResult:
    fitted = run_program(program, progress, checkpoints)
    return replace(fitted, choice=f"{fitted.method}: {why}")


def identity(problem: Problem) -> dict[str, Any]:
    """What decides the result of a fit, beside the method: for checkpoints to be recognised by."""
    pairs = problem.pairs
    columns: tuple[NDArray[Any] | None, ...] = (
        (pairs.components(),)
        if pairs.is_complete
        else tuple(pairs.columns().values())
    )
    return {
        "items' digest": digest_of(problem.items),
        "judgements' digest": digest_of(*columns),
        "n_classes": problem.n_classes,
        "network": problem.network_name or type(problem.network).__name__,
        "held_out": problem.held_out,
        "seed": problem.seed,
    }


__all__ = ["BALANCE", "METHODS", "fit", "identity", "number_of_classes"]
