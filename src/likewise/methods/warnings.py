"""What a person should know before trusting a fitted classifier, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from likewise.methods.result import FitResult, last_stage
from likewise.noise.estimation import evidence_costs, suited_temperature
from likewise.pairs import Pairs

MAX_JUDGED = 200_000  # judgements that an AUC is taken over
INFORMATIVE = 0.02  # an AUC must be so far above one half, beyond what chance explains
FITS_WORSE = 0.05  # nats an item by which a T that is given may be behind
CLEARLY_BETTER = (
    0.75  # an AUC that nobody would call chance, however few judgements it is taken over
)

Probabilities = NDArray[np.floating]
Index = NDArray[np.integer]


def fit_warnings(
    fitted: FitResult, probabilities: Probabilities, held: Index, pairs: Pairs
) -> list[str]:
    """Sentences: those of the fit itself, then about dead classes, training that went nowhere and
    judgements that say nothing.

    ``probabilities`` (N, C) are those of all items that ``pairs`` are about, ``held`` (h,) the
    items held out of training.
    """
    found = [*fitted.warnings, *_dead_classes(probabilities, fitted.method), *_training(fitted)]
    left, right, same = _naming(pairs, held, np.random.default_rng(0))
    area, error = judged_area(probabilities, left, right, same)
    if area is not None and area < min(0.5 + max(INFORMATIVE, 2 * error), CLEARLY_BETTER):
        which = "that training did not see" if fitted.judgements_held_out else "of the fit itself"
        found.append(
            f"judgements {which} are ranked no better than by chance (AUC {area:.2f}): either "
            "they carry no information about these items, or nothing was learned; check that the "
            "items stand in the order that the judgements number them in."
        )
    return found


def doubts_about_given(
    given: Tensor, estimated: Tensor, log_g: Tensor, evidence: Tensor
) -> list[str]:
    """A sentence where a T (C, C) that was given explains the items clearly worse than the one
    that was estimated; ``log_g``, ``evidence`` (n, C) are of items that training did not see."""
    known = evidence.sum(dim=1) > 0
    costs = [
        evidence_costs(log_g / suited_temperature(log_g, T, evidence), T, evidence)[known]
        for T in (given, estimated)
    ]
    behind = (costs[0] - costs[1]).double()
    mean, error = float(behind.mean()), float(behind.std()) / max(len(behind), 1) ** 0.5
    if not mean > max(FITS_WORSE, 3 * error):
        return []
    kept = [float(T.diagonal().mean()) for T in (given, estimated)]
    return [
        "the transition matrix that was given does not fit the judgements: in its best order of "
        f"classes it explains an item worse by {mean:.2f} nats than the one estimated from them, "
        f"and keeps {kept[0]:.2f} of the classes where that keeps {kept[1]:.2f}; check it, or "
        "leave it out to have it estimated."
    ]


def judged_area(
    probabilities: Probabilities, left: Index, right: Index, same: NDArray[np.bool_]
) -> tuple[float | None, float]:
    """The AUC of P(same) for the answers, and its standard error; None without both answers."""
    n_same, n_different = int(same.sum()), int((~same).sum())
    if not n_same or not n_different:
        return None, 0.0
    from scipy.stats import mannwhitneyu

    p = np.einsum("mc,mc->m", probabilities[left], probabilities[right])
    wins = float(mannwhitneyu(p[same], p[~same], method="asymptotic").statistic)
    # Under no information. Judgements of an item hang together: no more count than there are items.
    few = min(n_same, n_different, len(probabilities))
    return wins / (n_same * n_different), float(np.sqrt(1 / (6 * few)))


def _naming(
    pairs: Pairs, held: Index, rng: np.random.Generator
) -> tuple[Index, Index, NDArray[np.bool_]]:
    """Left, right, answers of at most `MAX_JUDGED` judgements that name a held-out item."""
    if pairs.is_complete:
        ids = pairs.components()
        left = rng.choice(held, MAX_JUDGED)
        right = rng.integers(len(ids), size=MAX_JUDGED)
        apart = left != right
        left, right = left[apart], right[apart]
        return left, right, ids[left] == ids[right]
    is_held = np.zeros(pairs.n_items, bool)
    is_held[held] = True
    chosen = np.flatnonzero(is_held[pairs.left] | is_held[pairs.right])
    if len(chosen) > MAX_JUDGED:
        chosen = rng.choice(chosen, MAX_JUDGED, replace=False)
    return pairs.left[chosen], pairs.right[chosen], pairs.same[chosen]


def _dead_classes(probabilities: Probabilities, method: str) -> list[str]:
    n_classes = probabilities.shape[1]
    dead = n_classes - len(np.unique(probabilities.argmax(axis=1)))
    if not dead:
        return []
    would = "fewer classes or more judgements"
    if method != "joint":
        would = "fewer classes, more judgements or method='joint'"
    return [
        f"{dead} of {n_classes} classes are never predicted for the items given; {would} may help."
    ]


def _training(fitted: FitResult) -> list[str]:
    found = []
    if fitted.best_epoch == 0 and len(last_stage(fitted.history)) > 5:
        found.append(
            "the held-out judgements were never explained better than after the first epoch, whose "
            "weights were kept; a lower learning rate or more judgements may help."
        )
    counts = [row.get("skipped") for row in fitted.history]
    skipped = int(sum(count for count in counts if isinstance(count, int | float)))
    if skipped:
        found.append(
            f"{skipped} batches were skipped, because their loss or gradient was not finite; a "
            "lower learning rate or items on a smaller scale would use them."
        )
    return found
