"""Groups by a Gaussian mixture with judged pairs, beside slow references."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from likewise.inference.partition import mixture
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.blocks import Blocks
from likewise.inference.partition.mixture import MixtureBlocks, MixtureMover, find_mixture
from likewise.inference.partition.search import WeightedGraph

N_GROUPS, N_ITEMS, N_AXES = 15, 225, 16


def _mover(seed: int = 0) -> tuple[MixtureMover, WeightedGraph, np.ndarray]:
    """Twelve items in three groups, some pairs of them judged."""
    rng = np.random.default_rng(seed)
    points = 2 * rng.normal(size=(12, 3))
    left, right = np.array([0, 1, 2, 3, 0]), np.array([1, 2, 5, 9, 11])
    graph = WeightedGraph.build(left, right, rng.normal(size=5), 12)
    return MixtureMover(graph, np.arange(12) % 3, np.zeros(13), points), graph, points


def _slow_gain(mover: MixtureMover, graph: WeightedGraph, points: np.ndarray, item: int) -> list:
    """The log density of an item given the others of each group, plus its judged pairs there."""
    labels = mover.groups_of(np.arange(len(points)))
    between = max(np.square(points).mean() - 1, 0.1)
    gains = []
    for group in range(3):
        others = [k for k in range(len(points)) if labels[k] == group and k != item]
        # Of all members together: the mean is shared, so their covariance is 1 + between I.
        together = points[[*others, item]]
        covariance = np.eye(len(together)) + between
        alone = covariance[:-1, :-1]
        value = 0.0
        for column in together.T:
            value += multivariate_normal.logpdf(column, cov=covariance)
            if others:
                value -= multivariate_normal.logpdf(column[:-1], cov=alone)
        for a, b, weight in zip(graph.left, graph.right, graph.edge_weight):
            if item in (a, b) and (a if b == item else b) in others:
                value += weight
        gains.append(value)
    return gains


def test_gains_are_predictive_densities_and_judged_pairs() -> None:
    mover, graph, points = _mover()
    for item, target in ((4, 2), (0, 1), (9, 2)):
        mover.move(item, target)
    found = mover.gains_of(np.arange(12))
    for item in range(12):
        slow = np.array(_slow_gain(mover, graph, points, item))
        np.testing.assert_allclose(found[item] - found[item, 0], slow - slow[0], atol=1e-9)


def _crowd(seed: int) -> tuple[Answers, np.ndarray, np.ndarray]:
    """Many groups, a dozen answers an item by people who err, and points in which groups overlap;
    the groups do not differ along the axes that vary most."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(N_ITEMS) % N_GROUPS)
    centre = 1.3 * rng.normal(size=(N_GROUPS, N_AXES))
    centre[:, :3] = 0
    points = centre[truth] + rng.normal(size=(N_ITEMS, N_AXES))
    points[:, :3] *= 4
    left = rng.integers(0, N_ITEMS, 6 * N_ITEMS)
    right = (left + rng.integers(1, N_ITEMS, len(left))) % N_ITEMS
    p = np.where(truth[left] == truth[right], 0.85, 0.15)
    said = rng.random(len(left)) < p
    return Answers.build(left, right, said, N_ITEMS, None, None), points, truth


def test_many_groups_are_found_where_k_means_gets_stuck() -> None:
    answers, points, truth = _crowd(1)
    found = find_mixture(answers, points, N_GROUPS, (0.8, 0.2), np.random.default_rng(0))
    k_means = KMeans(N_GROUPS, n_init=10, random_state=0).fit(points).labels_
    assert adjusted_rand_score(truth, found) > 0.8
    assert adjusted_rand_score(truth, found) > adjusted_rand_score(truth, k_means) + 0.3
    assert len(np.unique(found)) == N_GROUPS


def test_the_same_seed_finds_the_same_groups() -> None:
    answers, points, _ = _crowd(2)
    one, two = (
        find_mixture(answers, points, N_GROUPS, (0.8, 0.2), np.random.default_rng(7))
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


def test_points_that_never_differ_leave_it_to_the_judgements() -> None:
    answers, _, _ = _crowd(3)
    points = np.zeros((N_ITEMS, 2))
    found = find_mixture(answers, points, N_GROUPS, (0.8, 0.2), np.random.default_rng(0))
    assert len(np.unique(found)) == N_GROUPS


def test_gains_with_cells_are_those_of_the_cells_and_predictive_densities() -> None:
    _, _, points = _mover()
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, (2, 12, 12)).astype(float)
    counts = np.triu(counts, 1) + np.triu(counts, 1).transpose(0, 2, 1)
    nothing = WeightedGraph.build(np.array([0]), np.array([1]), np.zeros(1), 12)
    labels = np.arange(12) % 3
    density = MixtureMover(nothing, labels, np.zeros(13), points)
    mixed = MixtureBlocks(counts, labels, np.zeros(13), points)
    alone = Blocks(counts, labels, np.zeros(13), fixed=True)
    alone.prior = mixed.prior
    for item, target in ((4, 2), (0, 1), (9, 2)):
        for one in (density, mixed, alone):
            one.move(item, target)
    items = np.arange(12)
    expected = density.gains_of(items) + alone.gains_of(items)
    np.testing.assert_allclose(mixed.gains_of(items), expected, atol=1e-9)


def test_groups_that_people_confuse_are_told_apart_by_cells_of_their_own(monkeypatch) -> None:
    """Two rates would call two confused groups one, and cut others in two."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(240) % 6)
    points = 0.8 * rng.normal(size=(6, 4))[truth] + rng.normal(size=(240, 4))
    left = rng.integers(0, 240, 8000)
    right = (left + rng.integers(1, 240, 8000)) % 240
    p = np.where(truth[left] == truth[right], 0.85, 0.15)
    p[truth[left] ^ 1 == truth[right]] = 0.55
    answers = Answers.build(left, right, rng.random(8000) < p, 240, None, None)
    given = answers, points, 6, (0.8, 0.2)
    assert adjusted_rand_score(truth, find_mixture(*given, np.random.default_rng(0))) > 0.8
    monkeypatch.setattr(mixture, "CELL_TURNS", 0)
    assert adjusted_rand_score(truth, find_mixture(*given, np.random.default_rng(0))) < 0.6
