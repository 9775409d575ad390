"""Neighbours against a full sort, and what eigenmaps are for."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from likewise.inference.lifting.neighbours import (
    eigenmaps,
    nearest_neighbours,
    principal_components,
)


@pytest.mark.parametrize("n", [30, 3000])  # below and above where columns are grouped
def test_neighbours_are_those_of_a_full_sort(n: int) -> None:
    points = np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32)
    found = nearest_neighbours(points, 7)
    for i in range(0, n, max(n // 20, 1)):
        distance = np.linalg.norm(points - points[i], axis=1)
        distance[i] = np.inf
        order = np.argsort(distance)[:7]
        np.testing.assert_allclose(found.distance[i], distance[order], atol=2e-3)
        assert set(found.index[i]) == set(order)


def test_principal_components_keep_distances_of_what_varies() -> None:
    rng = np.random.default_rng(1)
    flat = np.zeros((60, 10), np.float32)
    flat[:, :3] = rng.normal(size=(60, 3))
    found = principal_components(flat)
    assert found.shape == (60, 3)
    before = np.linalg.norm(flat[0] - flat, axis=1)
    np.testing.assert_allclose(np.linalg.norm(found[0] - found, axis=1), before, atol=1e-4)


def test_eigenmaps_part_two_rings_that_distance_does_not() -> None:
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    points = np.concatenate([ring, 3 * ring]).astype(np.float32)
    axes = eigenmaps(nearest_neighbours(points, 6), 2)
    inner, outer = axes[:200], axes[200:]
    parted = [max(a.max() < b.min(), b.max() < a.min()) for a, b in zip(inner.T, outer.T)]
    assert any(parted)


def test_principal_components_of_a_memory_map(tmp_path: Path) -> None:
    """A file that is only read: the same numbers, and nothing that warns of it."""
    items = np.random.default_rng(0).normal(size=(50, 4, 3)).astype(np.float32)
    np.save(tmp_path / "items.npy", items)
    mapped = np.load(tmp_path / "items.npy", mmap_mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = principal_components(mapped)
    np.testing.assert_allclose(found, principal_components(items), rtol=1e-5)
