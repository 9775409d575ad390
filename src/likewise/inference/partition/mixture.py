"""Groups that judgements and features show together: a Gaussian mixture with judged pairs.

The objective of `search` plus the log density of the items' points: the groups are Gaussians of one
covariance whose means are integrated out. This is the model of HMRF-KMeans (Basu, Bilenko & Mooney
2004); here it is searched by simulated annealing of single items, collapsed Gibbs sweeps that cool
down, since k-means gets stuck where groups are many. In turns with it the covariance within groups
and the rates of people are fitted to the groups that were found; where answers are enough for it,
every two groups then get their own rate of "same" (`blocks`).

Points are the first components, as many as groups can differ in, scaled to one variance: which of
them tell groups apart is left to the covariance within groups.
"""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.answers import Answers, two_rates
from likewise.inference.partition.arrays import FloatArray, IndexArray, IntArray
from likewise.inference.partition.blocks import Blocks, fit_cells
from likewise.inference.partition.model import Problem, size_log_prior
from likewise.inference.partition.moves import Mover
from likewise.inference.partition.refine import blocks_apply, square_counts
from likewise.inference.partition.search import WeightedGraph, canonical
from likewise.inference.partition.starts import k_means

TURNS = 3  # of groups, covariance and rates
CELL_TURNS = 2  # of groups, covariance and cells
HOT, WARM = 4.0, 2.0  # temperatures of the first turn and of the others, in nats
SWEEPS = 25
MAX_VISITS = 60_000  # of items, in a turn
ITEMS_AN_AXIS = 8  # at least: with fewer, a covariance is mostly chance
MORE_AXES = 2  # than groups
RIDGE = 1e-6


class Gaussians:
    """Groups of points (N, d) of variance 1 within groups; the means of groups are N(0, between)
    and integrated out."""

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self._square = np.square(points).sum(1)
        self._between = max(float(self._square.mean()) / points.shape[1] - 1.0, 0.1)

    def reset(self, labels: IndexArray, n_groups: int) -> None:
        """Take this partition (N,)."""
        self._sum = np.zeros((n_groups, self._points.shape[1]))
        np.add.at(self._sum, labels, self._points)

    def move(self, item: int, own: int, target: int) -> None:
        """Take an item from its own group into another."""
        self._sum[own] -= self._points[item]
        self._sum[target] += self._points[item]

    def log_density(self, items: IndexArray, own: IndexArray, size: IntArray) -> FloatArray:
        """(n, K) of each item given the other items of every group, up to a constant; ``own`` (n,)
        are the groups that they are in, ``size`` (K,) all groups' items."""
        here = np.arange(len(items))
        points, square = self._points[items], self._square[items]
        weight, variance = self._predictive(size)
        means = self._sum * weight[:, None]
        distance = square[:, None] - 2 * points @ means.T + np.square(means).sum(1)
        variance = np.tile(variance, (len(items), 1))
        alone, variance[here, own] = self._predictive(size[own] - 1)
        distance[here, own] = np.square(points - (self._sum[own] - points) * alone[:, None]).sum(1)
        dims = points.shape[1]
        return np.asarray(-0.5 * distance / variance - 0.5 * dims * np.log(variance))

    def _predictive(self, size: IntArray) -> tuple[FloatArray, FloatArray]:
        """Of groups of so many items: what their sum is multiplied by to give the mean, and the
        variance of one more item."""
        precision = size + 1 / self._between
        return 1 / precision, 1 + 1 / precision


class MixtureMover(Mover):
    """Items that move between groups by their judged pairs and by where they lie."""

    def __init__(
        self,
        graph: WeightedGraph,
        labels: IndexArray,
        size_prior: FloatArray,
        points: FloatArray,
    ) -> None:
        self._gaussians = Gaussians(points)
        super().__init__(graph, labels, size_prior, fixed=True)

    def _reset(self, labels: IndexArray) -> None:
        super()._reset(labels)
        self._gaussians.reset(self._labels, len(self._size))

    def gains_of(self, items: IndexArray) -> FloatArray:
        """(n, K) the objective that each item adds in every group."""
        density = self._gaussians.log_density(items, self._labels[items], self._size)
        return super().gains_of(items) + density

    def move(self, item: int, target: int) -> None:
        """Put an item into another group."""
        self._gaussians.move(item, self._labels[item], target)
        super().move(item, target)


