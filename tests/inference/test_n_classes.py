"""The number of classes, from judgements that contradict each other and from the items."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from likewise.inference.problem import make_brief_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.count_by_evidence import (
    Counted,
    _fitted,
    _score_alone,
    can_count,
    likeliest,
    search,
)
from likewise.inference.selection.count_by_lifting import _of_share, can_lift
from likewise.inference.selection.final_fit import cost_of_rates
from likewise.inference.selection.n_classes import count_classes
from likewise.methods.dispatch import number_of_classes
from likewise.pairs import Pairs


def crowd(n_classes: int, seed: int = 0) -> tuple[np.ndarray, Pairs]:
    """240 items of 40 features in blobs, and 16 noisy judgements an item, a fifth of them coins."""
    rng = np.random.default_rng(seed)
    y = np.arange(240) % n_classes
    X = 1.5 * rng.normal(size=(n_classes, 40))[y] + rng.normal(size=(240, 40))
    base = Pairs.from_labels(y, 16, seed)
    person = rng.integers(0, 20, len(base))
    u = rng.random(len(base))
    same = np.where(person < 4, u < 0.5, base.same ^ (u < 0.08))
    return X, Pairs(base.left, base.right, same, [f"p{k}" for k in person], n_items=240)


def test_features_show_what_too_few_judgements_do_not():
    X, pairs = crowd(6)
    assert count_classes(pairs)[0] < 6
    count, evidence = number_of_classes("auto", pairs, 240, X)
    assert count == 6
    assert evidence["rule"] == "evidence of short fits"
    criterion = evidence["log_evidence"]
    assert criterion["6"] == max(criterion.values()) > criterion["2"]
    assert json.loads(json.dumps(evidence)) == evidence


def test_only_few_features_and_judgements_are_counted_by_fits():
    X, pairs = crowd(3)
    assert can_count(X, pairs)
    assert not can_count(X.reshape(240, 8, 5), pairs)  # images
    assert not can_count(X, pairs.select(np.arange(90)))
    assert not can_count(X, weighted(pairs, np.arange(len(pairs)) < 90))
    assert not can_count(X, Pairs.from_labels(np.arange(240) % 3))
    assert not can_count(np.zeros((10_000, 2)), pairs)


def fits(best: int, asked: list[int], uses: Callable[[int], int] = lambda number: number):
    """Fits that are the better the nearer the classes that are told apart are to ``best``."""

    def fit(number: int) -> Counted:
        asked.append(number)
        told = uses(number)
        criterion = float(-abs(told - best))
        return Counted(told, criterion, torch.full((9,), criterion))

    return fit


def no_error(difference: torch.Tensor) -> float:
    return 0.0


def test_of_numbers_that_foretell_alike_the_likeliest_is_taken():
    flat = torch.zeros(9)
    tried = {
        3: Counted(3, -20.0, flat - 0.01),
        4: Counted(4, -10.0, flat - 0.001),
        8: Counted(8, -12.0, flat),
        9: Counted(9, -1.0, flat - 0.5),  # likely, and yet it foretells badly
    }
    assert likeliest(tried, lambda difference: 0.05).told == 4
    assert likeliest(tried, no_error).told == 8


def test_a_rate_costs_half_the_logarithm_of_its_answers():
    labels = np.array([0, 0, 1, 1, 2])
    left, right = np.array([0, 0, 0, 2, 3, 4]), np.array([1, 2, 3, 0, 2, 0])
    graph = Graph.from_pairs(Pairs(left, right, np.ones(6, bool)))
    cells = [tuple(sorted((labels[i], labels[j]))) for i, j in zip(left, right)]
    by_cell = sum(0.5 * np.log(1 + cells.count(cell)) for cell in set(cells))
    sides = [a == b for a, b in cells]
    by_side = sum(0.5 * np.log(1 + sides.count(side)) for side in (True, False))
    given = torch.from_numpy(labels), graph
    assert cost_of_rates(*given, cells=True) == pytest.approx(by_cell)
    assert cost_of_rates(*given, cells=False) == pytest.approx(by_side)


def weighted(pairs: Pairs, weight: np.ndarray) -> Pairs:
    columns = pairs.left, pairs.right, pairs.same, pairs.annotator, weight
    return Pairs(*columns, n_items=pairs.n_items, annotator_names=pairs.annotator_names)


def test_weights_count_in_one_class_as_in_many():
    """A judgement of weight 3 is the judgement three times, whatever it is compared with."""
    X, pairs = crowd(4)
    held = np.random.default_rng(0).random(len(pairs)) < 0.15
    found = []
    for given, rows in (
        (weighted(pairs, np.full(len(pairs), 3.0)), np.arange(len(pairs))),
        (pairs, np.repeat(np.arange(len(pairs)), 3)),
    ):
        seen, unseen = (given.select(rows[part[rows]]) for part in (~held, held))
        problem = make_brief_problem(X, seen, np.random.default_rng(0))
        assert problem is not None
        found.append(_fitted(problem, Graph.from_pairs(unseen), 1))
    assert found[0].criterion == pytest.approx(found[1].criterion, rel=1e-6)
    assert float(found[0].scores.mean()) == pytest.approx(3 * float(found[1].scores.mean()))


def test_weights_count_in_what_judgements_alone_foretell():
    _, pairs = crowd(2)
    graph = Graph.from_pairs(pairs.select(np.arange(1000)))
    unseen = Graph.from_pairs(pairs.select(np.arange(1000, 1200)))
    weight = torch.linspace(0.5, 3, 200)
    plain, heavy = (
        _score_alone(graph, one, np.random.default_rng(0))
        for one in (unseen, replace(unseen, weight=weight))
    )
    torch.testing.assert_close(heavy, plain * weight.double())


def test_weights_count_in_what_rates_cost_and_a_share_explains():
    left, right, same = [0, 0, 1, 2], [1, 2, 3, 3], [True, False, False, True]
    rows = [0, 0, 1, 2, 2, 2, 3]
    once = Graph.from_pairs(Pairs(left, right, same, weight=[2.0, 1.0, 3.0, 1.0]))
    often = Graph.from_pairs(Pairs(left, right, same).select(rows))
    labels = torch.tensor([0, 0, 1, 1])
    for cells in (False, True):
        assert cost_of_rates(labels, once, cells) == pytest.approx(
            cost_of_rates(labels, often, cells)
        )
    assert _of_share(once) == pytest.approx(_of_share(often))


@pytest.mark.parametrize("best", [2, 5, 10, 13])
def test_the_search_climbs_to_the_best_number_and_asks_for_none_twice(best):
    asked: list[int] = []
    tried = search(fits(best, asked), 2, 48, no_error)
    assert likeliest(tried, no_error).told == best
    assert len(asked) == len(set(asked)) == len(tried)
    assert max(asked) <= 27


def test_classes_that_nothing_tells_apart_do_not_count():
    """Whatever is asked for beyond seven classes, answers tell seven apart."""
    tried = search(fits(7, [], lambda number: min(number, 7)), 2, 48, no_error)
    assert likeliest(tried, no_error).told == 7
    assert max(tried) <= 20


def test_the_search_goes_as_far_as_the_spectrum_saw_and_no_further_than_there_are_items():
    assert max(search(fits(3, []), 20, 48, no_error)) == 20
    assert max(search(fits(30, []), 2, 9, no_error)) == 9


def few_judged(n_classes: int, per_item: int, apart: float = 3.0) -> tuple[np.ndarray, Pairs]:
    """130 items in clusters, consistent judgements of which no group has grown."""
    rng = np.random.default_rng(3)
    y = rng.integers(n_classes, size=130)
    X = apart * rng.normal(size=(n_classes, 10))[y] + rng.normal(size=(130, 10))
    return X.astype(np.float32), Pairs.from_labels(y, per_item, 1)


@pytest.mark.parametrize(("n_classes", "per_item"), [(5, 3)])
def test_clusters_carry_few_judgements_to_the_number_of_classes(n_classes, per_item):
    X, pairs = few_judged(n_classes, per_item)
    assert count_classes(pairs)[0] < n_classes
    count, evidence = number_of_classes("auto", pairs, 130, X)
    assert count == n_classes
    assert evidence["rule"] == "lifted judgements"
    values = evidence["log_evidence"]
    assert max(values, key=values.get) == str(n_classes)
    assert json.loads(json.dumps(evidence)) == evidence


def test_items_without_clusters_leave_the_number_to_the_judgements():
    X, pairs = few_judged(4, 3, apart=0.0)
    alone = count_classes(pairs)
    assert alone[1]["rule"] == "groups judged different"
    assert count_classes(pairs, items=X) == alone


def test_only_items_that_may_show_clusters_are_lifted():
    X, pairs = few_judged(4, 3)
    assert can_lift(X, pairs)
    assert can_lift(X.reshape(130, 2, 5), pairs)
    assert not can_lift(np.zeros((130, 6000), np.float32), pairs)
    assert not can_lift(X[:50], pairs)
    assert not can_lift(X, pairs.select(np.arange(90)))
    assert not can_lift(X, weighted(pairs, np.arange(len(pairs)) < 90))
    assert not can_lift(X, Pairs.from_labels(np.arange(130) % 3))


def test_groups_that_features_do_not_show_are_counted_by_judgements_alone():
    rng = np.random.default_rng(5)
    y = rng.permutation(np.arange(88) % 22)
    left, right = np.triu_indices(88, 1)
    same = np.where(rng.random(len(left)) < 0.97, y[left] == y[right], y[left] != y[right])
    pairs = Pairs(left, right, same, n_items=88)
    count, evidence = count_classes(pairs, items=rng.normal(size=(88, 40)))
    assert evidence["rule"] == "groups by judgements alone"
    foretold = evidence["held_out_log_likelihood"]
    assert max(foretold, key=foretold.get) == "judgements alone"
    assert abs(count - 22) <= 2


def test_looks_of_a_class_are_counted_once():
    """Features show six looks; people say "same" of most pairs within a class of two."""
    rng = np.random.default_rng(2)
    look = rng.permutation(np.arange(120) % 6)
    X = 1.5 * rng.normal(size=(6, 40))[look] + rng.normal(size=(120, 40))
    left = rng.integers(0, 120, 3_000)
    right = (left + rng.integers(1, 120, len(left))) % 120
    rate = np.where(look[left] // 2 == look[right] // 2, 0.75, 0.08)
    same = rng.random(len(left)) < np.where(look[left] == look[right], 0.95, rate)
    count, evidence = count_classes(Pairs(left, right, same, n_items=120), items=X)
    assert evidence["told_apart"]["6"] == count == 3
    assert evidence["log_evidence"]["6"] > evidence["log_evidence"]["3"]
