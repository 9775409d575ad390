"""Figures of a trained cell. The only place in the experiments that looks at true classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.experiments.cells import Cell
from likewise.experiments.problem import Truth
from likewise.io.json import Record
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult
from likewise.metrics import (
    best_matching,
    confusion,
    gram_error,
    matched_accuracy,
    reorder_transition,
    transition_error,
)
from likewise.nn.model import logits_of

Figures = Record


def score(cell: Cell, fitted: FitResult, problem: Problem, truth: Truth) -> Figures:
    """Test accuracy of the chosen and the last epoch, classes used, and the errors of T."""
    logits = logits_of(fitted.model, truth.test_items, problem.device)
    predicted = logits.argmax(dim=1).cpu().numpy()
    last = logits_of(fitted.last_model, truth.test_items, problem.device).argmax(dim=1)
    figures: Figures = {
        "accuracy": matched_accuracy(predicted, truth.test_classes),
        "last_accuracy": matched_accuracy(last.cpu().numpy(), truth.test_classes),
        "classes_used": len(np.unique(predicted)),
        "n_classes": problem.n_classes,
        "transition_error": None,
        "gram_error": None,
    }
    if fitted.transition is not None:
        f = logits.softmax(dim=1).double().cpu().numpy() @ fitted.transition
        figures["similarity"] = similarity_examples(f, predicted)
    if fitted.transition is not None and cell.method != "mns_true":
        match = best_matching(confusion(predicted, truth.test_classes, problem.n_classes))
        columns = truth.class_of_id if cell.method == "joint" else None
        ordered = reorder_transition(fitted.transition, match, columns)
        figures |= _transition_figures(ordered, truth.transition)
        if fitted.marginal_transition is not None and truth.transition is not None:
            marginal = reorder_transition(fitted.marginal_transition, match, columns)
            figures["marginal_error"] = transition_error(marginal, truth.transition)
    return figures


def _transition_figures(
    estimated: NDArray[np.float64], true: NDArray[np.float64] | None
) -> Figures:
    """T with its classes in the order of the true ones, and its errors where T is known."""
    figures: Figures = {"transition": np.round(estimated, 6).tolist()}
    if true is not None:
        figures["true_transition"] = np.round(true, 6).tolist()
        figures["transition_error"] = transition_error(estimated, true)
        figures["gram_error"] = gram_error(estimated, true)
    return figures


def similarity_examples(f: NDArray[np.float64], predicted: NDArray[np.int64]) -> Figures:
    """f of a pair that is predicted similar and of one that is not (the paper's Figure 3).

    The first item and the next one of its own, and of another, predicted class.
    """
    others = np.arange(1, len(predicted))
    same = others[predicted[1:] == predicted[0]]
    different = others[predicted[1:] != predicted[0]]
    examples = {}
    for name, found in (("similar", same), ("dissimilar", different)):
        if len(found):
            left, right = f[0], f[found[0]]
            examples[name] = {
                "left": np.round(left, 6).tolist(),
                "right": np.round(right, 6).tolist(),
                "similarity": float(left @ right),
            }
    return examples
