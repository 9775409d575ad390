"""What the fit says about each annotator, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.propagation.graph import Graph
from likewise.pairs.shards import ALONE, Exchange, own_items

# Judgements of the average person that every table entry is shrunk by.
PRIOR_JUDGEMENTS = 4.0


def annotator_table(
    graph: Graph, classes: Tensor, names: NDArray[np.str_], exchange: Exchange = ALONE
) -> dict[str, list[Any]]:
    """Columns annotator, judgements, same_given_same, same_given_different, reliability.

    Measured against the inferred classes (N, C), most reliable first. ``reliability`` is the
    expected share of right answers, scaled so that 1 is always right and 0 is a coin, times the
    probability that this person looks at all: who always says the same, however often that is
    right, gets 0. Processes of an ``exchange`` have the judgements between them.
    """
    if graph.annotator is None:
        return {}
    counts = _counts(graph, classes, len(names), own_items(graph.n_items, exchange))
    counts = torch.from_numpy(exchange.gather_rows(counts[None].numpy())).sum(0)
    total, said_same, are_same, both = counts
    same_given_same = _shrunk(both, are_same)
    same_given_different = _shrunk(said_same - both, total - are_same)
    right = (total - said_same - are_same + 2 * both) / total.clamp_min(1)
    reliability = _looks(total, said_same, are_same, both) * (2 * right - 1)
    order = torch.argsort(-reliability, stable=True)
    return {
        "annotator": [str(names[i]) for i in order],
        "judgements": [int(n) for n in total[order]],
        "same_given_same": same_given_same[order].tolist(),
        "same_given_different": same_given_different[order].tolist(),
        "reliability": reliability[order].tolist(),
    }


def _counts(graph: Graph, classes: Tensor, n_people: int, own: slice) -> Tensor:
    """(4, R) everybody's judgements that count, those that say "same", those about items of one
    class as far as is known, those that are both; of a block of items, each where its first item
    is."""
    assert graph.annotator is not None
    counts = torch.zeros(4, n_people, dtype=torch.float64)
    for part in graph.chunks():
        left, right = graph.left[part], graph.right[part]
        equal = (classes[left] * classes[right]).sum(1).double().cpu()
        said = graph.same[part].double().cpu()
        ours = (left >= own.start) & (left < own.stop)
        if graph.weight is not None:
            ours = ours & (graph.weight[part] > 0)
        counted = ours.double().cpu()
        rows = torch.stack([counted, counted * said, counted * equal, counted * said * equal])
        counts.index_add_(1, graph.annotator[part].long().cpu(), rows)
    return counts


def _shrunk(part: Tensor, whole: Tensor) -> Tensor:
    """A rate a person, pulled to everybody's rate by a few judgements."""
    overall = part.sum() / whole.sum().clamp_min(1e-9)
    return (part + PRIOR_JUDGEMENTS * overall) / (whole + PRIOR_JUDGEMENTS)


def _looks(total: Tensor, said_same: Tensor, are_same: Tensor, both: Tensor) -> Tensor:
    """(R,) probability that a person's answers depend on what was shown.

    Either two rates, P(same | same) from Beta(2, 1) and P(same | different) from Beta(1, 2), or one
    for everything from Beta(1, 1); how many people look is learned from all of them.
    """
    by_class = _log_beta(both + 2, are_same - both + 1) - _log_beta(2, 1)
    said, different = said_same - both, total - are_same
    by_class = by_class + _log_beta(said + 1, different - said + 2) - _log_beta(1, 2)
    blind = _log_beta(said_same + 1, total - said_same + 1)
    share = torch.tensor(0.8, dtype=torch.float64)
    for _ in range(10):
        looks = torch.sigmoid(by_class - blind + torch.logit(share))
        share = ((looks.sum() + 4) / (len(looks) + 5)).clamp(0.01, 0.99)
    return looks


def _log_beta(a: Tensor | float, b: Tensor | float) -> Tensor:
    a, b = torch.as_tensor(a).double().clamp_min(1e-9), torch.as_tensor(b).double().clamp_min(1e-9)
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
