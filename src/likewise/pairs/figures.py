"""Figures of a description, from counts: the same for judgements in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.rates import rates_from_triangles
from likewise.pairs.triangles import Triangles

# Below this many closed triangles their shares are too uncertain to solve for rates.
MIN_TRIANGLES = 100
LARGEST = 10


@dataclass(frozen=True)
class Noise:
    """The kind of noise that the judgements suggest."""

    kind: str
    """"exact" (no judgement contradicts the others: at most whole items were mistaken), "judgement"
    (single judgements were flipped), or "unknown" (nothing could have contradicted)."""
    miss: float | None = None
    """P(different | same) for ``n_classes`` balanced classes, where flipped judgements are seen and
    triangles are enough."""
    false_alarm: float | None = None
    """P(same | different), likewise."""
    n_classes: int | None = None
    """The number of classes that the rates are estimated for."""
    counted: bool = False
    """Whether the number of classes, too, is an estimate."""


class Counts(TypedDict):
    """The fields of a description that a complete set and a list have in common."""

    items: int
    judgements: int
    same: int
    different: int
    dropped: int
    weightless: int
    shortened: int
    unknown: int
    annotators: int
    components: int
    largest_components: list[int]
    unlinked: int


def describe_counts(
    *,
    sizes: NDArray[np.int64],
    judgements: int,
    same: int,
    dropped: int,
    weightless: int,
    annotators: int,
    shortened: int = 0,
    unknown: int = 0,
) -> Counts:
    """The counts of a description, from the ``sizes`` (components,) of what "same" joins."""
    linked = np.sort(sizes[sizes > 1])[::-1]
    return {
        "items": int(sizes.sum()),
        "judgements": judgements,
        "same": same,
        "different": judgements - same,
        "dropped": dropped,
        "weightless": weightless,
        "shortened": shortened,
        "unknown": unknown,
        "annotators": annotators,
        "components": len(linked),
        "largest_components": [int(size) for size in linked[:LARGEST]],
        "unlinked": int(np.count_nonzero(sizes == 1)),
    }


def spread(degree: NDArray[np.int64]) -> tuple[float, float, float]:
    """Least, median and most of the judgements an item (N,) has."""
    if not len(degree):
        return 0.0, 0.0, 0.0
    return float(degree.min()), float(np.median(degree)), float(degree.max())


def describe_noise(
    *,
    contradictions: int,
    redundant: int,
    p_same: float,
    triangles: Triangles,
    n_classes: int | None,
    counted: bool = False,
) -> Noise:
    """The noise that such figures suggest, for so many classes where they are known."""
    if contradictions == 0:
        return Noise("exact" if redundant > 0 else "unknown", n_classes=n_classes)
    if n_classes is None or triangles.closed < MIN_TRIANGLES:
        return Noise("judgement", n_classes=n_classes)
    rates = rates_from_triangles(p_same, triangles, max(n_classes, 2))
    return Noise("judgement", 1 - rates.a, rates.b, n_classes, counted)
