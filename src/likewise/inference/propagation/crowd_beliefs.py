"""Perceived classes and people from the judgements alone, where these are enough.

As `graph_beliefs`, but people are told apart: mean field under everybody's own rates, which are
refitted as it goes (Dawid and Skene 1979). Processes that have the judgements
between them count what a person said about their own items, in multiples of 2^-24: the sums of
these are exact, and so the same however many processes there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from likewise.inference.partition.answers import softmax_rows
from likewise.inference.propagation.graph_beliefs import (
    SWEEPS,
    FloatMatrix,
    GraphBeliefs,
    are_few,
    leading_directions,
    likeliest,
    weight_unit,
)
from likewise.noise.annotators import AnnotatorChannel
from likewise.pairs import Pairs
from likewise.pairs.edges import chunks
from likewise.pairs.shards import Exchange, exchange_of, own_items, within

STEPS = 2.0**24  # in a count of 1: their sums are exact up to 500 million judgements
AT_ONCE = 1 << 19  # beliefs that are multiplied together
FloatVector = NDArray[np.float64]


def crowd_beliefs(pairs: Pairs, n_classes: int, seed: int) -> GraphBeliefs[AnnotatorChannel] | None:
    """Beliefs and people from the judgements alone; None where items are too few, or answers one.

    ``pairs`` are listed, by several people. Of a `PairShard`, every process computes the fields of
    its own items: the numbers are those of one process.
    """
    if are_few(pairs, n_classes):
        return None
    answers = CrowdAnswers.of(pairs)
    embedding = _embedding(answers, n_classes)
    return likeliest(embedding, n_classes, seed, lambda z: _settle(answers, z, n_classes))


@dataclass(frozen=True)
class CrowdAnswers:
    """Judgements of a process's own items by item, each with who gave it and what was said.

    A judgement stands once with each of its two items, in this process or another.
    """

    matrix: sparse.csr_array
    """(own items, N) an entry a judgement; what it holds is set by whoever multiplies."""
    group: NDArray[np.integer]
    """(entries,) twice the person, and one more where "same" was said."""
    weight: NDArray[np.float32] | None
    """(entries,) how much each counts, 1 on average; None is 1 for all."""
    n_people: int
    """People there are, R."""
    own: slice
    """The process's items."""
    exchange: Exchange
    """The others."""

    @classmethod
    def of(cls, pairs: Pairs) -> CrowdAnswers:
        assert pairs.annotator is not None
        assert pairs.annotator_names is not None
        exchange, n_people = exchange_of(pairs), len(pairs.annotator_names)
        own = own_items(pairs.n_items, exchange)
        ends = [np.flatnonzero(within(end, own)) for end in (pairs.left, pairs.right)]
        item = np.concatenate([pairs.left[ends[0]], pairs.right[ends[1]]]) - own.start
        number = np.arange(len(item), dtype=np.int32)
        shape = (own.stop - own.start, len(item))
        # A counting sort by item: entries are numbered, so that none of them are added up.
        by_item = sparse.csr_array((np.ones(len(item), bool), (item, number)), shape=shape)
        del item, number
        order, start = by_item.indices, by_item.indptr
        kept = np.concatenate(ends)[order]
        partner = np.concatenate([pairs.right[ends[0]], pairs.left[ends[1]]])[order]
        narrow = np.int16 if 2 * n_people < 2**15 else np.int32
        group = pairs.annotator[kept].astype(narrow) * 2 + pairs.same[kept]
        weight = None
        if pairs.weight is not None:
            unit = weight_unit(pairs.weight[ends[0]], exchange)  # each judgement once
            weight = (pairs.weight[kept] / unit).astype(np.float32)
        empty = np.empty(len(kept), np.float32)
        matrix = sparse.csr_array((empty, partner, start), shape=(shape[0], pairs.n_items))
        return cls(matrix, group.astype(narrow), weight, n_people, own, exchange)

    def times(self, table: FloatVector, columns: FloatMatrix) -> FloatMatrix:
        """(own items, ...) the matrix of each judgement's entry in ``table`` (2R,), by columns
        (N, ...)."""
        np.take(table.astype(np.float32), self.group, out=self.matrix.data, mode="clip")
        if self.weight is not None:
            self.matrix.data *= self.weight
        return np.asarray(self.matrix @ columns)

    def count(self, belief: FloatMatrix | None = None) -> FloatVector:
        """(2R,) judgements of each group; with beliefs (N, C), those about equal classes."""
        total = np.zeros(2 * self.n_people)
        start = self.matrix.indptr
        rows = np.repeat(np.arange(self.own.start, self.own.stop, dtype=np.int32), np.diff(start))
        width = 1 if belief is None else belief.shape[1]
        for part in chunks(len(self.group), max(1, AT_ONCE // width)):
            each = np.ones(part.stop - part.start, np.float32)
            if belief is not None:
                ends = belief[rows[part]], belief[self.matrix.indices[part]]
                each = np.einsum("mc,mc->m", *ends)
            if self.weight is not None:
                each = each * self.weight[part]
            steps = np.rint(each.astype(np.float64) * STEPS)
            total += np.bincount(self.group[part], steps, minlength=len(total))
        both_ends = self.exchange.gather_rows(total[None]).sum(axis=0)
        return np.asarray(both_ends / (2 * STEPS))


def _embedding(answers: CrowdAnswers, n_classes: int) -> FloatMatrix | None:
    """(N, C - 1) eigenvectors by their values of the judgements, each less what its giver usually
    says; None where all answers are the same."""
    asked = answers.count().reshape(-1, 2)  # (R, answers)
    same, every = asked[:, 1], asked.sum(axis=1)
    overall = same.sum() / max(every.sum(), 1e-12)
    if not 0 < overall < 1:
        return None
    usual = (same + overall) / (every + 1)
    centred = np.stack([-usual, 1 - usual], axis=1).ravel()
    n_items = answers.matrix.shape[1]

    def product(vector: NDArray[np.float32]) -> NDArray[np.float32]:
        own = answers.times(centred, vector.ravel().astype(np.float32))
        return answers.exchange.gather_rows(own)

    matrix = LinearOperator((n_items, n_items), matvec=product, dtype=np.float32)
    return leading_directions(matrix, n_classes)


def _settle(
    answers: CrowdAnswers, labels: NDArray[np.integer], n_classes: int
) -> GraphBeliefs[AnnotatorChannel]:
    """Mean field under everybody's rates, refitted as it goes, from a hard guess of the classes."""
    belief = np.eye(n_classes, dtype=np.float32)[labels]
    asked = answers.count()
    channel: AnnotatorChannel | None = None
    for _ in range(SWEEPS):
        equal = answers.count(belief)
        counts = np.stack([equal, asked - equal], axis=1)  # (2R, [equal, different])
        if channel is None:
            all_people = counts.reshape(-1, 2, 2).sum(axis=0)  # (answers, [equal, different])
            a, b = (all_people[1] + 1) / (all_people.sum(axis=0) + 2)
            channel = AnnotatorChannel.from_rates(float(a), float(b), answers.n_people)
        channel = channel.update(torch.from_numpy(counts))
        table = channel.log_table().numpy()  # (2R, [equal, different])
        # log P(answers | z = k) up to a constant of the item.
        renewed = softmax_rows(answers.times(table[:, 0] - table[:, 1], belief))
        renewed = answers.exchange.gather_rows(renewed)
        moved = float(np.abs(renewed - belief).mean())
        belief = renewed
        if moved < 1e-5:
            break
    assert channel is not None
    return GraphBeliefs(belief, channel, float((counts * table).sum()))
