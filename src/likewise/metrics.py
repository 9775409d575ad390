"""Learned classes have no names: the best one-to-one matching to true ones, naming, accuracy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from likewise.errors import InputError

IntArray = NDArray[np.int64]


def confusion(predicted: ArrayLike, truth: ArrayLike, n_classes: int | None = None) -> IntArray:
    """(P, Q) counts of predicted class (row) against true class (column)."""
    p, t = _labels(predicted, "predicted"), _labels(truth, "truth")
    if len(p) != len(t):
        raise InputError(f"there are {len(p)} predictions but {len(t)} true classes.")
    rows = max(int(p.max(initial=-1)) + 1, n_classes or 0)
    columns = max(int(t.max(initial=-1)) + 1, n_classes or 0)
    return np.bincount(p * columns + t, minlength=rows * columns).reshape(rows, columns)


def best_matching(counts: ArrayLike) -> IntArray:
    """(P,) the true class matched to each learned class, at most one to one; -1 for none.

    ``counts`` (P, Q) is how often each learned class (row) met each true class (column); the
    matching maximises what it agrees on (Hungarian algorithm).
    """
    matrix = np.asarray(counts)
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    match = np.full(matrix.shape[0], -1, np.int64)
    match[rows] = columns
    return match


def matched_accuracy(predicted: ArrayLike, truth: ArrayLike) -> float:
    """Accuracy under the best one-to-one matching of predicted to true classes."""
    # Codes, not the classes themselves: those may be any numbers or names.
    counts = confusion(_codes(predicted, "predicted"), _codes(truth, "truth"))
    if not counts.size:
        raise InputError("accuracy needs at least one item.")
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def names_by_majority(
    predicted: ArrayLike, names: ArrayLike, n_classes: int
) -> tuple[NDArray[Any], IntArray]:
    """Names for learned classes from a few named items.

    Returns the (C,) names and the (C, names) counts behind them. The matching is one to one where
    there are enough names; a learned class that no named item falls into is called "class k".
    """
    distinct, codes = np.unique(np.asarray(names), return_inverse=True)
    if not len(distinct):
        raise InputError("naming classes needs at least one item of known class.")
    counts = confusion(predicted, codes)
    padded = np.zeros((n_classes, len(distinct)), np.int64)
    padded[: len(counts)] = counts
    match = best_matching(padded)
    used = padded[np.arange(n_classes), match.clip(0)] > 0
    chosen = [
        str(distinct[match[k]]) if match[k] >= 0 and used[k] else f"class {k}"
        for k in range(n_classes)
    ]
    if distinct.dtype.kind in "iu" and all(used) and (match >= 0).all():
        return distinct[match], padded
    return np.array(chosen), padded


def transition_error(estimated: ArrayLike, true: ArrayLike) -> float:
    """The paper's error of T, |T - T_hat|_1 / |T|_1 entry by entry."""
    estimate, truth = np.asarray(estimated, float), np.asarray(true, float)
    return float(np.abs(truth - estimate).sum() / np.abs(truth).sum())


def gram_error(estimated: ArrayLike, true: ArrayLike) -> float:
    """The same error of T T', which is all that the pairwise loss sees of T."""
    estimate, truth = np.asarray(estimated, float), np.asarray(true, float)
    return transition_error(estimate @ estimate.T, truth @ truth.T)


def reorder_transition(
    transition: ArrayLike, row_match: ArrayLike, column_match: ArrayLike | None = None
) -> NDArray[np.float64]:
    """T with learned classes put in the order of the true ones they are matched to.

    ``row_match`` (C,) is the true class of each learned class, a permutation; columns (perceived
    classes) follow the rows unless they have a matching of their own.
    """
    matrix = np.asarray(transition, float)
    rows = np.asarray(row_match)
    columns = rows if column_match is None else np.asarray(column_match)
    ordered = np.empty_like(matrix)
    ordered[np.ix_(rows, columns)] = matrix
    return ordered


def _codes(values: ArrayLike, name: str) -> IntArray:
    """Classes of any kind as numbers from 0, in their own order."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be (N,), one class an item, but has shape {array.shape}.")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _labels(values: ArrayLike, name: str) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iub":
        return _codes(array, name)
    if len(array) and array.min() < 0:
        raise InputError(f"{name} must be class numbers from 0, but holds {array.min()}.")
    return array.astype(np.int64)


@dataclass(frozen=True)
class Evaluation:
    """Accuracy under the best matching, and which true class is taken for which.

    ``classes`` are the true classes; ``matched`` the learned class that stands for each ("–" for
    none); ``confusion`` (classes, classes) counts items of a true class (row) predicted to be in
    the learned class matched to another (column). ``named_accuracy`` is the share of items whose
    *name* is right, None where the learned classes have no names among the true ones.
    """

    items: int
    accuracy: float
    named_accuracy: float | None
    classes: list[str]
    matched: list[str]
    recall: list[float]
    confusion: list[list[int]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_predictions(
    posterior: NDArray[Any], learned: NDArray[Any], truth: NDArray[np.str_]
) -> Evaluation:
    """Compare a posterior (n, C) over classes called ``learned`` (C,) with true classes (n,)."""
    if len(truth) == 0:
        raise InputError("there is no item of known class to compare with.")
    predicted = posterior.argmax(axis=1)
    names, y = np.unique(truth, return_inverse=True)
    names, y = _in_number_order(names, y)
    counts = confusion(predicted, y, max(len(learned), len(names)))  # (learned, true), padded
    match = best_matching(counts)
    of_true = np.argsort(match)[: len(names)]  # the learned class of each true one
    table = counts[of_true][:, : len(names)].T  # (true, learned as matched)
    right = np.diagonal(table)
    labels = [str(label) for label in learned]
    return Evaluation(
        items=len(truth),
        accuracy=float(right.sum() / len(truth)),
        named_accuracy=_named_accuracy(labels, predicted, truth),
        classes=names.tolist(),
        matched=[labels[k] if k < len(labels) else "–" for k in of_true],
        recall=(right / counts[:, : len(names)].sum(axis=0)).tolist(),
        confusion=table.tolist(),
    )


def _in_number_order(
    names: NDArray[np.str_], y: NDArray[np.int64]
) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Classes called 2 and 10 in that order, and not as text sorts them."""
    if not all(name.isdecimal() for name in names.tolist()):
        return names, y
    order = np.argsort(names.astype(np.int64))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return names[order], rank[y]


def _named_accuracy(
    labels: list[str], predicted: NDArray[np.int64], truth: NDArray[np.str_]
) -> float | None:
    if labels == [str(k) for k in range(len(labels))] or not set(labels) & set(truth.tolist()):
        return None
    return float((np.array(labels, np.str_)[predicted] == truth).mean())
