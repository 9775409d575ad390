"""Which method fits these judgements, said in one line; and what to warn of afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
) -> Fitted:
    """Train by the method asked for; "auto" chooses and says why in ``choice``."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not {method!r}.")
    if isinstance(transition, str) and transition != "estimate":
        raise InputError(f"transition must be 'estimate', a matrix or None, not {transition!r}.")
    given = transition if isinstance(transition, np.ndarray) else None
    if method in ("mcl", "kcl"):
        return _done(problem, pairwise_program(problem, method), "as asked", progress)
    if method == "mns":
        program = (
            mns_program(problem, anchors)
            if transition is not None and given is None
            else pairwise_program(problem, "mns", given)
        )
        return _done(problem, program, "as asked", progress)
    exact, why = is_exact(problem)
    if exact and noise in ("auto", "class"):
        matrix = np.eye(problem.n_classes) if transition is None else given
        return _done(problem, joint_program(problem, matrix), why, progress)
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

    return fit_joint(problem, transition, noise)  # type: ignore[no-any-return]


def _done(problem: Problem, program: MethodProgram, why: str, progress: Report | None) -> Fitted:
    fitted = run_one(program, progress)
    return replace(fitted, choice=f"{fitted.method}: {why}")


def warnings_about(fitted: Fitted, logits: NDArray[Any], pairs: Pairs) -> list[str]:
    """What a person should know before trusting the result, in words."""
    found = []
    used = np.unique(logits.argmax(axis=1))
    n_classes = logits.shape[1]
    if len(used) < n_classes:
        found.append(
            f"{n_classes - len(used)} of {n_classes} classes are never predicted for the items "
            "they were learned from; fewer classes, more judgements or method='joint' may help."
        )
    if fitted.best_epoch == 0 and len(fitted.history) > 5:
        found.append("the held-out judgements were never explained better than after one epoch.")
    return found


__all__ = ["BALANCE", "METHODS", "fit", "number_of_classes", "warnings_about"]
