"""The number of classes, from the judgements alone."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from likewise.pairs import Pairs
from likewise.pairs.counting import Evidence, count_from_judgements


def count(pairs: Pairs) -> tuple[int, Evidence]:
    return count_from_judgements(pairs, np.random.default_rng(0))


def perceived(n_items: int, n_classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_classes, n_items)


@pytest.mark.parametrize("n_classes", [2, 5, 10])
@pytest.mark.parametrize("per_item", [None, 30, 40])
def test_consistent_judgements_show_their_groups(n_classes, per_item):
    found, evidence = count(Pairs.from_labels(perceived(500, n_classes, 0), per_item, 1))
    assert found == n_classes
    assert evidence["rule"] == "components"


def test_groups_that_have_not_grown_together_still_say_how_many():
    counts = [count(Pairs.from_labels(perceived(1000, 8, s), 13, s))[0] for s in range(5)]
    assert sum(found == 8 for found in counts) >= 4
    assert max(counts) == 8  # never more groups, any two judged different, than classes


@pytest.mark.parametrize("n_classes", [2, 4, 7])
def test_contradictory_judgements_show_it_in_their_spectrum(n_classes):
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(perceived(400, n_classes, 0), 120, 1)
    u = rng.random(len(pairs))
    noisy = Pairs(pairs.left, pairs.right, np.where(pairs.same, u < 0.7, u < 0.1), n_items=400)
    found, evidence = count(noisy)
    assert found == n_classes
    assert evidence["rule"] == "spectrum"
    above = [value for value in evidence["eigenvalues"] if value > evidence["edge"]]
    assert len(above) == n_classes - 1


def test_answers_that_mean_nothing_give_the_least_number():
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(perceived(300, 5, 0), 40, 1)
    noise = Pairs(pairs.left, pairs.right, rng.random(len(pairs)) < 0.3, n_items=300)
    assert count(noise)[0] == 2


def test_unequal_classes_count_too():
    z = np.repeat(np.arange(4), [200, 100, 60, 40])
    assert count(Pairs.from_labels(z))[0] == 4
    assert count(Pairs.from_labels(z, 60, 0))[0] == 4


LONG_TAIL = [1000, 900, 20, 15, 10]


@pytest.mark.parametrize("sizes", [[8] * 100, [4] * 300, LONG_TAIL, [2, 2], [3]])
@pytest.mark.parametrize("listed", [False, True])
def test_a_complete_set_has_as_many_classes_as_groups(sizes: list[int], listed: bool) -> None:
    pairs = Pairs.from_labels(np.repeat(np.arange(len(sizes)), sizes))
    found, evidence = count(pairs.explicit() if listed else pairs)
    assert found == len(sizes)
    assert evidence["rule"] == "components"
    assert evidence["sizes"] == sorted(sizes, reverse=True)[:60]
    assert json.loads(json.dumps(evidence)) == evidence


def test_single_items_of_a_complete_set_are_outliers_and_not_classes() -> None:
    """Of one item no class can be learned; beside one group alone, they are what differs."""
    z = np.array([0] * 9 + [1] * 5 + [2, 3, 4])
    found, evidence = count(Pairs.from_labels(z))
    assert (found, evidence["single items"]) == (2, 3)
    assert count(Pairs.from_labels([0, 0, 0, 1, 2]))[0] == 2
    assert count(Pairs.from_labels([0, 0, 0]))[0] == 1


def test_items_that_nobody_judged_do_not_make_a_set_incomplete() -> None:
    listed = Pairs.from_labels(np.repeat(np.arange(90), 3)).explicit()
    assert count(listed.about(400))[0] == 90


def test_many_and_unequal_classes_of_a_sparse_set() -> None:
    many = np.repeat(np.arange(40), 25)
    assert count(Pairs.from_labels(many, 250, 0))[0] == 40
    assert count(Pairs.from_labels(np.repeat(np.arange(5), LONG_TAIL), 300, 0))[0] == 5


def test_judgements_of_weight_0_join_no_classes() -> None:
    z = np.repeat(np.arange(3), 20)
    listed = Pairs.from_labels(z, 30, 0)
    wrong = Pairs([0, 20], [20, 40], [1, 1], n_items=60)
    both = Pairs.concatenate([listed, wrong])
    weight = np.append(np.ones(len(listed)), [0, 0])
    pairs = Pairs(both.left, both.right, both.same, weight=weight, n_items=60)
    assert count(pairs)[0] == 3
    assert count(pairs)[1]["rule"] == "components"


def test_one_pair_judged_both_ways_and_nothing_else() -> None:
    """The centred matrix is zero: Lanczos has nothing to start from."""
    for n_items in (2, 3, 100):
        assert count(Pairs([0, 1], [1, 0], [1, 0], n_items=n_items))[0] == 2


def test_describing_and_counting_need_no_torch() -> None:
    code = """
import sys
import numpy as np
from likewise.pairs import Pairs
pairs = Pairs.from_labels(np.arange(60) % 3, 30, 0)
same = pairs.same ^ (np.arange(len(pairs)) % 9 == 0)
noise = Pairs(pairs.left, pairs.right, same, n_items=60).describe().noise
assert noise.counted, noise
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
