"""Items that draws of partitions put here and there are placed, or stay alone."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.inference.partition import infer_partition
from likewise.inference.partition.leftovers import place_leftovers

LABELS = np.array([0, 0, 0, 1, 1, 2, 3, 4])  # the last three are alone


@pytest.fixture
def drawn() -> np.ndarray:
    """Item 5 is mostly with group 0, item 6 at times with group 1, item 7 always alone."""
    rng = np.random.default_rng(0)
    draws = np.tile(LABELS, (40, 1))
    draws[rng.random(40) < 0.6, 5] = 0
    draws[rng.random(40) < 0.3, 6] = 1
    return np.stack([rng.permutation(9)[draw] for draw in draws])  # numbers differ by draw


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_as_many_are_placed_as_make_the_answers_likeliest_the_surest_first(drawn, wanted):
    expected = LABELS.copy()
    expected[[5, 6][:wanted]] = [0, 1][:wanted]
    found = place_leftovers(LABELS, drawn, lambda labels: -abs(6 - wanted - len(set(labels)) - 1))
    assert np.array_equal(np.unique(expected, return_inverse=True)[1], found)


def test_what_no_draw_puts_with_others_stays_alone(drawn):
    found = place_leftovers(LABELS, drawn, lambda labels: -len(set(labels)))
    assert (found == found[7]).sum() == 1
    assert len(set(found)) == 3


def test_evidence_is_asked_for_only_where_there_is_something_to_place():
    def never(labels: np.ndarray) -> float:
        raise AssertionError

    for labels in (np.array([0, 0, 1, 1]), np.arange(4), np.array([0, 0, 0, 1])):
        found = place_leftovers(labels, np.tile(labels, (3, 1)), never)
        assert np.array_equal(found, labels)


def test_places_equal_a_slow_reference():
    rng = np.random.default_rng(1)
    labels = np.append(np.arange(24) % 4, np.arange(4, 10))
    draws = np.where(rng.random((15, 30)) < 0.5, rng.integers(5, size=(15, 30)), labels)
    share = np.zeros((30, 4))
    for draw in draws:
        for item in range(24, 30):
            for group in range(4):
                share[item, group] += (draw[labels == group] == draw[item]).mean() / 15
    expected = np.append(labels[:24], share[24:].argmax(1))
    seen = []

    def evidence(placed: np.ndarray) -> float:
        seen.append(np.flatnonzero(np.bincount(placed)[placed] > 1)[24:])
        return float(-len(set(placed)))

    found = place_leftovers(labels, draws, evidence)
    assert np.array_equal(found, np.unique(expected, return_inverse=True)[1])
    turns = np.argsort(-share[24:].max(1), kind="stable") + 24
    for placed in seen:
        assert set(placed) == set(turns[: len(placed)])


def every_pair(sizes: list[int], seed: int) -> tuple[np.ndarray, dict]:
    """Every pair of items in groups of these sizes, judged once, 15 of 100 wrongly."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    left, right = np.triu_indices(len(truth), 1)
    said = (truth[left] == truth[right]) ^ (rng.random(len(left)) < 0.15)
    return truth, {"left": left, "right": right, "same": said, "n_items": len(truth)}


def test_few_items_are_not_groups_of_their_own_among_larger_ones():
    found = []
    for seed in range(6):
        _, answers = every_pair([4] * 10, seed)
        found.append([infer_partition(**answers, seed=seed, quick=q).n_groups for q in (0, 1)])
    placed, left = np.mean(found, axis=0)
    assert abs(placed - 10) <= 1
    assert left > placed + 0.5  # where more answers are to come
