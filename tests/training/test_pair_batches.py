"""Every judgement once an epoch, in batches that share their items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.training.affine_plane import AffinePlane
from likewise.training.pair_batches import PairSchedule, forward_in_pieces, forward_rows


def random_judgements(n_items: int, count: int, seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    left = rng.integers(n_items, size=count)
    right = (left + rng.integers(1, n_items, size=count)) % n_items
    return Pairs(left, right, rng.random(count) < 0.3, weight=rng.random(count), n_items=n_items)


@given(
    n_items=st.integers(2, 60),
    count=st.integers(0, 200),
    batch=st.integers(1, 250),
    seed=st.integers(0, 2**31),
)
def test_every_judgement_comes_once(n_items: int, count: int, batch: int, seed: int) -> None:
    pairs = random_judgements(n_items, count, seed)
    seen = []
    for step in PairSchedule(pairs, batch).epoch(np.random.default_rng(seed)):
        np.testing.assert_array_equal(step.items[step.left], pairs.left[step.rows])
        np.testing.assert_array_equal(step.items[step.right], pairs.right[step.rows])
        np.testing.assert_array_equal(step.same, pairs.same[step.rows])
        np.testing.assert_array_equal(step.weight, pairs.weight[step.rows])
        np.testing.assert_array_equal(
            np.unique([step.left, step.right]), np.arange(len(step.items))
        )
        assert len(np.unique(step.items)) == len(step.items)
        seen.append(step.rows)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)) if seen else [], np.arange(count))


@pytest.mark.parametrize("order", [1, 2, 3, 5, 7])
def test_two_points_lie_on_one_line_of_the_plane(order: int) -> None:
    """One item a point: the lines partition the pairs, and each has ``order`` points."""
    points = np.arange(order**2)
    plane = AffinePlane(order, len(points), np.random.default_rng(0))
    pairs = np.array(list(itertools.combinations(points, 2)), int).reshape(-1, 2)
    line = plane.line(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(line, plane.line(pairs[:, 1], pairs[:, 0]))
    lines = {int(k): np.unique(pairs[line == k]) for k in line}
    assert len(lines) == (order**2 + order if order > 1 else 0)
    assert all(len(members) == order for members in lines.values())
    own = plane.line(points, points)
    for point, k in zip(points, own, strict=True):
        assert order == 1 or point in lines[int(k)]


def test_chunks_do_not_change_what_is_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = random_judgements(100, 1000, 0)
    schedule = PairSchedule(pairs, 100)
    whole = [set(b.rows.tolist()) for b in schedule.epoch(np.random.default_rng(1))]
    monkeypatch.setattr("likewise.pairs.edges.CHUNK", 37)
    pieces = [set(b.rows.tolist()) for b in schedule.epoch(np.random.default_rng(1))]
    assert whole == pieces


def test_forwards_are_shared() -> None:
    """Dense judgements: an item is forwarded far less often than it is judged."""
    pairs = random_judgements(1000, 200_000, 0)
    batches = list(PairSchedule(pairs, 5000).epoch(np.random.default_rng(0)))
    forwards = sum(len(batch.items) for batch in batches)
    assert 200_000 / forwards > 25  # two forwards a judgement would make it 0.5
    assert all(len(batch.rows) < 8000 for batch in batches)


def test_a_batch_is_about_as_large_as_asked_for() -> None:
    pairs = random_judgements(30, 5000, 0)  # more judgements than 30 items give lines for
    sizes = [len(batch.rows) for batch in PairSchedule(pairs, 64).epoch(np.random.default_rng(0))]
    assert 40 < np.mean(sizes) < 90


def test_epochs_differ_and_seeds_repeat() -> None:
    schedule = PairSchedule(random_judgements(200, 2000, 0), 100)
    rng = np.random.default_rng(0)
    first, second = (next(schedule.epoch(rng)).items.tolist() for _ in range(2))
    again = next(schedule.epoch(np.random.default_rng(0))).items.tolist()
    assert first == again
    assert first != second


def test_a_complete_set_is_listed() -> None:
    batches = PairSchedule(Pairs.from_labels([0, 0, 1]), 10).epoch(np.random.default_rng(0))
    assert sum(len(batch.rows) for batch in batches) == 3


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="batch_judgements must be at least 1"):
        PairSchedule(random_judgements(5, 5, 0), 0)


def test_forward_in_pieces_is_one_forward() -> None:
    torch.manual_seed(0)
    x = torch.randn(31, 3).double()
    for network in (nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))):
        network.double()
        torch.testing.assert_close(forward_in_pieces(network, x, 7), network(x))
        index = torch.randperm(31)[:23]
        torch.testing.assert_close(forward_rows(network, x, index, 7), network(x[index]))
