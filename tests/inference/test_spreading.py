"""Label spreading: against the solution of its equation, and what mass normalisation is for."""

from __future__ import annotations

import numpy as np
import torch

from likewise.inference.lifting.neighbours import nearest_neighbours
from likewise.inference.lifting.spreading import ALPHA, spread
from tiny import blobs


def test_sweeps_reach_the_solution_of_the_equation() -> None:
    X, y = blobs(n=60)
    near = nearest_neighbours(X, 5)
    evidence = torch.eye(3)[torch.from_numpy(y)]
    affinity = near.affinity().toarray()
    degree = affinity.sum(axis=1)
    walk = affinity / np.sqrt(degree[:, None] * degree[None])
    solved = np.linalg.solve(np.eye(60) - ALPHA * walk, evidence.numpy())
    others = solved - evidence.numpy()
    others = others / others.sum(axis=0)
    others = others / others.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(spread(near, evidence).numpy(), others, atol=5e-3)


def test_what_most_neighbours_say_outweighs_the_item() -> None:
    X, y = blobs(n=240, apart=6.0)
    wrong = np.random.default_rng(0).random(240) < 0.3
    taken = np.where(wrong, (y + 1) % 3, y)
    found = spread(nearest_neighbours(X), torch.eye(3)[torch.from_numpy(taken)])
    assert (found.argmax(dim=1).numpy() == y).mean() > 0.97
    np.testing.assert_allclose(found.sum(dim=1), 1, atol=1e-5)


def test_a_class_that_others_are_taken_for_does_not_swallow_them() -> None:
    """Half of classes 1 and 2 are taken for 0, which has the most mass everywhere."""
    X, y = blobs(n=300, apart=6.0)
    taken = np.where((y > 0) & (np.random.default_rng(0).random(300) < 0.55), 0, y)
    found = spread(nearest_neighbours(X), torch.eye(3)[torch.from_numpy(taken)])
    assert (found.argmax(dim=1).numpy() == y).mean() > 0.9


def test_items_of_which_nothing_is_known_are_told_by_their_neighbours() -> None:
    X, y = blobs(n=240, apart=6.0)
    evidence = torch.eye(3)[torch.from_numpy(y)]
    evidence[::2] = 0
    found = spread(nearest_neighbours(X), evidence)
    assert (found.argmax(dim=1).numpy() == y).mean() > 0.97
