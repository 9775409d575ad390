"""Directions in which judgements tell items apart, beside a slow reference."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from likewise.inference.partition import supervised_components as module
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.supervised_components import supervised_components
from likewise.metrics import matched_accuracy

N_ITEMS, N_CLASSES, N_FEATURES = 300, 4, 40


def misleading(seed: int, swapped: float = 0.0) -> tuple[Answers, NDArray, NDArray]:
    """Items that vary most where nobody tells them apart; (N, d) in their principal axes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, N_CLASSES, N_ITEMS)
    x = rng.normal(size=(N_ITEMS, N_FEATURES))
    x[:, :5] *= 6
    x[:, 20:30] += 1.2 * rng.normal(size=(N_CLASSES, 10))[truth]
    x -= x.mean(0)
    points = x @ np.linalg.svd(x, full_matrices=False)[2].T
    left = rng.integers(0, N_ITEMS, 3000)
    right = (left + rng.integers(1, N_ITEMS, 3000)) % N_ITEMS
    said = rng.random(3000) < np.where(truth[left] == truth[right], 0.8, 0.2)
    person = np.arange(3000) % 50
    said ^= person < 50 * swapped
    return Answers.build(left, right, said, N_ITEMS, person, None), points, truth


def clustered(points: NDArray, truth: NDArray) -> float:
    return matched_accuracy(KMeans(N_CLASSES, n_init=10, random_state=0).fit(points).labels_, truth)


@pytest.mark.parametrize("seed", [0, 1])
def test_they_show_what_people_tell_apart_and_not_what_varies_most(seed: int) -> None:
    answers, points, truth = misleading(seed)
    found = supervised_components(answers, points, N_CLASSES - 1, np.random.default_rng(0))
    assert found.shape == (N_ITEMS, N_CLASSES - 1)
    assert clustered(points, truth) < 0.4
    assert clustered(found, truth) > 0.8


def test_noise_of_all_people_shortens_directions_and_does_not_turn_them() -> None:
    answers, points, truth = misleading(2, swapped=0.2)
    found = supervised_components(answers, points, N_CLASSES - 1, np.random.default_rng(0))
    assert clustered(found, truth) > 0.7


def test_they_agree_with_answers_more_than_any_other_direction(monkeypatch) -> None:
    """The slow way: scores of items under one ridge, answer by answer."""
    answers, points, _ = misleading(3)
    monkeypatch.setattr(module, "RIDGES", (0.1,))
    found = supervised_components(answers, points, 1, np.random.default_rng(0))[:, 0]
    variance = points.var(0)
    scaled = (points - points.mean(0)) / np.sqrt(variance + 0.1 * variance.max())
    weight = np.linalg.lstsq(scaled, found, rcond=None)[0]
    assert np.linalg.norm(weight) == pytest.approx(1)
    np.testing.assert_allclose(scaled @ weight, found, atol=1e-8)

    said = {who: [] for who in range(50)}
    for same, who in zip(answers.same, answers.annotator):
        said[who].append(float(same))
    overall = answers.same.mean()
    usual = {who: (sum(told) + overall) / (len(told) + 1) for who, told in said.items()}

    def agreement(direction: NDArray) -> float:
        score = scaled @ direction / np.linalg.norm(direction)
        total = 0.0
        for same, who, pair in zip(answers.same, answers.annotator, answers.pair):
            alike = score[answers.left[pair]] * score[answers.right[pair]]
            total += (same - usual[who]) * alike
        return total

    best, rng = agreement(weight), np.random.default_rng(0)
    for _ in range(20):
        assert agreement(weight + 0.1 * rng.normal(size=len(weight))) < best


def test_no_more_components_than_features_and_none_from_points_that_never_differ() -> None:
    answers, points, _ = misleading(4)
    rng = np.random.default_rng(0)
    assert supervised_components(answers, points[:, :2], 7, rng).shape == (N_ITEMS, 2)
    still = supervised_components(answers, np.zeros((N_ITEMS, 3)), 2, rng)
    np.testing.assert_array_equal(still, np.zeros((N_ITEMS, 2)))
