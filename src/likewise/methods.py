"""Which method fits these judgements, said in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.checkpoints import Checkpoints, digest_of
from likewise.errors import InputError
from likewise.fitting import (
    BALANCE,
    Fitted,
    MethodProgram,
    Problem,
    is_exact,
    joint_program,
    mns_program,
    pairwise_program,
)
from likewise.lanes import run_one
from likewise.pairs import Pairs
from likewise.progress import Report

METHODS = ("auto", "joint", "mns", "mcl", "kcl")
NOISES = ("auto", "class", "judgement", "both", "annotator", "confusion")
FloatMatrix = NDArray[np.float64]


def number_of_classes(
    n_classes: int | str, pairs: Pairs, n_items: int
) -> tuple[int, dict[str, Any] | None]:
    """The number of classes, given or read off the judgements, with the evidence for the latter."""
    if n_classes == "auto":
        from likewise.class_count import count_classes

        count, evidence = count_classes(pairs)
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
) -> Fitted:
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
    exact, why = is_exact(problem)
    if exact and noise in ("auto", "class"):
        matrix = np.eye(problem.n_classes) if transition is None else given
        return _done(problem, joint_program(problem, matrix), why, progress, checkpoints)
    if method == "joint":
        return _noisy_joint(problem, transition, noise)
    return _better_of(problem, transition, noise, anchors, why, progress)


def _better_of(
    problem: Problem,
    transition: FloatMatrix | str | None,
    noise: str,
    anchors: str | float,
    why: str,
    progress: Report | None,
) -> Fitted:
    """The noisy joint objective, unless a pairwise method explains held-out judgements better."""
    joint = _noisy_joint(problem, transition, noise)
    return replace(joint, choice=f"joint: {why}; {joint.choice}")


def _noisy_joint(problem: Problem, transition: FloatMatrix | str | None, noise: str) -> Fitted:
    from likewise.em import fit_joint

    return fit_joint(problem, transition, noise)


def _done(
    problem: Problem,
    program: MethodProgram,
    why: str,
    progress: Report | None,
    checkpoints: Checkpoints | None,
) -> Fitted:
    fitted = run_one(program, progress, checkpoints)
    return replace(fitted, choice=f"{fitted.method}: {why}")


def identity(problem: Problem) -> dict[str, Any]:
    """What decides the result of a fit, beside the method: for checkpoints to be recognised by."""
    pairs = problem.pairs
    columns: tuple[NDArray[Any] | None, ...] = (
        (pairs.components(),)
        if pairs.is_complete
        else (pairs.left, pairs.right, pairs.same, pairs.annotator, pairs.weight)
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
