"""Is the result worth having, and would another seed have found it? In a few honest figures.

*Baselines* are what anybody would try first: majority vote and connected components, and k-means on
the items. Each is made from nine tenths of the judgements and asked for the rest. *Agreement* is
the share of answers that it foretells, "same" and "different" counting alike (balanced accuracy):
most answers are "different", and always saying so is no skill. People slip, so that even the truth
does not agree with all of them.

*Stability*: the fit twice more with other seeds, and once without the held-out tenth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans

from likewise.classifier import SimilarityClassifier
from likewise.io.npy import Array
from likewise.methods.known import Known
from likewise.metrics import best_matching, confusion
from likewise.pairs import Pairs
from likewise.pairs.edges import chunks

HELD_OUT = 0.1
MOST = 2_000  # judgements that are asked for: enough for a percent
FEWEST = 20
SEEDS = 2  # more than the fit's own
VOTE, CLUSTERS, OWN = "majority vote and components", "k-means on the items", "this fit"


@dataclass(frozen=True)
class Comparison:
    """Held-out judgements and what foretells them; C classes, N items."""

    judgements: int
    """How many were held out."""
    agreement: dict[str, float]
    """Balanced agreement with them, by procedure."""
    changed: int | None = None
    """Items that another seed puts into another class; None where no other seed was tried."""
    items: int = 0
    """Of so many."""
    seeds: int = 1
    """Seeds that were tried, the fit's own included."""


def compare(
    classifier: SimilarityClassifier,
    items: Array,
    pairs: Pairs,
    *,
    known: Known | None = None,
    stability: bool = False,
) -> Comparison | None:
    """Baselines of a fitted classifier, and with ``stability`` three fits more.

    None where there are too few judgements to hold some out, or all pairs were judged: nothing is
    left to foretell then.
    """
    rng = np.random.default_rng([classifier.random_state or 0, 5])
    parts = _held_out(pairs, rng)
    if parts is None:
        return None
    rest, held = parts
    n_classes = len(classifier.classes_)
    agreement = {
        VOTE: balanced_agreement(by_vote(rest, held), held),
        CLUSTERS: balanced_agreement(by_clusters(items, held, n_classes), held),
    }
    if not stability:
        return Comparison(len(held), agreement)
    labels = classifier.predict_proba(items).argmax(axis=1)
    changed = np.zeros(len(items), bool)
    for step in range(1, SEEDS + 1):
        changed |= _refitted(classifier, step, items, pairs, known, labels) != labels
    unseen = _refitted(classifier, 0, items, rest, known, labels)
    agreement[OWN] = balanced_agreement(unseen[held.left] == unseen[held.right], held)
    return Comparison(len(held), agreement, int(changed.sum()), len(items), SEEDS + 1)


def balanced_agreement(predicted: NDArray[np.bool_], held: Pairs) -> float:
    """Mean share of the "same" and of the "different" answers that are foretold."""
    return float((predicted[held.same].mean() + (~predicted[~held.same]).mean()) / 2)


def by_vote(rest: Pairs, held: Pairs) -> NDArray[np.bool_]:
    """(m,) whether two items are joined by pairs that most answers call the same."""
    said = np.flatnonzero(rest.same)
    # Only pairs that somebody calls the same can be joined: others are never listed.
    if not len(said):
        return np.zeros(len(held), bool)
    code, pair = np.unique(_codes(rest, said), return_inverse=True)
    vote = np.bincount(pair, _weights(rest, said), minlength=len(code))
    for part in chunks(len(rest)):
        against = part.start + np.flatnonzero(~rest.same[part])
        about = _codes(rest, against)
        place = np.minimum(np.searchsorted(code, about), len(code) - 1)
        known = code[place] == about
        vote -= np.bincount(place[known], _weights(rest, against[known]), minlength=len(code))
    agreed = code[vote > 0]
    links = Pairs(
        agreed // rest.n_items,
        agreed % rest.n_items,
        np.ones(len(agreed), bool),
        n_items=rest.n_items,
    )
    group = links.components()
    return np.asarray(group[held.left] == group[held.right])


def _codes(pairs: Pairs, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) one number for each unordered pair of the ``chosen`` judgements (m,)."""
    left, right = pairs.left[chosen], pairs.right[chosen]
    low = np.minimum(left, right).astype(np.int64)
    return np.asarray(low * pairs.n_items + np.maximum(left, right))


def _weights(pairs: Pairs, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """(m,) how much each of the ``chosen`` judgements (m,) counts."""
    weight = np.ones(len(chosen)) if pairs.weight is None else pairs.weight[chosen]
    return np.asarray(weight, np.float64)


def by_clusters(items: Array, held: Pairs, n_classes: int) -> NDArray[np.bool_]:
    """(m,) whether k-means puts two items into one of C clusters; of the items asked about only."""
    asked, place = np.unique(np.concatenate([held.left, held.right]), return_inverse=True)
    flat = np.asarray(items[asked], np.float32).reshape(len(asked), -1)
    found = KMeans(min(n_classes, len(asked)), n_init=3, random_state=0).fit(flat).labels_
    left, right = np.split(found[place.reshape(-1)], 2)
    return np.asarray(left == right)


def _held_out(pairs: Pairs, rng: np.random.Generator) -> tuple[Pairs, Pairs] | None:
    """Nine tenths, and of the rest as many as are asked for; both answers are among them."""
    if pairs.is_complete:
        return None
    chosen = rng.permutation(len(pairs))[: round(HELD_OUT * len(pairs))]
    mask = np.zeros(len(pairs), bool)
    mask[chosen] = True
    rest, held = pairs.select(~mask), pairs.select(np.sort(chosen[:MOST]))
    both = 0 < held.n_same < len(held) and 0 < rest.n_same < len(rest)
    return (rest, held) if len(held) >= FEWEST and both else None


def _refitted(
    classifier: SimilarityClassifier,
    step: int,
    items: Array,
    pairs: Pairs,
    known: Known | None,
    labels: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(N,) classes by a fit with another seed, in the numbers of ``labels`` (N,)."""
    n_classes = len(classifier.classes_)
    seed = (classifier.random_state or 0) + step
    other = clone(classifier).set_params(random_state=seed, n_classes=n_classes, verbose=False)
    found = other.fit(items, pairs, known=known).predict_proba(items).argmax(axis=1)
    match = best_matching(confusion(found, labels, n_classes))
    return np.asarray(match[found], np.int64)
