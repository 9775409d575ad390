"""The number of groups by held-out answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from likewise.inference.partition import infer_partition, number
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.fitting import fit_partition
from likewise.inference.partition.number import (
    STRENGTH,
    Choice,
    _believed,
    _over_numbers,
    _with_cells_or_without,
    choose_number,
    foretelling,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def judged(truth, n_judgements, a, b, rng, weight=None):
    left = rng.integers(len(truth), size=n_judgements)
    right = (left + rng.integers(1, len(truth), size=n_judgements)) % len(truth)
    said = rng.random(n_judgements) < np.where(truth[left] == truth[right], a, b)
    return Answers.build(left, right, said, len(truth), None, weight)


# -- what draws foretell -------------------------------------------------------------------------


def test_foretelling_equals_a_slow_reference(rng: np.random.Generator) -> None:
    truth = np.arange(20) % 3
    answers = judged(truth, 300, 0.8, 0.3, rng, weight=rng.uniform(0.5, 2, size=300))
    held = rng.random(answers.n_pairs) < 0.3
    seen, unseen = answers.select(~held), answers.select(held)
    drawn = rng.integers(4, size=(3, 20))
    drawn[0, :4] = range(4)

    def rate(labels, i, j):
        def counted(wanted):
            same = asked = 0.0
            for m in range(len(seen.same)):
                g, h = labels[seen.left[seen.pair[m]]], labels[seen.right[seen.pair[m]]]
                times = wanted(g, h)
                asked += times * seen.weight[m]
                same += times * seen.weight[m] * seen.same[m]
            return same, asked

        one, two = labels[i], labels[j]
        if one == two:
            same, asked = counted(lambda g, h: g == h == one)
            all_same, all_asked = counted(lambda g, h: g == h)
        else:
            same, asked = counted(lambda g, h: {g, h} == {one, two})
            all_same, all_asked = counted(lambda g, h: 2 * (g != h))
        return (same + STRENGTH * (all_same + 1) / (all_asked + 2)) / (asked + STRENGTH)

    expected = []
    for p in range(unseen.n_pairs):
        i, j = unseen.left[p], unseen.right[p]
        chance = np.mean([rate(labels, i, j) for labels in drawn])
        own = unseen.pair == p
        scores = np.log(np.where(unseen.same[own], chance, 1 - chance))
        expected.append(np.average(scores, weights=unseen.weight[own]))
    np.testing.assert_allclose(foretelling(drawn, seen, unseen), expected)


def test_true_groups_foretell_best(rng: np.random.Generator) -> None:
    truth = np.arange(60) % 3
    answers = judged(truth, 1500, 0.8, 0.2, rng)
    held = rng.random(answers.n_pairs) < 0.2
    seen, unseen = answers.select(~held), answers.select(held)
    finer, coarser = np.arange(60) % 6, truth // 2
    best, *others = (
        foretelling(labels[None], seen, unseen).mean() for labels in (truth, finer, coarser)
    )
    assert best > max(others) + 0.005


def test_answers_about_some_pairs(rng: np.random.Generator) -> None:
    left, right = rng.integers(6, size=(2, 80))
    who, weight, said = rng.integers(5, size=80), rng.random(80) + 0.1, rng.random(80) < 0.5
    answers = Answers.build(left, right, said, 6, who, weight)
    some = rng.random(answers.n_pairs) < 0.5
    kept = answers.select(some)
    np.testing.assert_array_equal(kept.left, answers.left[some])
    np.testing.assert_array_equal(kept.right, answers.right[some])
    of_these = some[answers.pair]
    for name in ("same", "annotator", "weight"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(answers, name)[of_these])
    assert kept.n_annotators == 5
    assert kept.n_items == 6


# -- which is taken ------------------------------------------------------------------------------


class Scored:
    """A split whose scores are given: a mean, and its noise."""

    def __init__(self, unseen: Answers, about: dict[Choice, tuple[float, float]]) -> None:
        self.unseen, self.about = unseen, about

    def scores(self, choice: Choice) -> np.ndarray | None:
        if choice not in self.about:
            return None
        mean, noise = self.about[choice]
        own = np.random.default_rng([choice.n_groups or 0, choice.cells]).standard_normal(
            self.unseen.n_pairs
        )
        return mean + noise * (own - own.mean())


OPEN, PLAIN, FIVE = Choice(None), Choice(None, cells=False), Choice(5)


def splits(rng: np.random.Generator, about: dict[Choice, tuple[float, float]]) -> list[Scored]:
    return [Scored(judged(np.arange(40) % 2, 300, 0.8, 0.2, rng), about) for _ in range(2)]


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({PLAIN: (-0.5, 0.1), OPEN: (-0.5, 0.1)}, OPEN),
        ({PLAIN: (-0.49, 0.001), OPEN: (-0.5, 0.001)}, PLAIN),  # cells are behind
        ({PLAIN: (-0.499, 0.1), OPEN: (-0.5, 0.1)}, OPEN),  # within an error
        ({PLAIN: (-0.49, 0.001)}, OPEN),  # they do not differ: nothing to leave out
    ],
)
def test_cells_stand_unless_they_foretell_worse(
    rng: np.random.Generator, about: dict[Choice, tuple[float, float]], expected: Choice
) -> None:
    assert _with_cells_or_without(splits(rng, about), {True: 5, False: 5}) == expected


@pytest.mark.parametrize(
    ("plain", "ends_with", "expected"),
    [(-0.499, 4, PLAIN), (-0.499, 9, OPEN), (-0.501, 4, OPEN)],
)
def test_cells_that_foretell_no_better_are_not_worth_more_groups(
    rng: np.random.Generator, plain: float, ends_with: int, expected: Choice
) -> None:
    about = {PLAIN: (plain, 0.1), OPEN: (-0.5, 0.1)}
    assert _with_cells_or_without(splits(rng, about), {False: ends_with, True: 9}) == expected


def test_no_number_is_looked_for_where_cells_stand(rng, monkeypatch) -> None:
    """They cut and merge groups themselves."""

    class Asked(Exception):
        pass

    def ask(*_: object) -> Choice | None:
        raise Asked

    answers = judged(np.arange(40) % 4, 900, 0.9, 0.1, rng)
    fit = fit_partition(answers, None, None, rng)
    monkeypatch.setattr(number, "_with_cells_or_without", lambda *_: OPEN)
    monkeypatch.setattr(number, "_best_number", ask)
    assert choose_number(answers, None, fit, fit.sampled, rng) == OPEN
    with pytest.raises(Asked):  # cells that do not differ find no number
        choose_number(answers, None, fit, None, rng)
    monkeypatch.setattr(number, "_with_cells_or_without", lambda *_: PLAIN)
    with pytest.raises(Asked):
        choose_number(answers, None, fit, fit.sampled, rng)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({PLAIN: (-0.5, 0.001), FIVE: (-0.48, 0.001)}, FIVE),
        ({PLAIN: (-0.5, 0.1), FIVE: (-0.49, 0.1)}, PLAIN),  # not clearly
        ({PLAIN: (-0.5, 0.001), FIVE: (-0.52, 0.001)}, PLAIN),
        ({PLAIN: (-0.5, 0.001)}, PLAIN),
    ],
)
def test_the_open_search_stands_unless_a_number_is_ahead(
    rng: np.random.Generator, about: dict[Choice, tuple[float, float]], expected: Choice
) -> None:
    five = FIVE if FIVE in about else None
    assert _believed(five, PLAIN, splits(rng, about), 5) == expected


@pytest.mark.parametrize(
    ("five", "ends_with", "expected"),
    [
        (-0.499, 6, FIVE),
        (-0.499, 4, PLAIN),  # more groups have to be clearly ahead
        (-0.501, 6, PLAIN),
    ],
)
def test_fewer_groups_that_foretell_as_well_are_taken(
    rng: np.random.Generator, five: float, ends_with: int, expected: Choice
) -> None:
    about = {PLAIN: (-0.5, 0.1), FIVE: (five, 0.1)}
    assert _believed(FIVE, PLAIN, splits(rng, about), ends_with) == expected


def test_numbers_half_way_beside_the_best() -> None:
    asked = []

    def tried(k):
        asked.append(k)
        return -abs(np.log(k / 13))

    found = _over_numbers([3, 5], [8, 13, 20, 30, 50], tried)
    assert asked == [3, 5, 8, 13, 20, 30, 10, 16]  # no more than two beyond the best
    assert list(found) == asked


def test_numbers_that_explain_far_less_are_not_likely(rng: np.random.Generator) -> None:
    answers = judged(np.arange(120) % 8, 4000, 0.9, 0.1, rng)
    fit = fit_partition(answers, None, None, rng)
    assert fit.states[0].labels.max() + 1 == 8
    assert 8 in fit.likely_numbers
    assert min(fit.likely_numbers) >= 5


@pytest.mark.parametrize(("n_items", "n_judgements"), [(12, 30), (300, 1200)])
def test_few_answers_leave_the_number_open(
    rng: np.random.Generator, n_items: int, n_judgements: int
) -> None:
    answers = judged(np.arange(n_items) % 3, n_judgements, 0.8, 0.2, rng)
    assert choose_number(answers, None, None, None, rng) == Choice(None)


def test_groups_that_would_fall_apart_are_left_as_found() -> None:
    """Groups of three, three people about each near pair: without some of the pairs nobody knows
    them, and a handful of large groups foretells the rest better."""
    rng = np.random.default_rng(0)
    truth = np.arange(75) // 3
    left, right = np.triu_indices(75, 1)
    near = right - left < 8
    left, right = np.repeat(left[near], 3), np.repeat(right[near], 3)
    same = (truth[left] == truth[right]) ^ (rng.random(len(left)) < 0.1)
    found = infer_partition(left, right, same, n_items=75, seed=0)
    assert adjusted_rand_score(truth, found.labels) > 0.9
    assert abs(found.n_groups - 25) <= 2


@pytest.mark.parametrize("told", [True, False])
def test_odd_items_fill_groups_only_where_their_number_is_told(
    rng: np.random.Generator, told: bool
) -> None:
    """Three groups, and ten items that look like two of them, to some people."""
    truth = np.append(np.arange(45) % 3, np.full(10, 3))
    left, right = np.triu_indices(55, 1)
    p = np.where(truth[left] == truth[right], 0.9, 0.1)
    p[(truth[left] != 2) & (truth[right] == 3)] = 0.5
    answers = Answers.build(left, right, rng.random(len(left)) < p, 55, None, None)
    found = fit_partition(answers, None, 8, rng, told=told).sampled
    assert found.labels.max() + 1 == 8 if told else found.labels.max() + 1 < 8
    assert adjusted_rand_score(truth[:45], found.labels[:45]) == 1


@pytest.mark.slow  # a dozen searches; the choice between them is tested above
@pytest.mark.parametrize("quick", [True, False])
def test_confusable_groups_are_told_apart(quick: bool) -> None:
    """Six groups, two and two often taken for each other: under one rate for all pairs across
    groups they are three."""
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.arange(90) % 6)
    i, j = np.triu_indices(90, 1)
    p = np.where(truth[i] == truth[j], 0.9, np.where(truth[i] // 2 == truth[j] // 2, 0.4, 0.05))
    said = rng.random(len(i)) < p
    found = infer_partition(i, j, said, n_items=90, seed=0, quick=quick)
    assert found.n_groups == 6
    assert adjusted_rand_score(truth, found.labels) > 0.95
