"""A refit that keeps the classes of the run before: their numbers and their names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from likewise.classifier import SimilarityClassifier, load
from likewise.errors import InputError
from likewise.io.npy import Array
from likewise.items.files import ItemFile
from likewise.methods.reorder import reordered
from likewise.runs.run import Run


@dataclass(frozen=True)
class Likeness:
    """How far a run agrees with the run before, once its classes are numbered like that one's."""

    run: str
    """The folder of the run before."""
    shared: int
    """Items that both know."""
    kept: float
    """Share of those that are of the same class in both."""


def keep_classes(classifier: SimilarityClassifier, data: ItemFile, before: Path) -> Likeness:
    """Renumber and name the classes of a fitted classifier like those of the run ``before``.

    Classes are matched by the posteriors of the items that both know (the best matching: a linear
    assignment); items are known by their ids, or by their positions where they have none.
    """
    run = Run.open(before)
    old_names = load(run.model).classes_
    new = np.asarray(classifier.predict_proba(data.items), np.float64)
    mine, theirs = _shared(data.names, run.ids)
    if not len(mine):
        raise InputError(
            f"{before} knows none of these items, so that its classes cannot be kept; leave "
            "--like out, or give the run that was fitted to them."
        )
    old = np.asarray(run.posterior, np.float64)[theirs]
    order, names = _arranged(old.T @ new[mine], old_names)
    classifier.result_ = reordered(classifier.result_, order)
    classifier.classes_ = names
    said, says = old_names[old.argmax(1)], names[new[mine][:, order].argmax(1)]
    same = said.astype(np.str_) == says.astype(np.str_)
    return Likeness(str(before), len(mine), float(same.mean()))


def _shared(
    names: NDArray[np.str_], others: NDArray[np.str_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the names that both have, here and there."""
    _, here, there = np.intersect1d(names, others, return_indices=True)
    return here, there


def _arranged(overlap: NDArray[np.float64], old_names: Array) -> tuple[NDArray[np.int64], Array]:
    """The new classes in the order of the old ones they match, those without a match last; and
    the names of all. ``overlap`` (C_old, C_new) is how much of a class of one is of the other."""
    rows, columns = linear_sum_assignment(-overlap)  # rows come in order
    rest = np.setdiff1d(np.arange(overlap.shape[1]), columns)
    order = np.concatenate([columns, rest]).astype(np.int64)
    kept = old_names[rows]
    if not len(rest):
        return order, kept
    if old_names.dtype.kind in "iu":
        first = int(old_names.max()) + 1
        return order, np.concatenate([kept, np.arange(first, first + len(rest))])
    taken = {str(name) for name in kept}
    free = (f"class {k}" for k in range(len(order) + len(taken)) if f"class {k}" not in taken)
    return order, np.array([*map(str, kept), *(next(free) for _ in rest)])
