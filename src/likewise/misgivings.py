"""What a person should know before trusting a fitted classifier, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.fitting import Fitted
from likewise.pairs import Pairs

MAX_JUDGED = 200_000  # judgements that an AUC is taken over
INFORMATIVE = 0.02  # an AUC must be so far above one half, beyond what chance explains


def misgivings(
    fitted: Fitted, probabilities: NDArray[Any], held: NDArray[Any], held_pairs: Pairs
) -> list[str]:
    """Sentences about dead classes, training that went nowhere, judgements that say nothing.

    ``probabilities`` (N, C) are those of all items, ``held`` (h,) the held-out ones among them and
    ``held_pairs`` their judgements: a network can learn by heart those that it was given.
    """
    found = [*_dead_classes(probabilities), *_training(fitted)]
    area, error = judged_area(probabilities[held], held_pairs, np.random.default_rng(0))
    if area is not None and area < 0.5 + max(INFORMATIVE, 2 * error):
        found.append(
            f"held-out judgements are ranked no better than by chance (AUC {area:.2f}): either "
            "they carry no information about these items, or nothing was learned; check that the "
            "items stand in the order that the judgements number them in."
        )
    return found


def judged_area(
    probabilities: NDArray[Any], pairs: Pairs, rng: np.random.Generator
) -> tuple[float | None, float]:
    """The AUC of P(same) for the answers, and its standard error; None without both answers."""
    left, right, same = _some(pairs, rng)
    n_same, n_different = int(same.sum()), int((~same).sum())
    if not n_same or not n_different:
        return None, 0.0
    from scipy.stats import rankdata

    p = np.einsum("mc,mc->m", probabilities[left], probabilities[right])
    ranks = rankdata(p)
    area = (ranks[same].sum() - n_same * (n_same + 1) / 2) / (n_same * n_different)
    # Under no information; judgements of an item hang together, so at most one counts for each.
    few = min(n_same, n_different, len(probabilities))
    return float(area), float(np.sqrt(1 / (6 * few)))


def _some(
    pairs: Pairs, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Left, right and answers of at most `MAX_JUDGED` judgements."""
    if not pairs.is_complete:
        chosen = np.arange(len(pairs))
        if len(pairs) > MAX_JUDGED:
            chosen = rng.choice(len(pairs), MAX_JUDGED, replace=False)
        return pairs.left[chosen], pairs.right[chosen], pairs.same[chosen]
    ids = pairs.components()
    left, right = rng.integers(len(ids), size=(2, min(MAX_JUDGED, 4 * len(pairs))))
    apart = left != right
    left, right = left[apart], right[apart]
    return left, right, ids[left] == ids[right]


def _dead_classes(probabilities: NDArray[Any]) -> list[str]:
    n_classes = probabilities.shape[1]
    dead = n_classes - len(np.unique(probabilities.argmax(axis=1)))
    if not dead:
        return []
    return [
        f"{dead} of {n_classes} classes are never predicted for the items given; fewer classes, more "
        "judgements or method='joint' may help."
    ]


def _training(fitted: Fitted) -> list[str]:
    found = []
    if fitted.best_epoch == 0 and len(fitted.history) > 5:
        found.append(
            "the held-out judgements were never explained better than after the first epoch, whose "
            "weights were kept; a lower learning rate or more judgements may help."
        )
    skipped = int(sum(row.get("skipped") or 0 for row in fitted.history))
    if skipped:
        found.append(
            f"{skipped} batches were skipped, because their loss or gradient was not finite; a "
            "lower learning rate or items on a smaller scale would use them."
        )
    return found
