"""From what was asked to what was learned: check the options, take the method, run its program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from likewise._version import __version__
from likewise.errors import InputError
from likewise.io.progress import stage
from likewise.methods.options import FitOptions, check_asked
from likewise.methods.problem import LARGEST_COPY, Problem
from likewise.methods.registry import method_called
from likewise.methods.result import FitResult
from likewise.pairs import Pairs
from likewise.pairs.shards import exchange_of, whole
from likewise.training.checkpoints import Checkpoints, digest_of
from likewise.training.scheduler import run_program

PART = 32 * 2**20  # bytes; of a larger array `digest_of` takes a sample


def number_of_classes(
    n_classes: int | str,
    pairs: Pairs,
    n_items: int,
    items: NDArray[np.generic] | None = None,
    at_least: int = 0,
) -> tuple[int, dict[str, object] | None]:
    """The number of classes, given or read off the judgements, with the evidence for the latter.

    ``items`` help to read it off judgements that contradict each other. ``at_least`` so many are
    known to be there.
    """
    if n_classes == "auto":
        from likewise.inference.selection.n_classes import count_classes

        with stage("counting the classes", 0.2):
            count, evidence = count_classes(whole(pairs), items=items)
        return max(count, at_least), evidence
    if isinstance(n_classes, str) or int(n_classes) != n_classes:
        raise InputError(f"n_classes must be a whole number or 'auto', not {n_classes!r}.")
    if n_classes < 2:
        raise InputError(f"a classifier needs at least two classes, but n_classes is {n_classes}.")
    if n_classes < at_least:
        raise InputError(
            f"{at_least} classes of items are known, but n_classes is {n_classes}; give at least "
            f"{at_least}."
        )
    if n_classes > n_items:
        raise InputError(f"there are more classes ({n_classes}) than items ({n_items}).")
    return int(n_classes), None


def fit(
    problem: Problem,
    method: str,
    options: FitOptions | None = None,
    checkpoints: Checkpoints | None = None,
) -> FitResult:
    """Train by the method asked for; "auto" chooses and says why in ``choice``.

    With ``checkpoints``, a fit of the same problem and options that was cut short goes on.
    """
    options = options or FitOptions()
    chosen = method_called(method)
    check_asked(chosen, options, problem.recipe)
    if checkpoints is not None:
        asked = {"method": method, **options.identity()}
        checkpoints = checkpoints.bound(checkpoints.identity | identity(problem) | asked)
        options = replace(options, checkpoints=checkpoints)
    if "noise" not in chosen.honours:  # a pairwise loss draws its batches from all judgements
        problem = replace(problem, pairs=whole(problem.pairs))
    fitted = run_program(chosen.start(problem, options), checkpoints=checkpoints)
    return replace(fitted, choice=fitted.choice or f"{fitted.method}: as asked")


def identity(problem: Problem) -> dict[str, object]:
    """What decides the result of a fit, beside the method: for checkpoints to be recognised by."""
    pairs = problem.pairs
    columns: tuple[NDArray[np.generic] | None, ...] = (
        (pairs.components(),) if pairs.is_complete else tuple(pairs.columns().values())
    )
    return {
        "likewise": __version__,  # another version may train otherwise, and so may another torch
        "torch": torch.__version__,
        "items' digest": _digest_of_items(problem.items),
        "judgements' digest": _digest_of_all(pairs, digest_of(*columns)),
        "n_classes": problem.n_classes,
        "network": problem.network_name or type(problem.network).__name__,
        "held_out": problem.held_out,
        "seed": problem.seed,
    }


def _digest_of_all(pairs: Pairs, own: str) -> str:
    """Of the judgements that all processes have between them: all ask for one checkpoint."""
    exchange = exchange_of(pairs)
    if exchange.world == 1:
        return own
    return digest_of(exchange.gather_rows(np.frombuffer(own.encode(), np.uint8)[None]))


def _digest_of_items(items: NDArray[np.generic]) -> str:
    """Of every number, part by part; of a memory map larger than memory, of a sample."""
    if isinstance(items, np.memmap) and items.nbytes > LARGEST_COPY:
        return digest_of(items)
    rows = max(1, PART * len(items) // max(items.nbytes, 1))
    return digest_of(*(items[start : start + rows] for start in range(0, len(items), rows)))
