"""Which method fits these judgements, said in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from likewise.errors import InputError
from likewise.methods.exact_joint import joint_program
from likewise.methods.pairwise import BALANCE, mns_program, pairwise_program
from likewise.methods.problem import Problem, is_exact
from likewise.methods.result import FitResult, MethodProgram
from likewise.nn.model import logits_of
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
    exact, why = is_exact(problem)
    if exact and noise in ("auto", "class"):
        matrix = np.eye(problem.n_classes) if transition is None else given
        return _done(problem, joint_program(problem, matrix), why, progress, checkpoints)
    if method == "joint":
        return _noisy_joint(problem, transition, noise, checkpoints)
    return _better_of(problem, transition, noise, anchors, why, progress, checkpoints)


def _better_of(
    problem: Problem,
    transition: FloatMatrix | str | None,
    noise: str,
    anchors: str | float,
    why: str,
    progress: Report | None,
    checkpoints: Checkpoints | None,
) -> FitResult:
    """The noisy joint objective, unless a pairwise method explains held-out judgements better.

    The joint one has seen those judgements, the pairwise one has not: it must be beaten clearly,
    by more than two standard errors, and then something has gone wrong with it.
    """
    joint = _noisy_joint(problem, transition, noise, checkpoints)
    choice = f"joint: {why}; {joint.choice}"
    held_pairs = problem.parts[3]
    if len(held_pairs) < FEWEST_TO_COMPARE or held_pairs.n_same in (0, len(held_pairs)):
        return replace(joint, choice=choice)
    recipe = problem.recipe_for(joint=False)
    enough = min(COMPARED_EPOCHS, max(5, COMPARED_JUDGEMENTS // len(problem.pairs)))
    epochs = min(recipe.epochs, enough)
    brief = replace(problem, recipe=recipe.with_(epochs=epochs))
    pairwise = run_program(mns_program(brief, anchors, BALANCE), progress, checkpoints)
    gain = held_out_costs(problem, joint.model) - held_out_costs(problem, pairwise.model)
    error = gain.std() / np.sqrt(len(gain))
    if gain.mean() <= 2 * error:
        return replace(joint, choice=choice)
    told = f"costs {gain.mean():.3f} less a held-out judgement than the joint objective"
    return replace(pairwise, choice=f"{pairwise.method}: {why}, and it {told}")


def held_out_costs(problem: Problem, model: nn.Module, iterations: int = 50) -> FloatVector:
    """(m,) negative log-likelihood of each held-out judgement by a model's classes.

    Through the two rates of "same" that suit the model best, so that methods with different noise
    models can be compared.
    """
    _, held, _, held_pairs = problem.parts
    listed = held_pairs.explicit()
    p = logits_of(model, problem.take(held), problem.device).softmax(dim=1).cpu().double().numpy()
    equal = np.einsum("mc,mc->m", p[listed.left], p[listed.right]).clip(1e-6, 1 - 1e-6)
    rates = np.array([0.9, 0.1])  # P("same" | equal), P("same" | different)
    for _ in range(iterations):
        likelihood = np.where(listed.same[:, None], rates, 1 - rates)
        share = likelihood * np.column_stack([equal, 1 - equal])
        share /= share.sum(axis=1, keepdims=True)
        rates = (share[listed.same].sum(axis=0) + 1) / (share.sum(axis=0) + 2)
    same = rates[0] * equal + rates[1] * (1 - equal)
    return np.asarray(-np.log(np.where(listed.same, same, 1 - same)))


def _noisy_joint(
    problem: Problem,
    transition: FloatMatrix | str | None,
    noise: str,
    checkpoints: Checkpoints | None,
) -> FitResult:
    from likewise.methods.noisy_joint import fit_joint

    return fit_joint(problem, transition, noise, checkpoints)


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
