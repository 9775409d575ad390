"""The two-rate model of a partition: its evidence, and turns of rates and groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from likewise.inference.partition.answers import Answers, Rates, fit_rates, log_likelihood
from likewise.inference.partition.arrays import FloatArray, IndexArray, IntArray
from likewise.inference.partition.asking import (
    Asking,
    AskingLogRatios,
    asking_log_ratios,
)
from likewise.inference.partition.moves import Mover
from likewise.inference.partition.search import WeightedGraph, contract, objective, split

SHAPES = (0.02, 0.3, 1.0, 3.0, 10.0)
MOST_JOINED = 0.85  # of the items, before any answer: some may be alone however much was asked


@dataclass(frozen=True)
class State:
    """A partition, the rates that fit it, and the weights that follow from them."""

    labels: IntArray
    """(N,) groups."""
    rates: Rates
    """How people answer, given these groups."""
    evidence: float
    """Log evidence of the answers and the partition."""
    graph: WeightedGraph
    """Judged pairs with their log-odds of one group."""
    size_prior: FloatArray
    """(N + 1,) F, see `search`."""


class Problem:
    """Answers, what is known of each pair before them, and whether the number of groups is given.

    ``pair_log_odds`` (P,) is relative to the usual asked pair: 0 says nothing.
    """

    def __init__(
        self,
        answers: Answers,
        pair_log_odds: FloatArray | None,
        n_groups: int | None,
        rng: np.random.Generator,
        asking: Asking | None = None,
    ) -> None:
        self.answers, self.n_groups, self.rng = answers, n_groups, rng
        self.prior = np.zeros(answers.n_pairs) if pair_log_odds is None else pair_log_odds
        self.asking = asking
        self.graph = WeightedGraph.build(
            answers.left, answers.right, np.zeros(answers.n_pairs), answers.n_items
        )

    @property
    def fixed(self) -> bool:
        """Whether the number of groups is given."""
        return self.n_groups is not None

    def of_any_number(self) -> Problem:
        """The same without a given number of groups."""
        return Problem(self.answers, self.prior, None, self.rng, self.asking)

    def same(self, labels: IntArray) -> FloatArray:
        """(P,) 1 where the two items of a judged pair share a group."""
        inside = labels[self.answers.left] == labels[self.answers.right]
        return np.asarray(inside, np.float64)

    def asked(self, labels: IntArray) -> AskingLogRatios | None:
        """What it says of a partition (N,) which pairs were asked; None where that is not asked."""
        if self.fixed and self.asking is None:
            return None
        ratios = asking_log_ratios(self.answers, labels)
        return ratios if self.asking is None else self.asking.log_ratios(labels, ratios)

    def read(self, labels: IntArray, rates: Rates) -> State:
        """Weights, size prior and evidence of a partition under these rates.

        Where asking is not modelled the search sees `joining_log_prior`.
        """
        likelihood = log_likelihood(self.answers, rates)
        weight = likelihood[:, 0] - likelihood[:, 1] + self.prior
        inside = self.same(labels)
        size_prior, total = size_log_prior(labels, self.n_groups)
        if (ratios := self.asked(labels)) is not None:
            by_asking = ratios.by_size
            total += float(by_asking[np.bincount(labels)].sum()) + ratios.baseline
            if self.asking is None:
                degree = 2 * self.answers.n_pairs / len(labels)
                share = float(inside.sum() + 1) / (len(inside) + 2)  # by Laplace's rule
                size_prior = joining_log_prior(len(labels), share, degree)
                by_asking -= ratios.first * np.maximum(np.arange(len(labels) + 1.0) - 1, 0)
            size_prior = size_prior + by_asking
            weight = weight + (ratios.asked - ratios.usual)
        evidence = float(likelihood[:, 1].sum() + weight @ inside + total)
        return State(labels, rates, evidence, self.graph.reweighted(weight), size_prior)

    def fit(self, labels: IntArray, previous: Rates | None = None) -> State:
        """`read` with the rates that fit the partition."""
        return self.read(labels, fit_rates(self.answers, self.same(labels), previous))

    def mover(self, state: State, labels: IntArray | None = None) -> Mover:
        """Moves of items under a state's weights."""
        start = state.labels if labels is None else labels
        return Mover(state.graph, start, state.size_prior, self.fixed)

    def improve(self, state: State, temperature: float = 0.0, n_sweeps: int = 0) -> IntArray:
        """Moves (annealed from ``temperature``), then merges and splits while they gain."""
        mover = self.mover(state)
        mover.anneal(self.rng, temperature, n_sweeps)
        labels = mover.labels
        value = objective(state.graph, labels, state.size_prior)
        for _ in range(5):
            if self.n_groups is None:
                other = contract(state.graph, labels, state.size_prior)
                other = split(state.graph, other, state.size_prior)
            else:
                other = split(state.graph, labels, state.size_prior)
                other = contract(state.graph, other, state.size_prior, self.n_groups)
            mover = self.mover(state, other)
            mover.settle(self.rng)
            other = mover.labels
            before, value = value, objective(state.graph, other, state.size_prior)
            if value <= before + 1e-6:
                break
            labels = other
        return labels

    def alternate(self, state: State, n_rounds: int) -> State:
        """Groups and rates in turn; the state of the highest evidence on the way."""
        best = state
        for _ in range(n_rounds):
            labels = self.improve(state)
            if np.array_equal(labels, state.labels):
                break
            state = self.fit(labels, state.rates)
            if state.evidence > best.evidence:
                best = state
        return best


