"""Triangles of judgements and the index behind them, against dictionaries and loops."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.pairs import Pairs, triangles
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.neighbours import Neighbours
from likewise.pairs.triangles import (
    PairIndex,
    Triangles,
    complete_triangles,
    count_triangles,
    draw_wedges,
    triangles_of_wedges,
)

N_ITEMS = 7


@st.composite
def graphs(draw: st.DrawFn) -> JudgementGraph:
    item = st.integers(0, N_ITEMS - 1)
    row = st.tuples(item, item, st.booleans()).filter(lambda r: r[0] != r[1])
    rows = draw(st.lists(row, max_size=40))
    left, right, same = (np.array([r[k] for r in rows], int) for k in range(3))
    return JudgementGraph(left, right, same.astype(bool), N_ITEMS)


def answers(graph: JudgementGraph) -> dict[tuple[int, int], list[bool]]:
    found = defaultdict(list)
    for i, j, same in zip(graph.left.tolist(), graph.right.tolist(), graph.same.tolist()):
        found[min(i, j), max(i, j)].append(same)
    return found


@given(graphs(), st.integers(1, 50))
def test_answers_are_looked_up_by_pair(graph: JudgementGraph, chunk: int) -> None:
    by_pair = answers(graph)
    share = {pair: np.mean(said) for pair, said in by_pair.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.pairs.edges.CHUNK", chunk)
        index = PairIndex(graph)
        keys = index._keys[::-1].copy()
        for one in (index, PairIndex.of_keys(keys, N_ITEMS)):
            both = sum(len(set(said)) == 2 for said in by_pair.values())
            assert one.count() == (len(by_pair), both)
            low, high, shares = one.shares()
            found = dict(zip(zip(low.tolist(), high.tolist()), shares.tolist()))
            assert found == share
            twice = [i * N_ITEMS + j for (i, j), said in by_pair.items() if len(said) > 1]
            assert one.repeated().tolist() == sorted(twice)
    a, b = np.array(list(combinations(range(N_ITEMS), 2))).T
    expected = [share.get(pair, np.nan) for pair in combinations(range(N_ITEMS), 2)]
    np.testing.assert_array_equal(index.look_up(a, b), expected)
    np.testing.assert_array_equal(index.look_up(b, a), expected)


@given(graphs(), st.lists(st.integers(0, N_ITEMS - 1), unique=True), st.integers(1, 9))
def test_partners_of_chosen_items(graph: JudgementGraph, chosen: list[int], piece: int) -> None:
    found = Neighbours(np.array(chosen, int), N_ITEMS)
    for start in range(0, len(graph), piece):
        part = slice(start, start + piece)
        found.add(graph.left[part], graph.right[part])
    start, neighbour = found.lists()
    assert (len(start), start[0], start[-1]) == (len(chosen) + 1, 0, len(neighbour))
    for k, centre in enumerate(sorted(chosen)):
        partners = graph.right[graph.left == centre].tolist()
        partners += graph.left[graph.right == centre].tolist()
        assert sorted(neighbour[start[k] : start[k + 1]].tolist()) == sorted(partners)


def test_paths_are_uniform() -> None:
    """A star of three, a pair judged twice and an item alone: each path as often as another."""
    left, right = np.array([0, 0, 0, 1, 4, 4]), np.array([1, 2, 3, 2, 5, 5])
    graph = JudgementGraph(left, right, np.ones(6, bool), 7)

    def neighbours(centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert centres.tolist() == sorted(set(centres.tolist()))
        found = Neighbours(centres, 7)
        found.add(left, right)
        return found.lists()

    centre, a, b = draw_wedges(graph.degree, np.random.default_rng(0), neighbours)
    assert 0.7 * triangles.SAMPLE_WEDGES < len(centre) <= triangles.SAMPLE_WEDGES
    times = defaultdict(int)
    for path in zip(centre.tolist(), a.tolist(), b.tolist()):
        times[path] += 1
    expected = [(0, x, y) for x in (1, 2, 3) for y in (1, 2, 3) if x != y]
    expected += [(1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    assert set(times) == set(expected)
    share = len(centre) / len(expected)
    assert max(abs(number / share - 1) for number in times.values()) < 0.03


def test_fewer_centres_where_they_have_many_judgements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triangles, "SAMPLE_EDGES", 400)
    monkeypatch.setattr(triangles, "SAMPLE_WEDGES", 1000)
    asked = []

    def neighbours(centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asked.append(len(centres))
        return np.arange(len(centres) + 1) * 40, np.tile(np.arange(40), len(centres))

    centre, a, b = draw_wedges(np.full(10_000, 40), np.random.default_rng(0), neighbours)
    assert asked == [10]
    assert len(centre) == 1000
    assert (a != b).all()
    assert set(np.bincount(centre)[np.unique(centre)]) == {100}


def noisy(items: int) -> JudgementGraph:
    """All pairs of three classes, one answer in five flipped."""
    rng = np.random.default_rng(0)
    listed = Pairs.from_labels(np.arange(items) % 3).explicit()
    same = listed.same ^ (rng.random(len(listed)) < 0.2)
    return Pairs(listed.left, listed.right, same, n_items=items).graph


def test_exact_counts_end_where_they_would_cost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rng = noisy(60), np.random.default_rng(0)
    exact = count_triangles(graph, rng)
    assert (exact.closed, exact.sampled) == (60 * 59 * 58 / 6, False)
    monkeypatch.setattr(triangles, "MAX_DENSE_ITEMS", 60)
    assert count_triangles(graph, rng, max_paths=0) == exact
    monkeypatch.setattr(triangles, "MAX_DENSE_ITEMS", 59)
    paths = float((graph.degree**2).sum())
    sparse = count_triangles(graph, rng, max_paths=paths)
    assert (sparse.closed, sparse.sampled) == (exact.closed, False)
    assert sparse.three_same == pytest.approx(exact.three_same)
    assert sparse.two_same == pytest.approx(exact.two_same)
    sampled = count_triangles(graph, rng, max_paths=paths - 1)
    assert sampled.sampled
    assert 0.5 * triangles.SAMPLE_WEDGES < sampled.closed <= triangles.SAMPLE_WEDGES
    share = exact.closed / sampled.closed
    assert sampled.three_same * share == pytest.approx(exact.three_same, rel=0.03)
    assert sampled.two_same * share == pytest.approx(exact.two_same, rel=0.03)


def test_where_few_paths_close_all_among_some_items_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, rng = noisy(60), np.random.default_rng(0)
    monkeypatch.setattr(triangles, "MAX_DENSE_ITEMS", 59)
    paths = float((graph.degree**2).sum())
    monkeypatch.setattr(triangles, "SAMPLE_WEDGES", triangles.ENOUGH)
    assert count_triangles(graph, rng, max_paths=paths / 8, thorough=True).closed == 2000
    monkeypatch.setattr(triangles, "SAMPLE_WEDGES", 1999)
    among = count_triangles(graph, rng, max_paths=paths / 7.9, thorough=True)
    assert (among.closed, among.sampled) == (30 * 29 * 28 / 6, True)
    assert count_triangles(graph, rng, max_paths=paths / 7.9).closed == 1999
    assert count_triangles(graph, rng, max_paths=1, thorough=True).closed == 1999


def test_the_index_may_be_there_already() -> None:
    graph = JudgementGraph(np.array([0, 1, 2]), np.array([1, 2, 0]), np.ones(3, bool), 3)
    other = JudgementGraph(np.array([0]), np.array([1]), np.ones(1, bool), 3)
    rng = np.random.default_rng(0)
    assert count_triangles(graph, rng).closed == 1
    assert count_triangles(graph, rng, index=PairIndex(other)).closed == 0


def test_triangles_of_paths() -> None:
    third = np.array([1.0, np.nan, 0.0, 0.5])
    first, second = np.array([1.0, 1.0, 1.0, 0.5]), np.array([1.0, 1.0, 1.0, 0.0])
    assert triangles_of_wedges(third, first, second) == Triangles(3.0, 1.25, 1.0, True)


def test_shares_of_a_third_side() -> None:
    assert Triangles(9, 1, 3, False).transitivity == 0.75
    assert Triangles(9, 0, 0, False).transitivity is None


def test_triangles_of_a_partition() -> None:
    ids = np.array([0, 1, 0, 2, 0, 1, 0])
    assert complete_triangles(ids) == Triangles(35.0, 0.0, 4.0, False)


@given(graphs(), st.integers(1, 50), st.lists(st.integers(0, N_ITEMS - 1), min_size=1, unique=True))
def test_neighbours_are_listed_in_the_order_of_the_judgements(
    graph: JudgementGraph, chunk: int, chosen: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.pairs.edges.CHUNK", chunk)
        found = Neighbours(np.array(chosen), N_ITEMS)
        found.add(graph.left, graph.right)
        start, neighbour = found.lists()
    ends = [*zip(graph.left.tolist(), graph.right.tolist())]
    ends += [(right, left) for left, right in ends]
    for k, item in enumerate(sorted(chosen)):
        partners = [there for here, there in ends if here == item]
        assert neighbour[start[k] : start[k + 1]].tolist() == partners
