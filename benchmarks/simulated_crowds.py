"""Crowds made by hand, as different from each other as real ones may be; truth only to score.

A scenario says what the items look like (to a pretrained network), what people take them for, and
who the people are. Every number of it was written down before anything was fitted to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from likewise import Pairs

LATENT = 40
SCALE = np.arange(1, LATENT + 1) ** -0.6  # a few directions carry much, many a little
PER_PERSON = 30


@dataclass(frozen=True)
class Crowd:
    """Items (N, d), their classes (N,), and what people said."""

    items: np.ndarray
    truth: np.ndarray
    pairs: Pairs
    n_classes: int


@dataclass(frozen=True)
class Scenario:
    """How a crowd is made.

    Attributes
    ----------
    n_classes, n_items, per_item : classes, items, judgements an item
    shares : relative sizes of the classes; None for equal ones
    n_features, apart : of the items; how far apart their classes lie, the spread within being 1
    merged : the features' distance between classes 0 and 1, as a share of the others' distance
    drawn : handwritten digits in place of Gaussian items, a class each; ``apart``, ``merged``,
        ``kinds`` and ``nuisance`` do not apply to them
    kinds : how many clusters each class falls into; ``nuisance``: how far apart the items lie in
        two clusters that have nothing to do with the classes
    misled : the share of items that everybody takes for another class, the same one for all of a
        class; ``visibly``: those are the items that look most like it to the network, too
    looks : how surely an attentive person tells same from different, as a logit
    confused : the logit of "same" for classes 2k and 2k + 1, fewer pairs of classes as given
    n_confused : how many such pairs of classes there are
    unclear : the share of items that people see half as clearly
    careless, never, always : shares of people who toss a coin, always say "different", or "same"
    together : people judge all pairs of this many items at once; 0 for pairs at random
    """

    n_classes: int
    n_items: int
    per_item: int
    shares: tuple[float, ...] | None = None
    n_features: int = 512
    apart: float = 1.5
    merged: float = 1.0
    kinds: int = 1
    nuisance: float = 0.0
    misled: float = 0.0
    visibly: bool = False
    looks: float = 2.0
    confused: float = -0.5
    n_confused: int = 0
    unclear: float = 0.0
    careless: float = 0.1
    never: float = 0.03
    always: float = 0.03
    together: int = 0
    drawn: tuple[int, ...] = ()


SCENARIOS = {
    "easy": Scenario(3, 400, 30, apart=1.2, misled=0.05),
    "two classes": Scenario(2, 300, 20, apart=0.8, misled=0.1, looks=1.5),
    "birds": Scenario(5, 340, 50, merged=0.4, misled=0.08, n_confused=1, unclear=0.2),
    "terriers": Scenario(4, 500, 36, apart=1.0, n_confused=2, misled=0.15, looks=1.5),
    "merged": Scenario(4, 600, 40, merged=0.25, misled=0.05),
    "merged, hard to tell": Scenario(3, 450, 40, merged=0.4, misled=0.15, n_confused=1, looks=1.6),
    "eight classes": Scenario(8, 800, 40, apart=1.1, misled=0.08, n_confused=2, unclear=0.2),
    "ten judgements": Scenario(4, 800, 10, apart=1.1, misled=0.1),
    "ten judgements, poor": Scenario(3, 800, 12, apart=0.5, misled=0.05),
    "careless crowd": Scenario(3, 400, 40, misled=0.1, careless=0.4, never=0.08, always=0.05),
    "lazy crowd": Scenario(5, 600, 36, apart=1.1, misled=0.05, never=0.15, always=0.15),
    "unequal classes": Scenario(4, 600, 30, (8, 4, 2, 1), apart=1.1, misled=0.08, n_confused=1),
    "misled, visibly": Scenario(4, 500, 36, apart=1.1, misled=0.2, visibly=True, looks=1.8),
    "poor features": Scenario(4, 400, 50, apart=0.4, misled=0.03, unclear=0.2),
    "classes in parts": Scenario(3, 500, 36, kinds=3, apart=1.0, misled=0.1),
    "other clusters": Scenario(3, 450, 36, apart=0.9, nuisance=2.5, misled=0.1),
    "sorted together": Scenario(5, 400, 40, together=8, misled=0.1, n_confused=1, apart=1.0),
    "few features": Scenario(5, 1000, 30, n_features=64, apart=1.1, misled=0.1),
    "large": Scenario(6, 2000, 40, n_features=768, apart=1.0, misled=0.1, n_confused=2),
    "drawn 3 5 8 9": Scenario(4, 600, 36, drawn=(3, 5, 8, 9), misled=0.1),
    "drawn 1 7 4 9": Scenario(4, 400, 30, drawn=(1, 7, 4, 9), misled=0.15, visibly=True, looks=1.6),
    "drawn, all": Scenario(10, 1000, 50, drawn=tuple(range(10)), misled=0.1, n_confused=1),
}


def make(scenario: Scenario, seed: int) -> Crowd:
    """One crowd of a scenario; the seed decides all that is random in it."""
    rng = np.random.default_rng(seed)
    shares = np.ones(scenario.n_classes) if scenario.shares is None else np.array(scenario.shares)
    y = rng.choice(scenario.n_classes, scenario.n_items, p=shares / shares.sum())
    latent, lean = _latent(scenario, y, rng)
    z = _perceived(scenario, y, lean, rng)
    return Crowd(_lift(latent, scenario.n_features, rng), y, _ask(scenario, z, rng), len(shares))


def _latent(
    scenario: Scenario, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(N, LATENT) what a network sees, and (N, C) how much each item leans to each class."""
    if scenario.drawn:
        return _drawn(scenario, y, rng)
    centre = scenario.apart * rng.normal(size=(scenario.n_classes, LATENT)) * SCALE
    centre[1] = centre[0] + scenario.merged * (centre[1] - centre[0])
    odd = np.exp(0.35 * rng.normal(size=(len(y), 1)))  # some pictures are far from typical
    spread = odd * rng.normal(size=(len(y), LATENT)) * SCALE
    lean = spread @ centre.T
    part = 0.7 * rng.normal(size=(scenario.n_classes, scenario.kinds, LATENT)) * SCALE
    inside = part[y, rng.integers(0, scenario.kinds, len(y))] if scenario.kinds > 1 else 0.0
    aside = scenario.nuisance * np.outer(rng.random(len(y)) < 0.5, rng.normal(size=LATENT) * SCALE)
    return centre[y] + spread + inside + aside, lean


