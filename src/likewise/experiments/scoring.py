"""Figures of a trained cell. The only place in the experiments that looks at true classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.batches import logits_of
from likewise.experiments.cells import Cell
from likewise.experiments.problem import Supervision, Truth
from likewise.matching import (
    best_matching,
    confusion,
    gram_error,
    matched_accuracy,
    reorder_transition,
    transition_error,
)

Figures = dict[str, Any]


def score(
    cell: Cell,
    best: nn.Module,
    last: nn.Module,
    transition: Tensor | None,
    supervision: Supervision,
    truth: Truth,
) -> Figures:
    """Test accuracy of the chosen and the last epoch, classes used, and the errors of T."""
    n_classes = supervision.n_classes
    logits = logits_of(best, truth.test_items, supervision.items.device)
    predicted = logits.argmax(dim=1).cpu().numpy()
    final = logits_of(last, truth.test_items, supervision.items.device).argmax(dim=1).cpu().numpy()
    figures: Figures = {
        "accuracy": matched_accuracy(predicted, truth.test_classes),
        "last_accuracy": matched_accuracy(final, truth.test_classes),
        "classes_used": len(np.unique(predicted)),
        "n_classes": n_classes,
        "transition_error": None,
        "gram_error": None,
    }
    if transition is not None:
        match = best_matching(confusion(predicted, truth.test_classes, n_classes))
        columns = truth.class_of_id if cell.method == "joint" else None
        figures |= _transition_figures(transition, match, columns, truth.transition)
        f = logits.softmax(dim=1) @ transition.to(logits.device)
        figures["similarity"] = similarity_examples(f, predicted)
    return figures


def _transition_figures(
    transition: Tensor,
    match: NDArray[np.int64],
    columns: NDArray[np.int64] | None,
    true: NDArray[np.float64] | None,
) -> Figures:
    """T with its classes in the order of the true ones, and its errors where T is known."""
    ordered = reorder_transition(transition.double().cpu().numpy(), match, columns)
    figures: Figures = {"transition": np.round(ordered, 6).tolist()}
    if true is not None:
        figures["true_transition"] = np.round(true, 6).tolist()
        figures["transition_error"] = transition_error(ordered, true)
        figures["gram_error"] = gram_error(ordered, true)
    return figures


def similarity_examples(f: Tensor, predicted: NDArray[np.int64]) -> Figures:
    """f of a pair that is predicted similar and of one that is not (the paper's Figure 3).

    The first item and the next one of its own, and of another, predicted class.
    """
    others = np.arange(1, len(predicted))
    same = others[predicted[1:] == predicted[0]]
    different = others[predicted[1:] != predicted[0]]
    examples = {}
    for name, found in (("similar", same), ("dissimilar", different)):
        if len(found):
            pair = torch.stack([f[0], f[int(found[0])]]).double().cpu().numpy()
            examples[name] = {
                "left": np.round(pair[0], 6).tolist(),
                "right": np.round(pair[1], 6).tolist(),
                "similarity": float(pair[0] @ pair[1]),
            }
    return examples
