"""What predictions are worth, where true classes are known."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.matching import best_matching, confusion


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
