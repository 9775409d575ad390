"""Perceived classes from the judgements alone, where these are enough: no network, no features.

With some fifty judgements an item the leading eigenvectors of the centred judgement matrix
(spectral clustering) and a few sweeps of mean field under two rates place nearly every item for
certain, in time linear in the judgements. Then there is nothing for EM to do: a set with a few
contradictions, or with slips in every tenth answer, is as good as a consistent one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.cluster import KMeans

from likewise.inference.partition.answers import softmax_rows
from likewise.noise.channels import Channel, RateChannel
from likewise.pairs import Pairs
from likewise.pairs.edges import chunks
from likewise.pairs.shards import Exchange, exchange_of, own_items, total_of, within
from likewise.pairs.spectrum import leading_vectors

PER_ITEM = 300  # judgements an item; more of them say nothing new about z
STARTS = 5  # runs of k-means, each settled by itself; the likeliest is kept
SWEEPS = 50
SURE = 0.95  # belief in a class at which an item counts as decided
FloatMatrix = NDArray[np.float32]
OneChannel = TypeVar("OneChannel", bound=Channel)


@dataclass(frozen=True)
class GraphBeliefs(Generic[OneChannel]):
    """What the judgements say of each item, taken together but without the items."""

    evidence: FloatMatrix
    """(N, C) likelihood of each item's judgements for each perceived class; rows sum to 1."""
    channel: OneChannel
    """How answers come from two perceived classes: at what rates that was found."""
    log_likelihood: float
    """Of the judgements, a mean-field bound; compares starts of one set."""

    @property
    def decided(self) -> float:
        """The share of items that are nearly certain."""
        return float((self.evidence.max(axis=1) > SURE).mean())


def thinned(pairs: Pairs, rng: np.random.Generator, per_item: int = PER_ITEM) -> Pairs:
    """At most about ``per_item`` judgements an item, drawn at random.

    A judgement is kept or not by a hash of its left and its right item, wherever it stands: so
    processes that have the judgements between them keep the same ones.
    """
    share = per_item * pairs.n_items / (2 * max(total_of(pairs), 1))
    if pairs.is_complete or share >= 1:
        return pairs
    seed = rng.integers(2**63, dtype=np.uint64)
    keep = np.empty(len(pairs), bool)
    for part in chunks(len(pairs)):
        code = pairs.left[part].astype(np.uint64) << np.uint64(32)
        keep[part] = _mixed((code | pairs.right[part].astype(np.uint64)) ^ seed) < share * 2.0**64
    return pairs.select(keep)


