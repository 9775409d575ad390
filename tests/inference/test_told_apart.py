"""Groups that no answer tells apart are one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from likewise.inference.partition.told_apart import (
    GOOD_PART,
    STRENGTH,
    STRONG,
    merge_untold,
    told_apart,
)


def answers(y: np.ndarray, n_answers: int, seed: int = 0, right: float = 0.8):
    """``left``, ``right``, ``same``: random pairs of items of classes y, so often right."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, len(y), n_answers)
    other = (left + rng.integers(1, len(y), n_answers)) % len(y)
    same = (y[left] == y[other]) == (rng.random(n_answers) < right)
    return left, other, same


def slow_told_apart(asked: np.ndarray, said: np.ndarray) -> np.ndarray:
    """The same, cell by cell."""
    k = len(asked)
    apart = np.full((k, k), np.inf)
    cells = [(a, b) for a in range(k) for b in range(k)]

    def rate(a: int, b: int) -> float:
        alike = [cell for cell in cells if (cell[0] == cell[1]) == (a == b)]
        usual = (sum(said[c] for c in alike) + 1) / (sum(asked[c] for c in alike) + 2)
        return (said[a, b] + STRENGTH * usual) / (asked[a, b] + STRENGTH)

    def gain(a: int, b: int) -> float:
        """Of the answers inside a, under their own rate instead of the one across to b."""
        own, across = rate(a, a), rate(a, b)
        yes, no = said[a, a], asked[a, a] - said[a, a]
        found = yes * math.log(own / across) + no * math.log((1 - own) / (1 - across))
        return found if own > across else 0

    for a, b in cells:
        if a != b:
            apart[a, b] = gain(a, b)
    return apart


def slow_merge(labels: np.ndarray, left: np.ndarray, right: np.ndarray, same: np.ndarray):
    """The same, answers counted anew after each step."""
    labels = labels.copy()
    while len(names := np.unique(labels)) > 1:
        k = len(names)
        asked, said = np.zeros((k, k)), np.zeros((k, k))
        for a, b, yes in zip(labels[left], labels[right], same, strict=True):
            cells = {(a, b), (b, a)}
            for one, other in cells:
                at = np.searchsorted(names, one), np.searchsorted(names, other)
                asked[at] += 1
                said[at] += yes
        apart = slow_told_apart(asked, said)
        usual = GOOD_PART * max(np.median(apart.min(axis=1)), 0)
        a, b = np.unravel_index(int(apart.argmin()), apart.shape)
        if apart[a, b] > min(STRONG, usual) + 1e-9:
            break
        labels[labels == names[a]] = names[b]
    return labels


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_are_made_one_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 9, 90)
    left, right, same = answers(labels // 2, 500, seed, right=0.75)
    merged = merge_untold(labels, left, right, same)
    assert 2 < merged.max() + 1 < 9
    assert adjusted_rand_score(merged, slow_merge(labels, left, right, same)) == 1


def test_how_far_groups_are_told_apart_is_what_a_loop_says():
    rng = np.random.default_rng(0)
    asked = rng.integers(0, 60, (6, 6)).astype(float)
    asked = asked + asked.T
    said = np.floor(asked * rng.random((6, 6)))
    said = np.triu(said) + np.triu(said, 1).T
    asked[2, 2] = said[2, 2] = 0
    np.testing.assert_allclose(told_apart(asked, said), slow_told_apart(asked, said), atol=1e-8)


def test_halves_of_a_class_and_odd_items_are_no_classes_of_their_own():
    y = np.arange(300) % 3
    cut = y.copy()
    cut[(y == 0) & (np.arange(300) < 150)] = 3  # a class in two
    cut[[7, 100]] = 4  # two items of different classes
    left, right, same = answers(y, 6_000)
    merged = merge_untold(cut, left, right, same)
    assert merged.max() + 1 == 3
    whole = np.setdiff1d(np.arange(300), [7, 100])
    assert len(np.unique(merged[whole] * 3 + y[whole])) == 3


def test_a_small_class_of_which_enough_was_asked_stays():
    y = np.minimum(np.arange(300) // 20, 4)  # four classes of 20, and one of 220
    merged = merge_untold(y, *answers(y, 20_000))
    np.testing.assert_array_equal(merged, y)


def test_a_class_needs_strong_evidence_and_no_more():
    """The five items of a class are told from the others by little beside what tells these."""
    y = np.maximum(np.arange(305) % 4, np.where(np.arange(305) < 5, 4, 0))
    left, right, same = answers(y, 60_000, right=0.85)
    asked = ((y[left] == 4) & (y[right] == 4)).sum()
    assert 5 < asked < 20
    np.testing.assert_array_equal(merge_untold(y, left, right, same), y)


def test_where_answers_are_few_less_tells_classes_apart():
    y = np.arange(400) % 20
    merged = merge_untold(y, *answers(y, 6_000, right=0.75))
    assert merged.max() + 1 >= 18


def test_classes_that_people_often_confuse_stay_two():
    y = np.arange(200) % 4
    left, right, same = answers(y, 10_000)
    near = (y[left] != y[right]) & (y[left] // 2 == y[right] // 2)
    same = same | (near & (np.random.default_rng(1).random(10_000) < 0.4))
    np.testing.assert_array_equal(merge_untold(y, left, right, same), y)


@pytest.mark.parametrize("n_classes", [1, 5])
def test_groups_without_an_answer_are_one(n_classes):
    empty = np.empty(0, np.int64)
    labels = np.arange(10) % n_classes
    assert merge_untold(labels, empty, empty, empty.astype(bool)).tolist() == [0] * 10


def test_a_weight_is_an_answer_given_so_often():
    y = np.arange(60) % 6
    left, right, same = answers(y, 240, seed=3, right=0.7)
    often = np.random.default_rng(1).integers(0, 4, 240)
    weighted = merge_untold(y, left, right, same, often.astype(float))
    repeated = merge_untold(y, *(np.repeat(column, often) for column in (left, right, same)))
    np.testing.assert_array_equal(weighted, repeated)
    assert weighted.max() > 0
    assert merge_untold(y, left, right, same, np.zeros(240)).max() == 0
