"""Crowds of many kinds, made by hand: how many classes, who answers what, and what items look like.

Beside `simulated_crowds`, whose people all judge pairs at random and whose items show their classes
more or less: here classes are few or many, features good, blurred, empty, misleading or absent, and
pairs are asked at random, adaptively or as sorts of many items into piles. Every number was written
down before anything was fitted to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from likewise import Pairs

LATENT = 30


@dataclass(frozen=True)
class Kind:
    """How a crowd is made."""

    n_classes: int
    n_items: int
    n_people: int
    answers: int
    """Of each person; with ``asking="sorts"``, items that each person sorts."""
    features: str = "none"
    """good, fair, blurred (classes merge two by two), empty, misleading (other clusters)."""
    asking: str = "random"
    """random, adaptive (few items are asked about often, likely "same" oftener), near, sorts,
    records (a chain of pairs through each class, and three times as many pairs anywhere)."""
    hit: float = 0.85
    """P("same" | same) of a usual person; on sorts, an item's chance to be seen as it is."""
    false_alarm: float = 0.15
    """P("same" | different) of a usual person."""
    swapped: float = 0.0
    """Share of people who answer the wrong way round."""
    careless: float = 0.1
    """Share of people who toss a coin."""
    piles: tuple[int, int] | None = None
    """A person tells apart only so many groups of classes, from … to …; None: all."""
    unequal: float = 0.0
    """How unequal the classes' sizes are: their logarithms' standard deviation."""
    confused: float = 0.0
    """Share of the false alarms that fall on classes 2k and 2k + 1, where these are pairs."""
    columns: int = 256
    """Of the features: a network's, or a table's few."""


@dataclass(frozen=True)
class Made:
    """A crowd: items (N, d) or None, their classes (N,), and what people said."""

    items: np.ndarray | None
    truth: np.ndarray
    pairs: Pairs


KINDS = {
    "86 classes, 3 answers a pair": Kind(86, 267, 50, 200, asking="near"),
    "86 classes, 10 answers a pair": Kind(86, 267, 50, 700, asking="near"),
    "86 classes, empty features": Kind(86, 267, 50, 400, "empty", "near"),
    "20 classes, adaptive": Kind(20, 125, 300, 30, asking="adaptive"),
    "20 classes, adaptive, empty": Kind(20, 125, 300, 30, "empty", "adaptive"),
    "20 classes, 20 an item": Kind(20, 400, 100, 40, "fair"),
    "20 classes, once, no names": Kind(20, 125, 1, 7750),
    "3 classes, 20 a person": Kind(3, 150, 60, 20, "fair", careless=0.3),
    "3 classes, one person": Kind(3, 100, 1, 1200, "fair", careless=0.0),
    "3 classes, misleading": Kind(3, 300, 100, 60, "misleading"),
    "5 classes, misleading, sparse": Kind(5, 300, 60, 40, "misleading"),
    "5 classes, empty": Kind(5, 292, 300, 30, "empty", hit=0.75, false_alarm=0.2),
    "5 classes, blurred": Kind(5, 292, 300, 30, "blurred", hit=0.75, false_alarm=0.2, confused=0.4),
    "5 classes, swapped tenth": Kind(5, 300, 100, 60, "fair", swapped=0.1),
    "5 classes, swapped third": Kind(5, 300, 100, 60, "fair", swapped=0.33, careless=0.0),
    "5 classes, swapped, alone": Kind(5, 200, 60, 100, swapped=0.2),
    "8 classes, unequal": Kind(8, 500, 200, 50, "fair", unequal=1.0),
    "8 classes, unequal, alone": Kind(8, 300, 150, 100, unequal=1.0),
    "10 classes, sparse, good": Kind(10, 800, 100, 30, "good"),
    "10 classes, 200 a person": Kind(10, 600, 60, 200, "blurred", confused=0.3),
    "13 classes, sorts, piles": Kind(13, 765, 205, 35, "fair", "sorts", 0.9, piles=(3, 8)),
    "13 classes, sorts, empty": Kind(13, 400, 150, 30, "empty", "sorts", 0.9, piles=(3, 8)),
    "13 classes, sorts, alone": Kind(13, 400, 150, 30, asking="sorts", hit=0.9, piles=(3, 8)),
    "6 classes, sorts of 12": Kind(6, 300, 150, 12, "fair", "sorts", 0.85),
    "30 classes, sorts of 20": Kind(30, 600, 300, 20, "blurred", "sorts", 0.9),
    "8 classes, merging people": Kind(8, 300, 120, 120, "fair", piles=(3, 6)),
    "8 classes, merging, alone": Kind(8, 200, 100, 150, piles=(3, 6)),
    "40 classes, adaptive, fair": Kind(40, 600, 250, 60, "fair", "adaptive"),
    "3 classes, a table": Kind(3, 150, 60, 20, "fair", careless=0.3, columns=12),
    "5 classes, a table, empty": Kind(5, 292, 300, 30, "empty", hit=0.75, columns=12),
    "8 classes, a table, merging": Kind(8, 300, 120, 120, "fair", piles=(3, 6), columns=24),
    "20 classes, a table": Kind(20, 400, 100, 40, "fair", columns=24),
    "600 records, once": Kind(
        600, 1000, 16, 100, asking="records", hit=0.98, false_alarm=0.01, careless=0.0
    ),
    "600 records, 3 answers a pair": Kind(600, 1000, 48, 100, asking="records", hit=0.9),
    "250 records, nobody named": Kind(
        250, 400, 1, 600, asking="records", hit=0.98, false_alarm=0.01, careless=0.0
    ),
}