class MixtureBlocks(Blocks):
    """The same where every two groups have their own rate of "same"."""

    def __init__(
        self,
        counts: FloatArray,
        labels: IndexArray,
        size_prior: FloatArray,
        points: FloatArray,
    ) -> None:
        self._gaussians = Gaussians(points)
        super().__init__(counts, labels, size_prior, fixed=True)
        self.prior = fit_cells(self)

    def reset(self, labels: IndexArray) -> None:
        """Take this partition."""
        super().reset(labels)
        self._gaussians.reset(self.labels, len(self.size))

    def gains_of(self, items: IndexArray) -> FloatArray:
        """(n, K) the objective that each item adds in every group."""
        density = self._gaussians.log_density(items, self.labels[items], self.size)
        return super().gains_of(items) + density

    def move(self, item: int, target: int) -> None:
        """Put an item into another group."""
        self._gaussians.move(item, self.labels[item], target)
        super().move(item, target)


def find_mixture(
    answers: Answers,
    points: FloatArray,
    n_groups: int,
    rates: tuple[float, float],
    rng: np.random.Generator,
) -> IntArray:
    """(N,) groups of items at ``points`` (N, d), principal components, the largest first.

    ``rates``: P("same" | one group) and P("same" | two groups) to begin with.
    """
    white = _whitened(points, n_groups)
    labels = _none_empty(k_means(white, n_groups, rng), n_groups)
    problem = Problem(answers, None, n_groups, rng)
    state = problem.read(labels, two_rates(answers, *rates))
    sweeps = max(min(SWEEPS, MAX_VISITS // len(points)), 2)
    for turn in range(TURNS):
        within = _within_groups(white, labels)
        mover = MixtureMover(state.graph, labels, state.size_prior, within)
        mover.anneal(rng, HOT if turn == 0 else WARM, sweeps)
        labels = mover.labels
        state = problem.fit(labels, state.rates)
    if not blocks_apply(answers, labels):
        return labels
    counts = square_counts(answers, state.rates, problem.same(labels))
    for _ in range(CELL_TURNS):
        within = _within_groups(white, labels)
        blocks = MixtureBlocks(counts, labels, size_log_prior(labels, n_groups)[0], within)
        blocks.anneal(rng, WARM, sweeps)
        labels = canonical(blocks.labels)
    return labels


def _whitened(points: FloatArray, n_groups: int) -> FloatArray:
    """(N, d) the first components, scaled to variance 1."""
    n_axes = min(n_groups + MORE_AXES, max(len(points) // ITEMS_AN_AXIS, 1), points.shape[1])
    chosen = points[:, :n_axes] - points[:, :n_axes].mean(0)
    return np.asarray(chosen / np.maximum(chosen.std(0), 1e-12))


def _within_groups(points: FloatArray, labels: IntArray) -> FloatArray:
    """(N, d) the same points in axes in which groups (N,) have variance 1."""
    n, dims = points.shape
    size = np.bincount(labels)
    means = np.zeros((len(size), dims))
    np.add.at(means, labels, points)
    rest = points - (means / size[:, None])[labels]
    covariance = rest.T @ rest / max(n - len(size), 1)
    share = dims / (dims + n)  # off the diagonal, so few items tell little
    covariance = (1 - share) * covariance + share * np.diag(np.diag(covariance))
    covariance += RIDGE * max(np.trace(covariance) / dims, 1e-12) * np.eye(dims)
    return np.asarray(np.linalg.solve(np.linalg.cholesky(covariance), points.T).T)


def _none_empty(labels: IntArray, n_groups: int) -> IntArray:
    """(N,) the same, an item of the largest group in each that had none."""
    labels = labels.copy()
    for group in np.flatnonzero(np.bincount(labels, minlength=n_groups) == 0):
        largest = np.bincount(labels, minlength=n_groups).argmax()
        labels[np.flatnonzero(labels == largest)[0]] = group
    return labels
