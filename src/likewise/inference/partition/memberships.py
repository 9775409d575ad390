"""Which group each item is of, by belief propagation over the judged pairs.

Groups are numbered; the last column stands for *a group not seen yet*, so that an item which is
unlike all known ones has somewhere to be. Two items of groups not seen yet share one with the
probability that the next two customers of the Chinese restaurant process sit down together.
Where an answer is asked for because of the answers before it, that it was asked says nothing, so
nothing but the answers counts here. The evidence is Bethe's (Yedidia, Freeman & Weiss 2005).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.inference.partition.answers import Answers, softmax_rows
from likewise.inference.partition.arrays import BoolArray, FloatArray, IntArray

Singles = NDArray[np.float32]
DAMPING = 0.3
TOLERANCE = 1e-3  # mean change of an item's beliefs that is none
MAX_ROUNDS = 20
LEAST_CHANCE = 1e-30  # of a pair's answers one way, beside the other


@dataclass(frozen=True)
class Messages:
    """Where messages run: each judged pair twice, the second half the other way round."""

    source: IntArray
    """(2P,) who tells."""
    target: IntArray
    """(2P,) who is told."""
    order: IntArray
    """(2P,) sorted by who is told."""
    first: IntArray
    """(T,) where in that order those to each item that is told anything begin."""
    told: BoolArray
    """(N,) items that are told anything."""

    @classmethod
    def along(cls, answers: Answers) -> Messages:
        """Both ways along every judged pair."""
        source = np.concatenate([answers.left, answers.right])
        target = np.concatenate([answers.right, answers.left])
        order = np.argsort(target, kind="stable")
        told, first = np.unique(target[order], return_index=True)
        mask = np.zeros(answers.n_items, bool)
        mask[told] = True
        return cls(source, target, order, first, mask)

    def add_up(self, message: Singles, prior: Singles) -> Singles:
        """(N, K) log prior plus all messages (2P, K) to each item."""
        total = prior.copy()
        if len(self.first):
            total[self.told] += np.add.reduceat(message[self.order], self.first, axis=0)
        return total


@dataclass(frozen=True)
class Memberships:
    """What is believed of every item's group."""

    belief: FloatArray
    """(N, K) probabilities, the last column for a group not seen yet."""
    judged: FloatArray
    """(N, K) log-likelihood of the answers about each item, its own prior left out."""
    pair_same: FloatArray
    """(P,) P(one group) of each judged pair, all answers considered."""
    evidence: float
    """log P(answers), Bethe's."""


def propagate(
    messages: Messages,
    log_likelihood: FloatArray,
    log_prior: FloatArray,
    meeting: float,
    belief: FloatArray,
) -> Memberships:
    """Beliefs under ``log_prior`` (N, K) and the pairs' log-likelihoods (P, 2), from ``belief``.

    ``meeting``: P(two items share a group | both are of groups not seen yet).
    """
    likelier = log_likelihood.max(1)
    chance = np.maximum(np.exp(log_likelihood - likelier[:, None]), LEAST_CHANCE)
    one_group, two_groups = np.tile(chance.astype(np.float32), (2, 1)).T[:, :, None]
    share = np.ones(log_prior.shape[1], np.float32)
    share[-1] = meeting
    prior = log_prior.astype(np.float32)
    half = len(chance)

    def told_by(believed: Singles) -> Singles:
        """(2P, K) messages of sources that are believed (2P, K) to be of each group."""
        alike = share * believed
        told: Singles = np.log(one_group * alike + two_groups * (1 - alike))
        return told

    now: Singles = belief.astype(np.float32)
    message = told_by(now[messages.source])
    for turn in range(MAX_ROUNDS):
        total = messages.add_up(message, prior)
        before, now = now, softmax_rows(total)
        # What an end believes without what the other told it.
        back = np.concatenate([message[half:], message[:half]])
        cavity = softmax_rows(total[messages.source] - back)
        if turn and np.abs(now - before).sum(1).mean() < TOLERANCE:
            break
        told = told_by(cavity)
        message = told if turn == 0 else DAMPING * message + (1 - DAMPING) * told
    equal = np.einsum("pk,pk->p", cavity[:half] * share, cavity[half:]).astype(np.float64)
    joint = equal * chance[:, 0]
    either = joint + (1 - equal) * chance[:, 1]
    top = total.max(1)
    evidence = float((top + np.log(np.exp(total - top[:, None]).sum(1))).astype(np.float64).sum())
    evidence -= float(np.log(np.maximum(either, LEAST_CHANCE)).sum())
    return Memberships(
        belief=now.astype(np.float64),
        judged=(total - prior).astype(np.float64),
        pair_same=joint / np.maximum(either, LEAST_CHANCE),
        evidence=evidence + float(likelier.sum()),
    )
