"""What the fit says about each annotator, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.graph import Graph

# Judgements of the average person that every table entry is shrunk by.
PRIOR_JUDGEMENTS = 4.0


def annotator_table(graph: Graph, classes: Tensor, names: NDArray[np.str_]) -> dict[str, list[Any]]:
    """Columns annotator, judgements, same_given_same, same_given_different, reliability.

    Measured against the inferred classes (N, C), most reliable first. ``reliability`` is the
    expected share of right answers beyond what the same answers would score by chance, scaled so
    that 1 is always right and 0 is a coin, or somebody who always says the same.
    """
    if graph.annotator is None:
        return {}
    person = graph.annotator.long().cpu()
    equal = torch.cat(
        [(classes[graph.left[p]] * classes[graph.right[p]]).sum(1) for p in graph.chunks()]
    )
    equal, said = equal.double().cpu(), graph.same.double().cpu()
    total = _sum(torch.ones_like(said), person, len(names))
    said_same, are_same = _sum(said, person, len(names)), _sum(equal, person, len(names))
    both = _sum(said * equal, person, len(names))
    same_given_same = _shrunk(both, are_same)
    same_given_different = _shrunk(said_same - both, total - are_same)
    reliability = _kappa(total, said_same, are_same, both)
    order = torch.argsort(-reliability, stable=True)
    return {
        "annotator": [str(names[i]) for i in order],
        "judgements": [int(n) for n in total[order]],
        "same_given_same": same_given_same[order].tolist(),
        "same_given_different": same_given_different[order].tolist(),
        "reliability": reliability[order].tolist(),
    }


def _sum(values: Tensor, person: Tensor, n_people: int) -> Tensor:
    return torch.zeros(n_people, dtype=torch.float64).index_add_(0, person, values)


def _shrunk(part: Tensor, whole: Tensor) -> Tensor:
    """A rate a person, pulled to everybody's rate by a few judgements."""
    overall = part.sum() / whole.sum().clamp_min(1e-9)
    return (part + PRIOR_JUDGEMENTS * overall) / (whole + PRIOR_JUDGEMENTS)


def _kappa(total: Tensor, said_same: Tensor, are_same: Tensor, both: Tensor) -> Tensor:
    """Cohen's kappa of a person's answers and the inferred truth, in (-1, 1)."""
    n = total.clamp_min(1)
    right = (both + (total - said_same - are_same + both)) / n
    share_said, share_are = said_same / n, are_same / n
    chance = share_said * share_are + (1 - share_said) * (1 - share_are)
    return (right - chance) / (1 - chance).clamp_min(1e-6)
