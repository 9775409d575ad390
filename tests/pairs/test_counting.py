"""The number of classes, from the judgements alone."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from likewise.pairs import Pairs, counting
from likewise.pairs.counting import (
    Evidence,
    _before_the_fall,
    _by_components,
    _by_groups,
    _grow,
    _largest_clique,
    count_from_judgements,
)
from likewise.pairs.graph import Contraction


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


@pytest.mark.parametrize(
    ("sizes", "count"),
    [([9], 1), ([9, 8], 2), ([9, 8, 1], 2), ([9, 8, 7, 1, 1], 3), ([2, 2, 2], 3), ([50, 9, 8], 3)],
)
def test_groups_before_the_steepest_fall(sizes: list[int], count: int) -> None:
    assert _before_the_fall(np.array(sizes)) == count


@pytest.mark.parametrize(
    ("sizes", "count", "single"),
    [([5, 4, 1, 1], 2, 2), ([5, 1], 2, 1), ([5], 1, 0), ([1, 1], 2, 2)],
)
def test_classes_are_groups_of_two_or_more(sizes: list[int], count: int, single: int) -> None:
    found, evidence = _by_components(np.array(sizes))
    assert found == count
    larger = sorted((size for size in sizes if size > 1), reverse=True)
    assert evidence == {"rule": "components", "sizes": larger, "single items": single}


def merged(sizes: list[int], apart: list[tuple[int, int]]) -> Contraction:
    left, right = (np.array([pair[k] for pair in apart], int) for k in range(2))
    component = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    return Contraction(component, np.array(sizes), left, right, 0, 0)


def test_groups_that_have_grown_are_classes_unless_more_are_apart() -> None:
    rng = np.random.default_rng(0)
    apart = [(0, 1)]
    grown = merged([20, 20, 5, 5, 1], apart)
    count, evidence = _by_groups(grown, rng)
    assert (count, evidence["rule"], evidence["sizes"]) == (2, "components", [20, 20, 5, 5, 1])
    three = merged([20, 20, 5, 5, 1], [(0, 1), (0, 2), (1, 2)])
    count, evidence = _by_groups(three, rng)
    assert (count, evidence) == (3, {"rule": "groups judged different", "sizes": [20, 20, 5]})
    small = merged([3, 3, 2, 2, 1], [(0, 1), (0, 4), (1, 4)])
    count, evidence = _by_groups(small, rng)
    assert (count, evidence) == (3, {"rule": "groups judged different", "sizes": [3, 3, 1]})
    assert _by_groups(merged([3, 3, 2], []), rng)[0] == 2


def test_the_largest_set_of_groups_apart() -> None:
    rng = np.random.default_rng(0)
    cycle = [(k, (k + 1) % 7) for k in range(7)] + [(0, 2), (4, 6), (3, 5), (3, 6), (4, 5)]
    graph = merged([2, 2, 2, 2, 2, 2, 1], [(min(p), max(p)) for p in cycle])
    found = _largest_clique(graph, rng, at_least=1)
    assert sorted(found.tolist()) == [3, 4, 5, 6]
    without = _largest_clique(graph, rng, at_least=2)
    assert len(without) == 3
    assert 6 not in without
    apart = ~np.eye(3, dtype=bool)
    apart[0, 1] = apart[1, 0] = False
    assert _grow(apart, np.array([1, 0, 2])) == [1, 2]


def test_the_spectrum_of_many_items_is_that_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    base = Pairs.from_labels(np.arange(200) % 3, 100, 0)
    flip = rng.random(len(base)) < 0.1
    pairs = Pairs(base.left, base.right, base.same ^ flip, n_items=200)
    seen = []
    real = counting.spectral_embedding
    monkeypatch.setattr(counting, "spectral_embedding", lambda **k: seen.append(k) or real(**k))
    count, evidence = count_from_judgements(pairs, rng)
    assert (count, evidence["rule"]) == (3, "spectrum")
    assert [call["n_items"] for call in seen] == [200] * 4
    assert [call["n_vectors"] for call in seen] == [60, 1, 1, 1]
    assert len(evidence["eigenvalues"]) == 5
    assert evidence["eigenvalues"] == sorted(evidence["eigenvalues"], reverse=True)
    largest = max(float(real(**call)[0][0]) for call in seen[1:])
    assert evidence["edge"] == pytest.approx(1.03 * largest, abs=1e-4)
    monkeypatch.setattr(counting, "MAX_ITEMS", 150)
    assert count_from_judgements(pairs, rng)[0] == 3
    assert seen[-1]["n_items"] == 150
    people = np.arange(len(pairs)) % 3
    named = Pairs(pairs.left, pairs.right, pairs.same, people, n_items=200)
    count_from_judgements(named.subset(np.arange(100)), rng)
    assert seen[-4]["annotator"] is not None
    assert [call["annotator"] for call in seen[-3:]] == [None] * 3
    few = Pairs([0, 0], [1, 1], [1, 0])
    assert count_from_judgements(few, rng) == (
        2, {"rule": "spectrum", "eigenvalues": [], "edge": 0.0},
    )  # fmt: skip
