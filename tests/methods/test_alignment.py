"""A transition matrix that is given, in whatever order of classes, against all the orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from likewise.methods import alignment
from likewise.methods.alignment import align_transition, least_apart
from likewise.noise import pair_flip, symmetric

FloatMatrix = NDArray[np.float64]


def random_transition(n_classes: int, seed: int, kept: float = 0.5) -> FloatMatrix:
    """Rows that share nothing, each with at least ``kept`` on the diagonal."""
    rows = np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.5), n_classes)
    return kept * np.eye(n_classes) + (1 - kept) * rows


def renumbered(matrix: FloatMatrix, seed: int) -> FloatMatrix:
    order = np.random.default_rng(seed).permutation(len(matrix))
    return matrix[np.ix_(order, order)]


def rough(matrix: FloatMatrix, seed: int, spread: float = 0.02) -> torch.Tensor:
    """An estimate of it."""
    noise = np.random.default_rng(seed).normal(scale=spread, size=matrix.shape)
    found = np.clip(matrix + noise, 1e-3, None)
    return torch.tensor(found / found.sum(axis=1, keepdims=True), dtype=torch.float32)


def distance(one: torch.Tensor, two: torch.Tensor) -> float:
    return float((one.double() - two.double()).square().sum())


@pytest.mark.parametrize("most_tried", [alignment.MOST_TRIED, 1], ids=["tried", "searched"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_no_order_is_nearer(
    monkeypatch: pytest.MonkeyPatch, n_classes: int, seed: int, most_tried: int
) -> None:
    monkeypatch.setattr(alignment, "MOST_TRIED", most_tried)
    given = random_transition(n_classes, seed)
    estimate = rough(random_transition(n_classes, seed + 100), seed)  # nothing to do with it
    nearest = min(
        distance(torch.from_numpy(given[np.ix_(p, p)]), estimate)
        for p in map(list, itertools.permutations(range(n_classes)))
    )
    found = align_transition(given, estimate)
    assert distance(found, estimate) == pytest.approx(nearest, rel=1e-5)


def test_gains_of_swaps_are_differences_of_the_inner_product() -> None:
    theirs, ours = np.random.default_rng(0).normal(size=(2, 6, 6))
    gain = alignment._gains_of_swaps(theirs, ours)
    for r, s in itertools.product(range(6), repeat=2):
        order = np.arange(6)
        order[[r, s]] = order[[s, r]]
        change = (ours * (theirs[np.ix_(order, order)] - theirs)).sum()
        assert gain[r, s] == pytest.approx(change, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "true",
    [random_transition(5, 3), random_transition(12, 4), pair_flip(5, 0.4), pair_flip(10, 0.4)],
    ids=["5", "12", "flip of 5", "flip of 10"],
)
def test_a_given_t_comes_to_the_learned_order(true: FloatMatrix, seed: int) -> None:
    found = align_transition(renumbered(true, seed), rough(true, seed))
    np.testing.assert_allclose(found.numpy(), true, atol=1e-6)


def test_rows_and_columns_move_together() -> None:
    given, estimate = random_transition(4, 0), rough(renumbered(random_transition(4, 0), 1), 0)
    found = align_transition(given, estimate).double().numpy()
    np.testing.assert_allclose(np.sort(np.diag(found)), np.sort(np.diag(given)), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.sort(found.ravel()), np.sort(given.ravel()), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_symmetric_noise_is_the_same_in_every_order(n_classes: int, rate: float) -> None:
    given = symmetric(n_classes, rate)
    found = align_transition(given, rough(random_transition(n_classes, 0), 0))
    np.testing.assert_array_equal(found.numpy(), given.astype(np.float32))


def test_neither_matrix_is_changed_and_the_estimates_type_is_kept() -> None:
    given, estimate = random_transition(4, 0), rough(random_transition(4, 1), 0).double()
    before = given.copy(), estimate.clone()
    assert align_transition(given, estimate).dtype == torch.float64
    np.testing.assert_array_equal(given, before[0])
    assert torch.equal(estimate, before[1])
    lists = align_transition(given.tolist(), estimate)
    torch.testing.assert_close(lists, align_transition(given, estimate))


def test_the_same_order_is_found_every_time() -> None:
    given, estimate = random_transition(8, 0), rough(random_transition(8, 1), 0)
    first = align_transition(given, estimate)
    assert all(torch.equal(align_transition(given, estimate), first) for _ in range(3))


@pytest.mark.parametrize("seed", range(8))
def test_a_cycle_of_ten_classes_is_read_in_its_order(seed: int) -> None:
    """Every class is taken for the next: far more orders are nearly right than for three."""
    true = renumbered(pair_flip(10, 0.4), seed)
    found = align_transition(pair_flip(10, 0.4), rough(true, seed))
    np.testing.assert_allclose(found, true, atol=1e-6)


def test_two_rows_that_are_alike_tell_nothing_apart() -> None:
    transition = np.array([[0.5, 0.0, 0.5], [0.1, 0.8, 0.1], [0.5, 0.1, 0.4]])
    rows = ((0, 1), (0, 2), (1, 2))
    slow = [sum(abs(transition[a, k] - transition[b, k]) for k in range(3)) / 2 for a, b in rows]
    assert least_apart(transition) == pytest.approx(min(slow))
    assert least_apart(np.eye(4)) == 1.0
    assert least_apart(np.full((4, 4), 0.25)) == 0.0
