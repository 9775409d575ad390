"""The map of items: neighbours stay neighbours, whatever the number of items."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.runs import maps


def groups(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of six groups in eight dimensions that no two directions tell apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(6, size=n)
    return (np.eye(8)[y] * 6 + rng.normal(size=(n, 8))).astype(np.float32), y


def share_of_own(places: np.ndarray, y: np.ndarray) -> float:
    """How often the nearest other point on the map is of the same group."""
    distance = ((places[:, None] - places[None]) ** 2).sum(2)
    np.fill_diagonal(distance, np.inf)
    return float((y[distance.argmin(1)] == y).mean())


def test_neighbours_stay_neighbours() -> None:
    points, y = groups(300)
    places = maps.neighbour_map(points)
    assert places.shape == (300, 2)
    assert share_of_own(places, y) > 0.97
    assert share_of_own(maps.main_directions(points, 2), y) < 0.9  # why it is worth the trouble
    np.testing.assert_array_equal(places, maps.neighbour_map(points))


def test_small_steps_take_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """On busy cores t-SNE of 900 points took ten times as long by two threads."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_info, threadpool_limits

    seen: list[int] = []

    def fitted(self: TSNE, points: np.ndarray) -> np.ndarray:
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return points[:, :2]

    monkeypatch.setattr(TSNE, "fit_transform", fitted)
    with threadpool_limits(limits=2):
        maps.neighbour_map(np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32))
    assert set(seen) == {1}


def test_of_many_points_landmarks_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "LANDMARKS", 120)
    points, y = groups(600)
    places = maps.neighbour_map(points)
    assert np.isfinite(places).all()
    assert share_of_own(places, y) > 0.95


@pytest.mark.parametrize("n", [1, 2, 5, 19, 20, 25])
def test_few_points(n: int) -> None:
    places = maps.neighbour_map(groups(n)[0])
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()


def test_points_that_are_all_alike_or_in_a_line() -> None:
    assert not maps.neighbour_map(np.ones((50, 4), np.float32)).any()
    line = np.arange(50, dtype=np.float32)[:, None]
    assert np.isfinite(maps.neighbour_map(line)).all()
    assert maps.neighbour_map(line[:5]).shape == (5, 2)
    twins = np.repeat(groups(30)[0], 2, axis=0)
    assert np.isfinite(maps.neighbour_map(twins)).all()


def test_main_directions_are_those_of_largest_spread() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 6)) * np.array([1, 9, 1, 1, 4, 1])
    flat = maps.main_directions(points.astype(np.float32), 2)
    assert abs(np.corrcoef(flat[:, 0], points[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(flat[:, 1], points[:, 4])[0, 1]) > 0.99


def test_main_directions_by_blocks_are_those_of_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(101, 6)).astype(np.float32)
    points *= np.array([1, 9, 2, 3, 4, 5], np.float32)
    at_once = maps.main_directions(points, 3)
    monkeypatch.setattr(maps, "BLOCK", 7)
    np.testing.assert_allclose(maps.main_directions(points, 3), at_once, atol=1e-4)
