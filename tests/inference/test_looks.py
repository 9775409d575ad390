"""Looks of one class are merged; classes that people mix up are not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from likewise.inference.partition.answers import Answers
from likewise.inference.partition.blocks import CellPrior
from likewise.inference.partition.fitting import fit_partition, with_cells
from likewise.inference.partition.looks import classes_of, least_share, merge_alike, merge_looks

FLAT = CellPrior((1.0, 1.0), (1.0, 1.0))


def cells_of(share: np.ndarray, asked: float = 100.0) -> np.ndarray:
    """(2, K, K) counts from shares of "same"; as many answers in each group as across two."""
    cells = asked * np.stack([share, 1 - share])
    cells[:, np.arange(len(share)), np.arange(len(share))] *= 2
    return cells


def shares(classes: list[int], inside: float, looks: float, across: float) -> np.ndarray:
    """(K, K) of "same" inside groups, across looks of one class, and across classes."""
    alike = np.equal.outer(classes, classes)
    found = np.where(alike, looks, across)
    np.fill_diagonal(found, inside)
    return found


def slow_classes(cells: np.ndarray, prior: CellPrior) -> list[set[int]]:
    """The same, what lies between two classes added up anew after each merge."""
    least = least_share(cells)
    classes = [{group} for group in range(cells.shape[1])]

    def surplus(one: set[int], other: set[int]) -> float:
        between = [(a, b) for a in one for b in other]
        same = sum(cells[0, a, b] + prior.alpha[1] for a, b in between)
        different = sum(cells[1, a, b] + prior.beta[1] for a, b in between)
        return same * (1 - least) - different * least

    while len(classes) > 1:
        pairs = [(a, b) for b in range(len(classes)) for a in range(b)]
        one, other = max(pairs, key=lambda pair: surplus(classes[pair[0]], classes[pair[1]]))
        if surplus(classes[one], classes[other]) <= 0:
            break
        classes[one] |= classes.pop(other)
    return classes


@pytest.mark.parametrize("seed", range(5))
def test_merges_are_those_of_the_slow_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = rng.beta(0.5, 0.8, (12, 12))
    share = np.triu(share, 1) + np.triu(share, 1).T
    np.fill_diagonal(share, 0.95)
    cells = cells_of(share)
    prior = CellPrior((3.0, 1.0), (1.0, 4.0))
    found = classes_of(cells, prior)
    expected = slow_classes(cells, prior)
    assert {frozenset(np.flatnonzero(found == c)) for c in set(found)} == set(
        map(frozenset, expected)
    )
    assert 1 < len(expected) < 10


def test_looks_that_people_call_the_same_are_one_class() -> None:
    classes = [0, 1, 0, 2, 1, 0]
    found = classes_of(cells_of(shares(classes, 0.9, 0.7, 0.1)), FLAT)
    assert adjusted_rand_score(classes, found) == 1


def test_classes_that_are_often_mixed_up_stay_two() -> None:
    found = classes_of(cells_of(shares([0, 1, 0, 2, 1, 2], 0.7, 0.45, 0.05)), FLAT)
    assert len(set(found)) == 6


def test_who_says_same_of_most_pairs_merges_nothing_by_that() -> None:
    """Everybody is lenient: "same" across any two groups more often than not."""
    share = shares([0, 1, 2, 3], 0.98, 0.98, 0.55)
    assert least_share(cells_of(share)) > 0.55
    assert len(set(classes_of(cells_of(share), FLAT))) == 4


def test_few_answers_count_little_against_what_is_usual() -> None:
    share = shares([0, 0, 1, 2], 0.95, 0.7, 0.05)
    prior = CellPrior((19.0, 1.0), (1.0, 19.0))
    assert len(set(classes_of(cells_of(share, 4.0), prior))) == 4
    assert len(set(classes_of(cells_of(share, 400.0), prior))) == 3


def test_groups_that_tell_nothing_are_left_as_they_are() -> None:
    share = np.full((4, 4), 0.7)
    assert len(set(classes_of(cells_of(share), FLAT))) == 4


def test_draws_are_merged_one_by_one() -> None:
    counts = np.zeros((2, 6, 6))
    counts[1] = 20.0
    for block in (slice(0, 4), slice(4, 6)):
        counts[0, block, block], counts[1, block, block] = 4.0, 0.0
    for one, looks in zip(counts, (3.0, 1.0)):  # of the class of four
        one[:2, 2:4] = one[2:4, :2] = looks
        np.fill_diagonal(one, 0.0)
    drawn = np.array([[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], [2, 2, 0, 0, 1, 1]])
    merged = merge_looks(drawn, counts, FLAT)
    for labels in merged:
        assert adjusted_rand_score([0, 0, 0, 0, 1, 1], labels) == 1


@pytest.mark.parametrize("share_swapped", [0.0, 0.45])
def test_looks_are_merged_by_what_answers_are_worth(share_swapped: float) -> None:
    """Swapped people say "different" of most pairs inside groups, and mean "same"."""
    rng = np.random.default_rng(3)
    look = rng.permutation(np.repeat(np.arange(6), 12))
    left = rng.integers(0, len(look), 24_000)
    right = (left + rng.integers(1, len(look), len(left))) % len(look)
    rate = np.where(look[left] // 2 == look[right] // 2, 0.75, 0.05)
    rate = np.where(look[left] == look[right], 0.95, rate)
    who = np.arange(len(left)) % 100
    same = (rng.random(len(left)) < rate) ^ (who < 100 * share_swapped)
    merged = merge_alike(look, Answers.build(left, right, same, len(look), who, None))
    assert adjusted_rand_score(look // 2, merged) == 1


def test_groups_are_classes_where_their_number_is_not_given() -> None:
    """Three classes in two looks each; across looks 75% say "same", across two classes 35%, across
    others 4%."""
    rng = np.random.default_rng(5)
    look = rng.permutation(np.repeat(np.arange(6), 15))
    left, right = np.triu_indices(len(look), 1)
    rate = np.where((look[left] < 4) & (look[right] < 4), 0.35, 0.04)
    rate = np.where(look[left] // 2 == look[right] // 2, 0.75, rate)
    rate = np.where(look[left] == look[right], 0.95, rate)
    same = rng.random(len(left)) < rate
    answers, truth = Answers.build(left, right, same, len(look), None, None), look // 2
    fit = fit_partition(answers, None, 6, np.random.default_rng(0))
    told, refined = with_cells(fit, quick=True), with_cells(fit, quick=True, merge=True)
    assert told is not None
    assert refined is not None
    assert told.labels.max() + 1 == 6
    np.testing.assert_array_equal(told.looks, told.drawn)
    assert refined.labels.max() + 1 == 3
    assert adjusted_rand_score(truth, refined.labels) > 0.95
    assert refined.looks[0].max() + 1 == 6  # answers are foretold by them
    # Beliefs and rates are those of classes: so many of their pairs are called the same.
    together = truth[answers.left] == truth[answers.right]
    assert refined.belief[together].mean() > 0.95
    np.testing.assert_allclose(refined.rates.p_same[0, 0], answers.same[together].mean(), atol=0.03)