def _mixed(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash that looks random: the finaliser of SplitMix64 (Steele et al., OOPSLA 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        code = (code ^ (code >> np.uint64(shift))) * np.uint64(factor)
    return code ^ (code >> np.uint64(31))


def graph_beliefs(pairs: Pairs, n_classes: int, seed: int) -> GraphBeliefs[RateChannel] | None:
    """Beliefs from the judgements alone; None where items are too few, or answers all one.

    ``pairs`` are listed, by people who need not be told apart. Of a `PairShard`, every process
    computes the fields of its own items, and beliefs are exchanged a sweep: the numbers are those
    of one process.
    """
    if are_few(pairs, n_classes):
        return None
    answers = _Answers.of(pairs)
    embedding = _embedding(answers, n_classes)
    return likeliest(embedding, n_classes, seed, lambda z: _settle(answers, z, n_classes))


def are_few(pairs: Pairs, n_classes: int) -> bool:
    """Whether items are too few for their classes."""
    return pairs.n_items < 3 * n_classes or n_classes < 2


def likeliest(
    embedding: FloatMatrix | None,
    n_classes: int,
    seed: int,
    settle: Callable[[NDArray[np.integer]], GraphBeliefs[OneChannel]],
) -> GraphBeliefs[OneChannel] | None:
    """The best that several clusterings of embedded items settle to; None without an embedding."""
    if embedding is None:
        return None
    found = [settle(cluster(embedding, n_classes, seed + start)) for start in range(STARTS)]
    return max(found, key=lambda beliefs: beliefs.log_likelihood)


@dataclass(frozen=True)
class _Answers:
    """Judgements of a process's own items, by item: how much was asked, how much said "same".

    Sums over all items are taken item by item and then in the order of the items: the same numbers,
    to the last digit, however many processes there are.
    """

    asked: sparse.csr_array
    """(own items, N)."""
    same: sparse.csr_array
    """(own items, N)."""
    own: slice
    """The process's items."""
    exchange: Exchange
    """The others."""

    @classmethod
    def of(cls, pairs: Pairs) -> _Answers:
        exchange = exchange_of(pairs)
        own = own_items(pairs.n_items, exchange)
        shape = (own.stop - own.start, pairs.n_items)
        ours, theirs = (np.flatnonzero(within(end, own)) for end in (pairs.left, pairs.right))
        row = np.concatenate([pairs.left[ours], pairs.right[theirs]]) - own.start
        column = np.concatenate([pairs.right[ours], pairs.left[theirs]])
        kept = np.concatenate([ours, theirs])
        weight = np.ones(len(kept), np.float32)
        if pairs.weight is not None:
            unit = weight_unit(pairs.weight[ours], exchange)  # each judgement once
            weight = (pairs.weight[kept] / unit).astype(np.float32)
        asked = sparse.coo_array((weight, (row, column)), shape=shape).tocsr()
        said = weight * pairs.same[kept]
        same = sparse.coo_array((said, (row, column)), shape=shape).tocsr()
        return cls(asked, same, own, exchange)

    def sums(self, *own: NDArray[np.floating]) -> NDArray[np.float64]:
        """Of each array (own items, ...), over all items and what else it has."""
        rows = [part.reshape(len(part), -1).sum(axis=1, dtype=np.float64) for part in own]
        return np.asarray(self.exchange.gather_rows(np.stack(rows, axis=1)).sum(axis=0))

    def totals(self) -> NDArray[np.float64]:
        """How much was asked, how much said "same": over all ordered pairs."""
        ones = np.ones(self.asked.shape[1], np.float64)
        return self.sums(self.asked @ ones, self.same @ ones)


def weight_unit(weight: NDArray[np.floating], exchange: Exchange) -> float:
    """The mean weight of what counts, over all processes: in what unit it is, nobody knows."""
    known = weight[weight > 0]
    ends = exchange.gather_rows(np.array([[known.sum(dtype=np.float64), len(known)]]))
    return max(float(ends[:, 0].sum() / max(ends[:, 1].sum(), 1)), 1e-12)


def _embedding(answers: _Answers, n_classes: int) -> FloatMatrix | None:
    """(N, C - 1) eigenvectors by their values; None where all answers are the same.

    Whether they show any classes is told by what becomes of them: under two rates that are refitted
    as it goes, mean field falls back to flat beliefs where there is nothing to see.
    """
    asked, same = answers.totals()
    if not 0 < same < asked:
        return None
    n_items = answers.asked.shape[1]
    centred = (answers.same - (same / asked) * answers.asked).astype(np.float32)

    def product(vector: NDArray[np.float32]) -> NDArray[np.float32]:
        return answers.exchange.gather_rows(centred @ vector.ravel())

    matrix = LinearOperator((n_items, n_items), matvec=product, dtype=np.float32)
    return leading_directions(matrix, n_classes)


def leading_directions(matrix: LinearOperator, n_classes: int) -> FloatMatrix:
    """(N, C - 1) leading eigenvectors of a symmetric matrix (N, N), by their values."""
    # Lanczos from a fixed vector: it must not depend on anybody's random state.
    start = np.random.default_rng(0).normal(size=matrix.shape[0]).astype(np.float32)
    values, vectors = leading_vectors(matrix, n_classes - 1, start, tol=1e-2)
    return np.asarray(vectors * np.maximum(values, 0), np.float32)


def cluster(embedding: FloatMatrix, n_classes: int, seed: int) -> NDArray[np.integer]:
    """(N,) k-means clusters of embedded items (N, d)."""
    return np.asarray(KMeans(n_classes, n_init=1, random_state=seed).fit(embedding).labels_)


def _settle(
    answers: _Answers, labels: NDArray[np.integer], n_classes: int
) -> GraphBeliefs[RateChannel]:
    """Mean field under two rates, refitted as it goes, from a hard guess of the classes."""
    belief = np.eye(n_classes, dtype=np.float32)[labels]
    asked_all, same_all = answers.totals() / 2
    for _ in range(SWEEPS):
        same, asked = answers.same @ belief, answers.asked @ belief  # (own items, C)
        mine = belief[answers.own]
        equal_same, equal = answers.sums(mine * same, mine * asked) / 2
        a = (equal_same + 1) / (equal + 2)
        b = (same_all - equal_same + 1) / (asked_all - equal + 2)
        # log P(answers | z = k) up to a constant of the item.
        yes, no = np.float32(np.log(a / b)), np.float32(np.log((1 - a) / (1 - b)))
        renewed = softmax_rows(yes * same + no * (asked - same))
        renewed = answers.exchange.gather_rows(renewed)
        moved = float(np.abs(renewed - belief).mean())
        belief = renewed
        if moved < 1e-5:
            break
    rest_same, rest = same_all - equal_same, asked_all - equal
    fit = equal_same * np.log(a) + (equal - equal_same) * np.log(1 - a)
    fit += rest_same * np.log(b) + (rest - rest_same) * np.log(1 - b)
    channel = RateChannel(float(a), float(b))
    return GraphBeliefs(belief.astype(np.float32), channel, float(fit))
