"""Visits of items in stretches: the same as one after the other."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from group_cases import partitions
from likewise.inference.partition.blocks import Blocks
from likewise.inference.partition.model import size_log_prior
from likewise.inference.partition.moves import Mover, sample_agreement
from likewise.inference.partition.search import WeightedGraph, canonical, objective
from likewise.inference.partition.visits import TOLERANCE, Movable, own_chances, visit


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def random_graph(rng: np.random.Generator, n: int, share: float) -> WeightedGraph:
    left, right = np.triu_indices(n, 1)
    kept = rng.random(len(left)) < share
    return WeightedGraph.build(left[kept], right[kept], rng.standard_normal(int(kept.sum())), n)


def random_mover(rng: np.random.Generator, fixed: bool, n: int = 60) -> Mover:
    labels = np.concatenate([np.arange(6), rng.integers(6, size=n - 6)])
    prior = np.append(0.0, rng.standard_normal(n))
    return Mover(random_graph(rng, n, 0.3), labels, prior, fixed)


def random_blocks(
    rng: np.random.Generator, fixed: bool, n: int = 40, linked: bool = False
) -> Blocks:
    counts = np.triu(rng.poisson(0.7, size=(2, n, n)).astype(float), 1)
    counts = counts + counts.transpose(0, 2, 1)
    labels = np.concatenate([np.arange(5), rng.integers(5, size=n - 5)])
    size_prior, _ = size_log_prior(labels, 5 if fixed else None)
    links = np.triu(rng.standard_normal((n, n)), 1) if linked else None
    links = None if links is None else links + links.T
    return Blocks(counts, labels, size_prior, fixed, links)


def one_by_one(partition: Movable, order: np.ndarray) -> list[int]:
    """The items that moved to their best group, each looked at alone."""
    moved = []
    for item in order:
        alone = np.array([item])
        (gain,), (own,) = partition.gains_of(alone), partition.groups_of(alone)
        best = int(gain.argmax())
        if gain[best] > gain[own] + TOLERANCE and partition.may_leave(np.array([own]))[0]:
            partition.move(int(item), best)
            moved.append(int(item))
    return moved


@pytest.mark.parametrize("make", [random_mover, random_blocks])
@pytest.mark.parametrize("fixed", [False, True])
def test_stretches_move_the_items_that_visits_one_by_one_move(make, fixed: bool) -> None:
    fast, slow = make(np.random.default_rng(3), fixed), make(np.random.default_rng(3), fixed)
    rng = np.random.default_rng(4)
    n = len(fast.labels)
    total = 0
    for _ in range(4):
        order = rng.permutation(n)
        moved = visit(fast, order, rng, 0.0)
        assert moved.tolist() == one_by_one(slow, order)
        assert canonical(fast.labels).tolist() == canonical(slow.labels).tolist()
        total += len(moved)
    assert total > n / 4


def test_gains_after_moves_are_those_of_a_fresh_table(rng: np.random.Generator) -> None:
    mover = random_mover(rng, fixed=False)
    mover.sweep(np.arange(60), rng, 1.0)
    fresh = Mover(mover.graph, mover.labels, np.append(0.0, np.cumsum(mover._step[:-1])), False)
    for item in range(60):
        gains = [np.sort(m.gains(item)[1]) for m in (mover, fresh)]
        kept = [g[np.isfinite(g)] for g in gains]
        np.testing.assert_allclose(*kept, atol=1e-9)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_gains_of_blocks_are_differences_of_their_score(
    rng: np.random.Generator, fixed: bool, linked: bool
) -> None:
    blocks = random_blocks(rng, fixed, 14, linked)
    blocks.sweep(rng, 1.0)  # what is kept of cells and links follows the moves
    gain, labels = blocks.gains_of(np.arange(14)), blocks.labels.copy()

    def value(tried: np.ndarray) -> float:
        other = Blocks(blocks.counts, tried, blocks.size_prior, fixed, blocks.links)
        return other.score() + blocks.size_prior[np.bincount(tried)].sum()

    for item in range(14):
        for target in np.flatnonzero(np.isfinite(gain[item])):
            tried = labels.copy()
            tried[item] = target
            if fixed and len(set(tried.tolist())) < len(blocks.size):
                continue
            change = value(tried) - value(labels)
            assert gain[item, target] - gain[item, labels[item]] == pytest.approx(change, abs=1e-8)


def test_links_inside_groups_are_added_to_the_score_and_lead_to_merges(
    rng: np.random.Generator,
) -> None:
    blocks = random_blocks(rng, False, 14, linked=True)
    assert blocks.links is not None
    plain = Blocks(blocks.counts, blocks.labels, blocks.size_prior, False)
    inside = sum(
        blocks.links[i, j]
        for i in range(14)
        for j in range(i)
        if blocks.labels[i] == blocks.labels[j]
    )
    assert blocks.score() == pytest.approx(plain.score() + inside)
    before, value = blocks.labels.copy(), -np.inf
    for one, other in combinations(range(before.max() + 1), 2):  # the best merge, the slow way
        merged = canonical(np.where(before == other, one, before))
        joined = Blocks(blocks.counts, merged, blocks.size_prior, False, blocks.links)
        reached = joined.score() + blocks.size_prior[np.bincount(merged)].sum()
        value = max(value, reached)
    blocks.merge(at_a_loss=True)
    assert len(set(blocks.labels)) == len(set(before)) - 1
    assert blocks.score() + blocks.size_prior[np.bincount(blocks.labels)].sum() == pytest.approx(
        value
    )


@pytest.mark.parametrize("largest_table", [0, 10_000])
def test_draws_have_the_frequencies_of_all_partitions(
    rng: np.random.Generator, largest_table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.inference.partition.moves.MAX_TABLE", largest_table)
    graph, prior = random_graph(rng, 4, 1.0), np.zeros(5)
    every = [np.array(p) for p in partitions(4)]
    weight = np.exp([objective(graph, p, prior) for p in every])
    chance = dict(zip((tuple(canonical(p)) for p in every), weight / weight.sum()))
    mover = Mover(graph, np.arange(4), prior, fixed=False)
    agreement, drawn = sample_agreement(mover, rng, 4000)
    seen = Counter(map(tuple, drawn.tolist()))
    for partition, expected in chance.items():
        assert seen[partition] / 4000 == pytest.approx(expected, abs=0.03)
    for edge, (i, j) in enumerate(zip(graph.left, graph.right)):
        together = sum(p for labels, p in chance.items() if labels[i] == labels[j])
        assert agreement[edge] == pytest.approx(together, abs=0.03)


def test_own_chances_with_a_table_and_without(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    mover = random_mover(rng, fixed=False)
    with_table = own_chances(mover, 60)
    monkeypatch.setattr("likewise.inference.partition.moves.MAX_TABLE", 0)
    without = Mover(mover.graph, mover.labels, np.append(0.0, np.cumsum(mover._step[:-1])), False)
    np.testing.assert_allclose(without.own_chances(), with_table)
