"""The number of classes, from the judgements alone."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.class_count import count_classes
from likewise.pairs import Pairs


def perceived(n_items: int, n_classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_classes, n_items)


@pytest.mark.parametrize("n_classes", [2, 5, 10])
@pytest.mark.parametrize("per_item", [None, 30, 40])
def test_consistent_judgements_show_their_groups(n_classes, per_item):
    count, evidence = count_classes(Pairs.from_labels(perceived(500, n_classes, 0), per_item, 1))
    assert count == n_classes
    assert evidence["rule"] == "components"


def test_groups_that_have_not_grown_together_still_say_how_many():
    counts = [count_classes(Pairs.from_labels(perceived(1000, 8, s), 13, s))[0] for s in range(5)]
    assert sum(count == 8 for count in counts) >= 4
    assert max(counts) == 8  # never more groups, any two judged different, than classes


@pytest.mark.parametrize("n_classes", [2, 4, 7])
def test_contradictory_judgements_show_it_in_their_spectrum(n_classes):
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(perceived(400, n_classes, 0), 120, 1)
    u = rng.random(len(pairs))
    noisy = Pairs(pairs.left, pairs.right, np.where(pairs.same, u < 0.7, u < 0.1), n_items=400)
    count, evidence = count_classes(noisy)
    assert count == n_classes
    assert evidence["rule"] == "spectrum"
    above = [value for value in evidence["eigenvalues"] if value > evidence["edge"]]
    assert len(above) == n_classes - 1


def test_answers_that_mean_nothing_give_the_least_number():
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(perceived(300, 5, 0), 40, 1)
    noise = Pairs(pairs.left, pairs.right, rng.random(len(pairs)) < 0.3, n_items=300)
    assert count_classes(noise)[0] == 2


def test_unequal_classes_count_too():
    z = np.repeat(np.arange(4), [200, 100, 60, 40])
    assert count_classes(Pairs.from_labels(z))[0] == 4
    assert count_classes(Pairs.from_labels(z, 60, 0))[0] == 4
