"""Perceived classes from the judgements alone, where these are enough: no network, no features.

With some fifty judgements an item the leading eigenvectors of the centred judgement matrix
(spectral clustering) and a few sweeps of mean field under two rates place nearly every item for
certain, in time linear in the judgements. Then there is nothing for EM to do: a set with a few
contradictions, or with slips in every tenth answer, is as good as a consistent one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans

from likewise.noise.channels import RateChannel
from likewise.pairs import Pairs
from likewise.pairs.spectrum import leading_vectors

PER_ITEM = 300  # judgements an item; more of them say nothing new about z
STARTS = 5  # runs of k-means, each settled by itself; the likeliest is kept
SWEEPS = 50
SURE = 0.95  # belief in a class at which an item counts as decided
FloatMatrix = NDArray[np.float32]


@dataclass(frozen=True)
class GraphBeliefs:
    """What the judgements say of each item, taken together but without the items."""

    evidence: FloatMatrix
    """(N, C) likelihood of each item's judgements for each perceived class; rows sum to 1."""
    channel: RateChannel
    """The two rates of "same" at which that was found."""
    log_likelihood: float
    """Of the judgements, a mean-field bound; compares starts of one set."""

    @property
    def decided(self) -> float:
        """The share of items that are nearly certain."""
        return float((self.evidence.max(axis=1) > SURE).mean())


def thinned(pairs: Pairs, rng: np.random.Generator, per_item: int = PER_ITEM) -> Pairs:
    """At most about ``per_item`` judgements an item, drawn at random."""
    share = per_item * pairs.n_items / (2 * max(len(pairs), 1))
    if pairs.is_complete or share >= 1:
        return pairs
    # Drawn with repetition and cleaned: a permutation of 200 million takes a gigabyte and a half.
    # So many draws leave that share: each judgement is missed with probability 1 - share.
    count = int(-np.log1p(-min(share, 0.95)) * len(pairs))
    drawn = np.unique(rng.integers(0, len(pairs), count, dtype=np.int64))
    return pairs.select(drawn)


def graph_beliefs(pairs: Pairs, n_classes: int, seed: int) -> GraphBeliefs | None:
    """Beliefs from the judgements alone; None where items are too few, or answers all one.

    ``pairs`` are listed, by people who need not be told apart.
    """
    if pairs.n_items < 3 * n_classes or n_classes < 2:
        return None
    answers = _Answers.of(pairs)
    embedding = _embedding(answers, n_classes)
    if embedding is None:
        return None
    found = [
        _settle(answers, _cluster(embedding, n_classes, seed + start), n_classes)
        for start in range(STARTS)
    ]
    return max(found, key=lambda beliefs: beliefs.log_likelihood)


@dataclass(frozen=True)
class _Answers:
    """Judgements as two symmetric sparse matrices: how much was asked, how much said "same"."""

    asked: sparse.csr_array
    same: sparse.csr_array

    @classmethod
    def of(cls, pairs: Pairs) -> _Answers:
        weight = np.ones(len(pairs), np.float32) if pairs.weight is None else pairs.weight
        weight = weight / max(float(weight[weight > 0].mean()), 1e-12)  # in what unit, nobody knows
        shape = (pairs.n_items, pairs.n_items)
        ends = (pairs.left, pairs.right)
        asked = sparse.coo_array((weight, ends), shape=shape).tocsr()
        same = sparse.coo_array((weight * pairs.same, ends), shape=shape).tocsr()
        return cls(asked + asked.T, same + same.T)

    @property
    def share_same(self) -> float:
        return float(self.same.sum() / max(self.asked.sum(), 1e-12))


def _embedding(answers: _Answers, n_classes: int) -> FloatMatrix | None:
    """(N, C - 1) eigenvectors by their values; None where all answers are the same.

    Whether they show any classes is told by what becomes of them: under two rates that are refitted
    as it goes, mean field falls back to flat beliefs where there is nothing to see.
    """
    share = answers.share_same
    if not 0 < share < 1:
        return None
    n_items = answers.asked.shape[0]
    centred = (answers.same - share * answers.asked).astype(np.float32)
    # Lanczos from a fixed vector: it must not depend on anybody's random state.
    start = np.random.default_rng(0).normal(size=n_items).astype(np.float32)
    values, vectors = leading_vectors(centred, n_classes - 1, start, tol=1e-2)
    return np.asarray(vectors * np.maximum(values, 0), np.float32)


def _cluster(embedding: FloatMatrix, n_classes: int, seed: int) -> NDArray[np.integer]:
    return np.asarray(KMeans(n_classes, n_init=1, random_state=seed).fit(embedding).labels_)


def _settle(answers: _Answers, labels: NDArray[np.integer], n_classes: int) -> GraphBeliefs:
    """Mean field under two rates, refitted as it goes, from a hard guess of the classes."""
    belief = np.eye(n_classes, dtype=np.float32)[labels]
    asked_all, same_all = answers.asked.sum() / 2, answers.same.sum() / 2
    for _ in range(SWEEPS):
        same, asked = answers.same @ belief, answers.asked @ belief  # (N, C)
        equal_same, equal = (belief * same).sum() / 2, (belief * asked).sum() / 2
        a = (equal_same + 1) / (equal + 2)
        b = (same_all - equal_same + 1) / (asked_all - equal + 2)
        # log P(answers | z = k) up to a constant of the item.
        yes, no = np.log(a / b), np.log((1 - a) / (1 - b))
        field = yes * same + no * (asked - same)
        field -= field.max(axis=1, keepdims=True)
        renewed = np.exp(field)
        renewed /= renewed.sum(axis=1, keepdims=True)
        moved = float(np.abs(renewed - belief).mean())
        belief = renewed
        if moved < 1e-5:
            break
    rest_same, rest = same_all - equal_same, asked_all - equal
    fit = equal_same * np.log(a) + (equal - equal_same) * np.log(1 - a)
    fit += rest_same * np.log(b) + (rest - rest_same) * np.log(1 - b)
    channel = RateChannel(float(a), float(b))
    return GraphBeliefs(belief.astype(np.float32), channel, float(fit))