def joining_log_prior(n_items: int, share: float, degree: float) -> FloatArray:
    """F (N + 1,) for the search where an item joins those that it was compared with.

    ``share`` of the asked pairs lie inside groups, and an item has ``degree`` of them: n members
    attract n times as much as one (Ewens' formula), one as much as makes the share of asked pairs
    that are inside, before any answer, what it is. If an item joins each of d others with odds x
    against being alone, that share is x / (1 + d x). An item is never drawn to others without an
    answer.
    """
    share = float(np.clip(share, 1e-4, 1 - 1e-4))
    join = np.log(share / (1 - min(max(degree, 1.0) * share, MOST_JOINED)))
    step = min(float(join), 0.0) + np.log(np.maximum(np.arange(n_items), 1))
    step[:1] = 0.0
    return np.concatenate([[0.0], np.cumsum(step)])


def size_log_prior(labels: IndexArray, n_groups: int | None) -> tuple[FloatArray, float]:
    """F (N + 1,) for the search, and log P(partition), under the prior that fits it best.

    Unknown number: sizes from a zero-truncated negative binomial (exchangeable sequences of
    clusters, Betancourt, Zanella & Steorts 2022), whose shape goes from the logarithmic series of
    Ewens' formula (0) over the geometric (1, uniform over compositions) to equal sizes. K! orders
    of the groups are one partition; the search sees log K! as log K a group. Known number: a
    Dirichlet-multinomial.
    """
    sizes = np.bincount(labels)
    n_items, k = len(labels), len(sizes)
    n = np.arange(n_items + 1.0)
    if n_groups is not None:
        prior = gammaln(n + 1)
        total = prior[sizes].sum() + gammaln(n_groups) - gammaln(n_groups + n_items)
        return prior, float(total)
    best, best_total = np.zeros(0), -np.inf
    for shape in SHAPES:
        q = _success(shape, (n_items + 1.0) / (k + 0.5))
        none = shape * np.log1p(-q)  # log P(size 0), which is left out
        prior = gammaln(n + shape) - gammaln(shape) + n * np.log(q) + none - np.log(-np.expm1(none))
        total = float(prior[sizes].sum() + gammaln(k + 1) - gammaln(n_items + 1))
        if total > best_total:
            best, best_total = prior + np.log(k + 0.5), total
    best[0] = 0.0
    return best, best_total


def _success(shape: float, mean: float) -> float:
    """The q of a zero-truncated negative binomial of this shape and mean, by bisection."""
    low, high = 1e-9, 1 - 1e-9
    for _ in range(60):
        q = (low + high) / 2
        value = shape * q / (1 - q) / -np.expm1(shape * np.log1p(-q))
        low, high = (q, high) if value < mean else (low, q)
    return (low + high) / 2
