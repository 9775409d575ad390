"""Groups that grow with the answers: opened where an item is unlike all known ones, merged, split.

Beliefs about every item (`memberships`), sizes of groups and rates of people are found in turn;
what changes the groups is kept where it raises the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from likewise.errors import InputError
from likewise.inference.partition.answers import (
    Answers,
    Rates,
    fit_rates,
    log_likelihood,
)
from likewise.inference.partition.arrays import FloatArray, IntArray
from likewise.inference.partition.memberships import Memberships, Messages, propagate
from likewise.inference.partition.search import WeightedGraph, split

# P(items | group): (N, K) from the log-likelihood (N, K) of the answers about each item and what is
# believed of them; the features' part.
ItemPrior = Callable[[FloatArray, FloatArray], FloatArray]

ROUNDS = 3  # of beliefs and rates in turn, after answers or groups have changed
LIKELY_NEW = 0.5
MAX_OPENED = 5  # groups a fit; what is still new after that waits for the next
LEAST_WEIGHT = 0.5  # items: a group that holds less is none
MAX_PROPOSALS = 3
MAX_FLOATS = 60_000_000  # messages: two for each judged pair, a number for each group
MARGIN = 3.0  # nats: groups change where that is twenty times as likely, not by rounding


@dataclass(frozen=True)
class Grown:
    """Groups with what is believed of each item."""

    found: Memberships
    """Beliefs (N, K + 1), the last column for a group not seen yet."""
    rates: Rates
    """How people answer."""
    meeting: float
    """P(two items share a group | both are of groups not seen yet)."""
    score: float
    """Evidence, less what the number of groups costs."""
    by_items: bool
    """Whether what items look like had a say."""

    @property
    def belief(self) -> FloatArray:
        """(N, K + 1) beliefs."""
        return self.found.belief

    @property
    def labels(self) -> IntArray:
        """(N,) the likeliest known group of each item."""
        return np.asarray(self.belief[:, :-1].argmax(1), np.int64)


class Grower:
    """Answers about items, and what is known of the items beside them."""

    def __init__(
        self,
        answers: Answers,
        prior: ItemPrior | None = None,
        n_groups: int | None = None,
    ) -> None:
        self.answers = answers
        self.messages = Messages.along(answers)
        self.judged = self.messages.told
        self._prior = prior
        self._n_groups = n_groups

    def begin(self, labels: IntArray, probability: FloatArray) -> FloatArray:
        """(N, K + 1) beliefs from groups (N,), -1 for none, and how sure each is (N,)."""
        n_known = int(labels.max(initial=-1)) + 1
        if 2 * self.answers.n_pairs * (n_known + 1) > MAX_FLOATS:
            raise InputError(
                f"{n_known:,} groups and {self.answers.n_pairs:,} judged pairs are too many to go "
                "on from; group anew, without start, and ask about pairs that something suggests."
            )
        placed = np.flatnonzero(labels >= 0)
        sizes = np.append(np.bincount(labels[placed], minlength=n_known), 1.0)
        belief = np.tile(sizes / sizes.sum(), (len(labels), 1))
        sure = np.clip(np.nan_to_num(probability[placed], nan=0.5), 0.0, 1.0)
        belief[placed] *= 1 - sure[:, None]
        belief[placed, labels[placed]] += sure
        return belief

    def settle(self, belief: FloatArray, rates: Rates, rounds: int = ROUNDS) -> Grown:
        """Beliefs, sizes, rates and the features' part in turn, from ``belief`` (N, K + 1)."""
        # What is believed of judged items stands for their answers until those are read.
        judged_likelihood = np.where(self.judged[:, None], np.log(np.maximum(belief, 1e-6)), 0.0)
        for turn in range(rounds):
            log_prior, meeting = self._log_prior(belief, judged_likelihood)
            likelihood = log_likelihood(self.answers, rates)
            found = propagate(self.messages, likelihood, log_prior, meeting, belief)
            belief, judged_likelihood = found.belief, found.judged
            if turn < rounds - 1:
                rates = fit_rates(self.answers, found.pair_same, rates)
        n_judged = max(int(self.judged.sum()), 2)
        cost = 0.5 * np.log(n_judged) * (belief.shape[1] - 1)
        return Grown(found, rates, meeting, found.evidence - float(cost), self._prior is not None)

    def _log_prior(
        self, belief: FloatArray, judged_likelihood: FloatArray
    ) -> tuple[FloatArray, float]:
        """(N, K + 1) of groups before an item's answers, and P(two new items meet).

        A group's share is that of the judged items in it, a new one's by Ewens' formula.
        """
        weight = belief[self.judged, :-1].sum(0)
        n_known = len(weight)
        alpha = concentration(n_known, float(weight.sum()))
        share = np.append(weight + alpha / (n_known + 1), alpha if self._n_groups is None else 1e-9)
        share /= share.sum()
        prior = np.tile(share, (len(belief), 1))
        if self._prior is not None and n_known > 1:
            known = self._prior(judged_likelihood[:, :-1], prior[:, :-1])
            prior[:, :-1] = known * (1 - prior[:, -1:])
        return np.log(np.maximum(prior, 1e-12)), 1 / (alpha + 1)

    def grow(self, state: Grown) -> Grown:
        """Groups opened, and merged and split where that is clearly better."""
        state = self._without_empty(self._open(state))
        if self._n_groups is not None:
            return state
        n_known = state.belief.shape[1] - 1
        # Of so many pairs of groups the answers between one are wrong by chance (Bonferroni).
        chance = float(np.log(max(n_known * (n_known - 1) / 2, 1)))
        for proposals, margin in ((self._merged, MARGIN + chance), (self._split, MARGIN)):
            # Settled as long as what it is compared with, unless that leads astray.
            longer = self.settle(state.belief, state.rates)
            state = longer if longer.score > state.score - MARGIN else state
            for belief in proposals(state):
                other = self._without_empty(self.settle(belief, state.rates))
                if other.score > state.score + margin:
                    state = other
                    break
        return state

    def _open(self, state: Grown) -> Grown:
        """A group for each item that is likelier of none of the known ones, and for its likes."""
        for _ in range(MAX_OPENED if self._n_groups is None else 0):
            new = np.where(self.judged, state.belief[:, -1], 0.0)
            item = int(new.argmax())
            if new[item] < LIKELY_NEW:
                break
            # Others that are new join it as far as they were found to be the same: left behind,
            # they would hold each other, and it, among what was not seen yet.
            likeness = np.full(len(new), state.meeting)
            left, right = self.answers.left, self.answers.right
            for end, other in ((left, right), (right, left)):
                likeness[other[end == item]] = state.found.pair_same[end == item]
            likeness[item] = 1.0
            joining = state.belief[:, -1] * likeness
            belief = np.insert(state.belief, -1, joining, axis=1)
            belief[:, -1] -= joining
            belief[item] = 0.0
            belief[item, -2] = 1.0
            opened = self.settle(belief, state.rates)
            if opened.found.evidence < state.found.evidence - MARGIN:
                break  # with it all else fits worse: rather an item that people err about
            state = opened
        return state

    def _without_empty(self, state: Grown) -> Grown:
        weight = state.belief[self.judged, :-1].sum(0)
        empty = np.flatnonzero(weight < LEAST_WEIGHT)
        if self._n_groups is not None or not len(empty) or len(empty) == len(weight):
            return state
        belief = np.delete(state.belief, empty, axis=1)
        return self.settle(belief / belief.sum(1, keepdims=True), state.rates)

    def _merged(self, state: Grown) -> Iterator[FloatArray]:
        """Beliefs with two groups made one: those that the answers between them draw together."""
        belief = state.belief[:, :-1]
        odds = self._log_odds(state)[:, None]
        pull = belief[self.answers.left].T @ (odds * belief[self.answers.right])
        first, second = np.triu_indices(belief.shape[1], 1)
        value = (pull + pull.T)[first, second]
        for pair in np.argsort(-value)[:MAX_PROPOSALS]:
            if value[pair] <= 0:
                return
            merged = np.delete(state.belief, second[pair], axis=1)
            merged[:, first[pair]] += state.belief[:, second[pair]]
            yield merged

    def _log_odds(self, state: Grown) -> FloatArray:
        """(P,) of each judged pair to be of one group, by its own answers."""
        likelihood = log_likelihood(self.answers, state.rates)
        return np.asarray(likelihood[:, 0] - likelihood[:, 1])

    def _split(self, state: Grown) -> Iterator[FloatArray]:
        """Beliefs with groups cut where their answers disagree (`search.split`)."""
        graph = WeightedGraph.build(
            self.answers.left, self.answers.right, self._log_odds(state), self.answers.n_items
        )
        sure = state.belief.max(1) > LIKELY_NEW
        labels = np.where(sure, state.labels, state.labels + state.belief.shape[1])
        # A cut must gain what a group costs.
        cost = np.full(self.answers.n_items + 1, -0.5 * np.log(max(int(self.judged.sum()), 2)))
        cost[0] = 0.0
        cut = split(graph, labels, cost)
        for group in range(state.belief.shape[1] - 1):
            members = np.flatnonzero(sure & (state.labels == group))
            parts = np.unique(cut[members])
            if len(parts) == 2:
                belief = np.insert(state.belief, -1, 0.0, axis=1)
                moved = members[cut[members] == parts[1]]
                belief[moved, -2] = belief[moved, group]
                belief[moved, group] = 0.0
                yield belief


def concentration(n_groups: int, n_items: float) -> float:
    """Ewens' alpha for which so many items are expected in so many groups, by a fixed point."""
    alpha = max(float(n_groups), 1.0)
    for _ in range(30):
        alpha = max(n_groups, 1) / np.log1p(max(n_items, 1.0) / alpha)
    return float(np.clip(alpha, 0.1, max(n_items, 1.0)))