def make_kind(kind: Kind, seed: int) -> Made:
    """One crowd; the seed decides all that is random in it."""
    rng = np.random.default_rng([seed, 11])
    share = np.exp(kind.unequal * rng.normal(size=kind.n_classes))
    truth = np.concatenate(
        [np.arange(kind.n_classes), rng.choice(kind.n_classes, kind.n_items, p=share / share.sum())]
    )[: kind.n_items]
    truth = rng.permutation(truth)
    centre = rng.normal(size=(kind.n_classes, LATENT)) * np.arange(1, LATENT + 1) ** -0.5
    said = _sorts(kind, truth, centre, rng) if kind.asking == "sorts" else None
    if said is None:
        said = _answers(kind, truth, centre, rng)
    return Made(_features(kind, truth, centre, rng), truth, said)


def _features(
    kind: Kind, truth: np.ndarray, centre: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """(N, columns) non-negative, correlated, as networks give."""
    if kind.features == "none":
        return None
    apart = {"good": 1.6, "fair": 0.9, "blurred": 1.3, "empty": 0.0, "misleading": 0.35}
    place = centre.copy()
    if kind.features == "blurred":
        odd = np.arange(1, kind.n_classes, 2)
        place[odd] = place[odd - 1] + 0.25 * (place[odd] - place[odd - 1])
    spread = rng.normal(size=(len(truth), LATENT)) * np.arange(1, LATENT + 1) ** -0.5
    latent = apart[kind.features] * place[truth] + spread
    if kind.features == "misleading":
        other = rng.integers(0, kind.n_classes, len(truth))
        latent += 1.6 * rng.permutation(centre.T).T[other]
    mixing = rng.normal(size=(LATENT, kind.columns)) / np.sqrt(LATENT)
    noise = 0.15 * rng.normal(size=(len(truth), kind.columns))
    return np.maximum(latent @ mixing + noise, 0).astype(np.float32)


def _coarse(kind: Kind, centre: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(C,) which classes this person puts together: those that look alike, to each a bit other."""
    if kind.piles is None:
        return np.arange(kind.n_classes)
    seen = centre + 0.5 * rng.normal(size=centre.shape) * np.arange(1, LATENT + 1) ** -0.5
    count = int(rng.integers(kind.piles[0], kind.piles[1] + 1))
    return fcluster(linkage(seen, "average"), count, "maxclust")


def _sorts(kind: Kind, truth: np.ndarray, centre: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Everybody sorts some items into piles: all pairs of them are judged at once."""
    i, j = np.triu_indices(kind.answers, 1)
    left, right, same = [], [], []
    for _ in range(kind.n_people):
        shown = rng.choice(len(truth), kind.answers, replace=False)
        seen = truth[shown].copy()
        slip = rng.random(len(shown)) > (0.2 if rng.random() < kind.careless else kind.hit)
        seen[slip] = rng.integers(0, kind.n_classes, int(slip.sum()))
        pile = _coarse(kind, centre, rng)[seen]
        left.append(shown[i])
        right.append(shown[j])
        same.append(pile[i] == pile[j])
    who = np.repeat([f"s{k:03d}" for k in range(kind.n_people)], len(i))
    ends = np.concatenate(left), np.concatenate(right)
    return Pairs(*ends, np.concatenate(same), who.tolist(), n_items=len(truth))


def _answers(kind: Kind, truth: np.ndarray, centre: np.ndarray, rng: np.random.Generator) -> Pairs:
    """Pair by pair."""
    left, right = _asked(kind, truth, rng)
    who = np.repeat(np.arange(kind.n_people), kind.answers)
    if kind.n_people > 1:
        who = rng.permutation(who)
    coarse = np.stack([_coarse(kind, centre, rng) for _ in range(kind.n_people)])
    spread = rng.normal(0, 0.5, (kind.n_people, 2)) * (kind.n_people > 1)
    rate = np.clip([[kind.hit, kind.false_alarm]] * kind.n_people, 0.01, 0.99)
    rate = 1 / (1 + np.exp(-(np.log(rate / (1 - rate)) + spread)))
    sort = rng.random(kind.n_people)
    rate[sort < kind.careless] = 0.5
    swapped = sort > 1 - kind.swapped
    rate[swapped] = 1 - rate[swapped]
    alike = coarse[who, truth[left]] == coarse[who, truth[right]]
    p = np.where(alike, rate[who, 0], rate[who, 1])
    neighbours = (truth[left] ^ 1 == truth[right]) & (rate[who, 0] > rate[who, 1])
    p = np.where(neighbours & ~alike, p + kind.confused * (rate[who, 0] - p), p)
    said = rng.random(len(p)) < p
    names = None if kind.n_people == 1 else [f"p{k:03d}" for k in who]
    return Pairs(left, right, said, names, n_items=len(truth))


def random_pairs(n: int, total: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """So many pairs of two items each, any as often as any other."""
    left = rng.integers(0, n, total)
    return left, (left + rng.integers(1, n, total)) % n


def _asked(
    kind: Kind, truth: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    n, total = len(truth), kind.n_people * kind.answers
    if kind.asking == "random":
        return random_pairs(n, total, rng)
    i, j = np.triu_indices(n, 1)
    alike = truth[i] == truth[j]
    if kind.asking == "near":  # a similarity has suggested the pairs; each is asked several times
        pool = np.flatnonzero(alike | (rng.random(len(i)) < 2500 / len(i)))
        drawn = pool[np.arange(total) % len(pool)]
        return i[drawn], j[drawn]
    if kind.asking == "records":
        order = np.lexsort([rng.random(n), truth])
        chain = truth[order[1:]] == truth[order[:-1]]
        few = rng.choice(len(i), 3 * int(chain.sum()), replace=False)
        left = np.append(order[:-1][chain], i[few])
        right = np.append(order[1:][chain], j[few])
        drawn = rng.permutation(len(left))[np.arange(total) % len(left)]
        return left[drawn], right[drawn]
    # Adaptive: each item against a few members of the groups it may belong to, hubs oftenest.
    hub = rng.pareto(1.5, n) + 0.2
    weight = hub[i] * hub[j] * np.where(alike, 4.0, 1.0)
    pool = rng.choice(len(i), min(total // 6, len(i)), replace=False, p=weight / weight.sum())
    often = rng.pareto(1.5, len(pool)) + 0.3
    drawn = pool[rng.choice(len(pool), total, p=often / often.sum())]
    return i[drawn], j[drawn]
