"""Groups that grow with the answers: opened where an item is unlike all known ones, merged, split.

Beliefs about every item (`memberships`), sizes of groups and rates of people are found in turn;
what changes the groups is kept where it raises the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

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
ANY_LOSS = 1e6  # times what a group costs: what a cut must be worth that is wanted at any loss
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
        most = max(n_known, self._n_groups or 0)
        if 2 * self.answers.n_pairs * (most + 1) > MAX_FLOATS:
            raise InputError(
                f"{most:,} groups and {self.answers.n_pairs:,} judged pairs are too many to go "
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
        """Groups opened, and merged and split where that is clearly better; or, if a number is
        given, at any loss until there are so many."""
        if self._n_groups is not None:
            return self._with_number(state, self._n_groups)
        state = self._without_empty(self._open(state))
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
        for _ in range(MAX_OPENED):
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
        if not len(empty) or len(empty) == len(weight):
            return state
        return self.settle(_without(state.belief, empty), state.rates)

    def _with_number(self, state: Grown, wanted: int) -> Grown:
        """Exactly ``wanted`` groups: where there are others, those that answers ask for first."""
        if self._n_used(state) == wanted:
            return state
        free = Grower(self.answers, self._prior)
        state = free.grow(free.settle(state.belief, state.rates))
        while self._n_used(state) > wanted:
            used = self._of_used(state)
            merged = (self.settle(other, used.rates) for other in self._merged(used, forced=True))
            state = max(merged, key=lambda other: other.score)
        while self._n_used(state) < wanted:
            used = self._of_used(state)
            split = (self.settle(other, used.rates) for other in self._split(used, forced=True))
            more = [one for one in split if self._n_used(state) < self._n_used(one) <= wanted]
            if not more:  # no cut of a group stands up to the answers
                return self._set_apart(used, wanted - self._n_used(used))
            state = max(more, key=lambda other: other.score)
        return state

    def _known(self, state: Grown) -> IntArray:
        """(n,) the items whose group is told in the end."""
        return np.flatnonzero(self.judged | state.by_items)

    def _n_used(self, state: Grown) -> int:
        return len(np.unique(state.labels[self._known(state)]))

    def _of_used(self, state: Grown) -> Grown:
        """The same without the groups of which no item is likeliest to be."""
        used = state.labels[self._known(state)]
        unused = np.setdiff1d(np.arange(state.belief.shape[1] - 1), used)
        belief = _without(state.belief, unused)
        return replace(state, found=replace(state.found, belief=belief))

    def _set_apart(self, state: Grown, count: int) -> Grown:
        """The items that are least sure of their groups, each as a group of its own."""
        belief, labels = state.belief.copy(), state.labels
        known = self._known(state)
        size = np.bincount(labels[known])
        alone: list[int] = []
        for item in known[np.argsort(belief[known, labels[known]], kind="stable")].tolist():
            if len(alone) < count and size[labels[item]] > 1:
                size[labels[item]] -= 1
                alone.append(item)
        belief[alone] = 0.0
        belief = np.insert(belief, [belief.shape[1] - 1] * len(alone), 0.0, axis=1)
        belief[alone, np.arange(-len(alone), 0) - 1] = 1.0
        apart = np.isin(self.answers.left, alone) | np.isin(self.answers.right, alone)
        found = replace(state.found, belief=belief)
        return replace(state, found=replace(found, pair_same=np.where(apart, 0.0, found.pair_same)))

    def _merged(self, state: Grown, forced: bool = False) -> Iterator[FloatArray]:
        """Beliefs with two groups made one: those that the answers between them draw together, or
        (``forced``) drive apart the least."""
        belief = state.belief[:, :-1]
        odds = self._log_odds(state)[:, None]
        pull = belief[self.answers.left].T @ (odds * belief[self.answers.right])
        first, second = np.triu_indices(belief.shape[1], 1)
        value = (pull + pull.T)[first, second]
        for pair in np.argsort(-value)[:MAX_PROPOSALS]:
            if value[pair] <= 0 and not forced:
                return
            merged = np.delete(state.belief, second[pair], axis=1)
            merged[:, first[pair]] += state.belief[:, second[pair]]
            yield merged

    def _log_odds(self, state: Grown) -> FloatArray:
        """(P,) of each judged pair to be of one group, by its own answers."""
        likelihood = log_likelihood(self.answers, state.rates)
        return np.asarray(likelihood[:, 0] - likelihood[:, 1])

    def _split(self, state: Grown, forced: bool = False) -> Iterator[FloatArray]:
        """Beliefs with groups cut where their answers disagree (`search.split`), or (``forced``)
        where they agree the least: few groups, of which that costs least."""
        graph = WeightedGraph.build(
            self.answers.left, self.answers.right, self._log_odds(state), self.answers.n_items
        )
        sure = state.belief.max(1) > LIKELY_NEW
        labels = np.where(sure, state.labels, state.labels + state.belief.shape[1])
        # A cut must gain what a group costs.
        cost = np.full(self.answers.n_items + 1, -0.5 * np.log(max(int(self.judged.sum()), 2)))
        cost[0] = 0.0
        cut = split(graph, labels, -ANY_LOSS * cost if forced else cost)
        left, right = self.answers.left, self.answers.right
        between = (labels[left] == labels[right]) & (cut[left] != cut[right])
        lost = np.bincount(
            labels[left[between]], self._log_odds(state)[between], 2 * state.belief.shape[1]
        )
        found: list[tuple[float, int, IntArray]] = []
        for group in range(state.belief.shape[1] - 1):
            members = np.flatnonzero(sure & (state.labels == group))
            parts = np.unique(cut[members])
            if len(parts) == 2:
                found.append((float(lost[group]), group, members[cut[members] == parts[1]]))
        if forced:
            found = sorted(found, key=lambda one: one[0])[:MAX_PROPOSALS]
        for _, group, moved in found:
            belief = np.insert(state.belief, -1, 0.0, axis=1)
            belief[moved, -2] = belief[moved, group]
            belief[moved, group] = 0.0
            yield belief


def _without(belief: FloatArray, groups: IntArray) -> FloatArray:
    """(N, K - n) beliefs without some groups (n,)."""
    rest = np.delete(belief, groups, axis=1)
    return np.asarray(rest / rest.sum(1, keepdims=True))


def concentration(n_groups: int, n_items: float) -> float:
    """Ewens' alpha for which so many items are expected in so many groups, by a fixed point."""
    alpha = max(float(n_groups), 1.0)
    for _ in range(30):
        alpha = max(n_groups, 1) / np.log1p(max(n_items, 1.0) / alpha)
    return float(np.clip(alpha, 0.1, max(n_items, 1.0)))
