"""Crowds of people who compare what they see: two items are the same if they look near enough.

Beside `crowd_kinds` and `simulated_crowds`, where people answer by the classes of two items: here
each item has a place of its own in the space in which people see, every look at it adds noise, and
somebody says "same" where two looks are nearer than that person's bound (Thurstone's comparative
judgement). So items near the border of a class are mistaken by all, looks within a class are told
apart by the keen-eyed, and no rates of people or of classes explain everything, as with real
photographs. Every number was written down before anything was fitted to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from crowd_kinds import Made, random_pairs
from likewise import Pairs

SEEN = 8  # dimensions in which people see
UNSEEN = 24  # further ones that features show and people do not look at


@dataclass(frozen=True)
class Perceived:
    """How a crowd is made. Distances are in units of an item's spread within its look."""

    n_classes: int
    n_items: int
    n_people: int
    answers: int
    """Of each person; with ``sorts``, items that each person sorts into piles."""
    apart: float = 2.0
    """Standard deviation of the places of classes, in every seen dimension."""
    looks: int = 1
    """Looks that each class comes in (male and female, young and old)."""
    looks_apart: float = 1.0
    """Standard deviation of the places of looks around their class."""
    blur: float = 0.6
    """Of one person's one look at an item."""
    bound: float = 5.2
    """Mean distance up to which people say "same"."""
    keen: float = 0.15
    """Standard deviation over people of the logarithm of their bound."""
    careless: float = 0.1
    """Share of people who toss a coin."""
    asking: str = "random"
    """random, once (every pair, nobody named), near (pairs that look alike oftener), sorts."""
    shown: float | None = None
    """How much of what people see the features show, beside what they do not; None: none at all."""


PERCEIVED = {
    "seen, 3 classes in looks": Perceived(3, 400, 250, 30, looks=3, bound=6.0, shown=0.7),
    "seen, 3 classes in looks, alone": Perceived(3, 250, 300, 40, looks=3, bound=6.0),
    "seen, 5 classes": Perceived(5, 300, 300, 30, apart=1.4, shown=0.7),
    "seen, 5 classes, hardly shown": Perceived(5, 300, 300, 30, apart=1.7, shown=0.2),
    "seen, 5 classes, alone": Perceived(5, 200, 200, 40, apart=1.7),
    "seen, 12 classes": Perceived(12, 600, 200, 80, apart=1.7, looks=2, shown=0.7),
    "seen, 12 classes, sparse": Perceived(12, 600, 200, 20, apart=2.0, shown=1.0),
    "seen, 20 classes, near": Perceived(20, 125, 400, 35, apart=1.7, asking="near"),
    "seen, 20 classes, once": Perceived(20, 125, 1, 0, apart=1.7, asking="once"),
    "seen, 60 classes, near": Perceived(60, 240, 200, 60, apart=2.0, asking="near"),
    "seen, 13 classes, sorts": Perceived(13, 600, 200, 35, looks=2, asking="sorts", shown=0.7),
    "seen, 13 classes, sorts, alone": Perceived(13, 400, 150, 35, asking="sorts"),
}
MOST_PILES = 8


def make_perceived(kind: Perceived, seed: int) -> Made:
    """One crowd; the seed decides all that is random in it."""
    rng = np.random.default_rng([seed, 17])
    truth = np.arange(kind.n_classes)
    truth = np.append(truth, rng.integers(0, kind.n_classes, kind.n_items - kind.n_classes))
    truth = rng.permutation(truth)
    centre = kind.apart * rng.normal(size=(kind.n_classes, SEEN))
    look = kind.looks_apart * rng.normal(size=(kind.n_classes, kind.looks, SEEN)) * (kind.looks > 1)
    place = centre[truth] + look[truth, rng.integers(0, kind.looks, kind.n_items)]
    place = place + rng.normal(size=place.shape)
    said = _sorted(kind, place, rng) if kind.asking == "sorts" else _compared(kind, place, rng)
    return Made(_features(kind, place, rng), truth, said)


def _features(kind: Perceived, place: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """(N, 256) non-negative, correlated, as networks give."""
    if kind.shown is None:
        return None
    latent = np.hstack([kind.shown * place, rng.normal(size=(len(place), UNSEEN))])
    mixed = latent @ rng.normal(size=(SEEN + UNSEEN, 256)) / np.sqrt(SEEN + UNSEEN)
    return np.maximum(mixed + 0.15 * rng.normal(size=mixed.shape), 0).astype(np.float32)


def _bounds(kind: Perceived, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(R,) each person's bound, and whether the person tosses a coin."""
    bound = kind.bound * np.exp(kind.keen * rng.normal(size=kind.n_people))
    return bound, (rng.random(kind.n_people) < kind.careless) & (kind.n_people > 1)


def _compared(kind: Perceived, place: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Pair by pair."""
    left, right = _asked(kind, place, rng)
    who = np.arange(len(left)) * kind.n_people // len(left)
    bound, careless = _bounds(kind, rng)
    between = (
        place[left] - place[right] + np.sqrt(2) * kind.blur * rng.normal(size=(len(left), SEEN))
    )
    said = np.linalg.norm(between, axis=1) < bound[who]
    said = np.where(careless[who], rng.random(len(said)) < 0.5, said)
    names = None if kind.n_people == 1 else [f"p{k:03d}" for k in who]
    return Pairs(left, right, said, names, n_items=len(place))


def _asked(
    kind: Perceived, place: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    n, total = len(place), kind.n_people * kind.answers
    i, j = np.triu_indices(n, 1)
    if kind.asking == "once":
        order = rng.permutation(len(i))
        return i[order], j[order]
    if kind.asking == "near":  # an eighth of the pairs, those that look alike oftener, repeatedly
        near = np.linalg.norm(place[i] - place[j], axis=1) + 2 * rng.random(len(i))
        pool = np.argsort(near)[: len(i) // 8]
        drawn = rng.choice(pool, total)
        return i[drawn], j[drawn]
    return random_pairs(n, total, rng)


def _sorted(kind: Perceived, place: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Everybody sorts some items into piles: groups of looks within a bound, at most eight."""
    i, j = np.triu_indices(kind.answers, 1)
    bound, careless = _bounds(kind, rng)
    left, right, same = [], [], []
    for own, coin in zip(bound, careless, strict=True):
        shown = rng.choice(len(place), kind.answers, replace=False)
        tree = linkage(place[shown] + kind.blur * rng.normal(size=(len(shown), SEEN)), "average")
        pile = fcluster(tree, own, "distance")
        if pile.max() > MOST_PILES:
            pile = fcluster(tree, MOST_PILES, "maxclust")
        if coin:
            pile = rng.integers(0, MOST_PILES, len(shown))
        left.append(shown[i])
        right.append(shown[j])
        same.append(pile[i] == pile[j])
    who = np.repeat([f"s{k:03d}" for k in range(kind.n_people)], len(i))
    ends = np.concatenate(left), np.concatenate(right)
    return Pairs(*ends, np.concatenate(same), who.tolist(), n_items=len(place))