def _drawn(
    scenario: Scenario, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The same from handwritten digits, each item another one."""
    pixels, digit = load_digits(return_X_y=True)
    latent = np.empty((len(y), pixels.shape[1]))
    for c, wanted in enumerate(scenario.drawn):
        mine = np.flatnonzero(y == c)
        latent[mine] = pixels[rng.choice(np.flatnonzero(digit == wanted), len(mine), False)] / 5
    latent -= latent.mean(0)
    centre = np.stack([latent[y == c].mean(0) for c in range(scenario.n_classes)])
    return latent, (latent - centre[y]) @ centre.T


def _perceived(
    scenario: Scenario, y: np.ndarray, lean: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(N,) what everybody takes an item for: neighbours 2k and 2k + 1 are mistaken first."""
    other = y ^ 1
    other[other >= scenario.n_classes] = 0
    rank = rng.random(len(y))
    if scenario.visibly:
        rows = np.arange(len(y))
        towards = lean[rows, other] - lean[rows, y]
        noisy = towards + 0.3 * towards.std() * rng.normal(size=len(y))
        for c in range(scenario.n_classes):  # the quantile among the items of its class
            mine = y == c
            rank[mine] = 1 - (noisy[mine].argsort().argsort() + 0.5) / mine.sum()
    return np.where(rank < scenario.misled, other, y)


def _lift(latent: np.ndarray, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Correlated features, many of them 0, as a network's last layer gives."""
    mixing = rng.normal(size=(latent.shape[1], n_features)) / np.sqrt(latent.shape[1])
    own = 0.15 * rng.normal(size=n_features) + 0.1 * rng.normal(size=(len(latent), n_features))
    return np.maximum(latent @ mixing + own, 0).astype(np.float32)


def _ask(scenario: Scenario, z: np.ndarray, rng: np.random.Generator) -> Pairs:
    left, right, person = _questions(scenario, len(z), rng)
    n_people = int(person.max()) + 1
    looks = np.where(np.eye(scenario.n_classes, dtype=bool), 1.0, -1.1) * scenario.looks
    for k in range(0, 2 * scenario.n_confused, 2):
        looks[k, k + 1] = looks[k + 1, k] = scenario.confused
    clear = np.where(rng.random(len(z)) < scenario.unclear, 0.5, 1.0)
    attention, bias = rng.uniform(0.6, 1.5, n_people), 0.6 * rng.normal(size=n_people)
    kind = rng.random(n_people)
    edges = np.cumsum([scenario.careless, scenario.never, scenario.always])
    attention[kind < edges[2]] = 0.0
    bias[(kind >= edges[0]) & (kind < edges[1])] = -4.0
    bias[(kind >= edges[1]) & (kind < edges[2])] = 4.0
    logit = bias[person] + attention[person] * clear[left] * clear[right] * looks[z[left], z[right]]
    same = rng.random(len(left)) < 1 / (1 + np.exp(-logit))
    return Pairs(left, right, same, [f"p{k:04d}" for k in person], n_items=len(z))


def _questions(
    scenario: Scenario, n_items: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``left``, ``right`` and who was asked, (M,) each."""
    wanted = n_items * scenario.per_item // 2
    if not scenario.together:
        left = rng.integers(0, n_items, wanted)
        right = (left + rng.integers(1, n_items, wanted)) % n_items
        return left, right, np.arange(wanted) // PER_PERSON
    i, j = np.triu_indices(scenario.together, 1)
    shown = [rng.choice(n_items, scenario.together, False) for _ in range(wanted // len(i))]
    left = np.concatenate([items[i] for items in shown])
    right = np.concatenate([items[j] for items in shown])
    return left, right, np.repeat(np.arange(len(shown)), len(i))
