"""The centred judgement matrix, beside a dense one."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.pairs import counting
from likewise.pairs.container import Pairs
from likewise.pairs.counting import (
    _before_the_fall,
    _by_components,
    _by_groups,
    _grow,
    _largest_clique,
    count_from_judgements,
)
from likewise.pairs.graph import Contraction
from likewise.pairs.spectrum import spectral_embedding

N, M = 12, 60


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_values_and_vectors_are_those_of_the_dense_matrix(weighted: bool, named: bool) -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(N, size=M)
    right = (left + rng.integers(1, N, size=M)) % N
    same = rng.random(M) < 0.4
    weight = rng.random(M).astype(np.float32) if weighted else None
    people = rng.integers(3, size=M).astype(np.int32) if named else None
    strength = np.ones(M) if weight is None else weight.astype(float)
    overall = (same * strength).sum() / strength.sum()
    dense = np.zeros((N, N))
    for k in range(M):
        usual = overall
        if people is not None:
            own = people == people[k]
            usual = ((same * strength)[own].sum() + overall) / (strength[own].sum() + 1)
        dense[left[k], right[k]] += (same[k] - usual) * strength[k]
        dense[right[k], left[k]] += (same[k] - usual) * strength[k]
    values, vectors = spectral_embedding(
        left=left, right=right, same=same, weight=weight, annotator=people, n_items=N, n_vectors=4
    )
    expected = np.sort(np.linalg.eigvalsh(dense))[::-1][:4]
    np.testing.assert_allclose(values, expected, atol=1e-10)
    np.testing.assert_allclose(dense @ vectors, vectors * values, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)


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
    few = Pairs([0, 0], [1, 1], [1, 0])
    assert count_from_judgements(few, rng) == (
        2, {"rule": "spectrum", "eigenvalues": [], "edge": 0.0},
    )  # fmt: skip
