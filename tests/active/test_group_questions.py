"""What to ask about groups, without features."""

from __future__ import annotations

import numpy as np
import pytest

import likewise as lw
from likewise.active.group_questions import membership_table, spread_out, told_by_answers
from likewise.errors import InputError


def test_an_answer_tells_of_each_item_what_bayes_rule_says() -> None:
    rng = np.random.default_rng(0)
    belief = rng.dirichlet(np.ones(4), 5)
    table = membership_table((0.9, 0.15), 4, 0.4)
    found = told_by_answers(belief, table)
    for i in range(5):
        for j in range(i):
            joint = np.outer(belief[i], belief[j])
            told = 0.0
            for chance in (table, 1 - table):
                p = (joint * chance).sum()
                for after, before in (
                    ((joint * chance).sum(1) / p, belief[i]),
                    ((joint * chance).sum(0) / p, belief[j]),
                ):
                    told += p * (after * np.log(after / before)).sum()
            assert found[i, j] == pytest.approx(told)
            assert found[j, i] == pytest.approx(told)


def test_two_open_items_tell_nothing_of_each_other() -> None:
    belief = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    found = told_by_answers(belief, membership_table((0.9, 0.1), 3, 0.5))
    assert found[0, 1] == pytest.approx(0, abs=1e-9)
    assert found[0, 2] > 0.3


def test_two_items_not_seen_yet_need_not_be_of_one_group() -> None:
    table = membership_table((0.9, 0.1), 3, 0.25)
    assert table[2, 2] == pytest.approx(0.3)
    assert table[0, 0] == table[1, 1] == 0.9
    assert table[0, 2] == table[0, 1] == 0.1


def test_a_batch_does_not_dwell_on_one_item() -> None:
    """A second question is worth half: of 6, then 3, then 1.5, the rest are less than others'."""
    rng = np.random.default_rng(0)
    value = 0.8 + 0.1 * rng.random((40, 40))
    value[0] = 6.0
    value = np.maximum(value, value.T)
    np.fill_diagonal(value, -np.inf)
    doubt = np.where(np.arange(40) < 20, 1.0 + rng.random(40), 0.0)
    doubt[0] = 3.0
    asked, compared = spread_out(value, doubt, 15).T
    assert (asked == 0).sum() == 3
    assert np.bincount(asked[asked > 0]).max() == 1
    assert np.bincount(compared).max() <= 3


def test_a_batch_is_filled_where_there_are_pairs() -> None:
    value = np.random.default_rng(0).random((6, 6))
    np.fill_diagonal(value, -np.inf)
    chosen = spread_out(value, np.arange(6.0), 15)
    assert len({tuple(sorted(pair)) for pair in chosen.tolist()}) == 15
    assert len(spread_out(value, np.arange(6.0), 99)) == 15


def test_the_first_questions_are_among_few_items() -> None:
    nothing = lw.Pairs([], [], [], n_items=500)
    asked = lw.suggest(None, None, nothing, 45)
    assert asked.shape == (45, 2)
    assert len(np.unique(asked)) == 10  # all their pairs
    assert len(np.unique(asked, axis=0)) == 45


def answered(
    truth: np.ndarray, pairs: lw.Pairs, asked: np.ndarray, rng: np.random.Generator
) -> lw.Pairs:
    left, right = asked.T
    said = (truth[left] == truth[right]) ^ (rng.random(len(left)) < 0.1)
    return lw.Pairs(
        np.append(pairs.left, left),
        np.append(pairs.right, right),
        np.append(pairs.same, said),
        n_items=len(truth),
    )


def ask(truth: np.ndarray, n: int, items: np.ndarray | None = None) -> tuple[lw.Groups, lw.Pairs]:
    rng = np.random.default_rng(0)
    pairs = lw.Pairs([], [], [], n_items=len(truth))
    groups = None
    while len(pairs) < n:
        asked = lw.suggest(groups, items, pairs, 50, random_state=rng)
        pairs = answered(truth, pairs, asked, rng)
        groups = lw.group(pairs, items, start=groups)
    assert groups is not None
    return groups, pairs


def test_few_answers_an_item_find_the_groups() -> None:
    """Of 120 items of 4 groups, 1,000 answers of all 7,140, a tenth of them wrong."""
    truth = np.random.default_rng(0).integers(0, 4, 120)
    groups, pairs = ask(truth, 1000)
    code = np.minimum(pairs.left, pairs.right) * 120 + np.maximum(pairs.left, pairs.right)
    assert len(np.unique(code)) == len(pairs), "a pair was asked twice"
    assert groups.n_groups == 4
    table = np.zeros((4, 4))
    np.add.at(table, (groups.labels, truth), 1)
    assert table.max(1).sum() >= 116


def test_features_spare_answers() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 120)
    groups, _ = ask(truth, 500, 5.0 * np.eye(4)[truth] + rng.normal(size=(120, 4)))
    table = np.zeros((groups.n_groups, 4))
    np.add.at(table, (groups.labels, truth), 1)
    assert table.max(1).sum() >= 116


def test_given_candidates_are_chosen_from() -> None:
    truth = np.tile(np.arange(3), 7)
    i, j = np.triu_indices(21, 1)
    known = (i < 20) & (j < 20)
    pairs = lw.Pairs(i[known], j[known], truth[i[known]] == truth[j[known]], n_items=21)
    groups = lw.group(pairs)
    pool = np.array([[0, 3], [1, 4], [20, 0], [2, 5]])
    assert lw.suggest(groups, None, pairs, 1, candidates=pool).tolist() == [[20, 0]]


def test_items_that_came_since_are_asked_about() -> None:
    truth = np.tile(np.arange(3), 7)
    i, j = np.triu_indices(20, 1)
    groups = lw.group(lw.Pairs(i, j, truth[i] == truth[j], n_items=20))
    pairs = lw.Pairs(i, j, truth[i] == truth[j], n_items=21)
    asked = lw.suggest(groups, None, pairs, 3)
    assert len(asked) == 3
    assert (asked == 20).any(axis=1).all()
    pool = np.array([[0, 3], [20, 0]])
    assert lw.suggest(groups, None, pairs, 1, candidates=pool).tolist() == [[20, 0]]


def test_mistakes_are_refused_in_words() -> None:
    pairs = lw.Pairs([0], [1], [True], n_items=3)
    with pytest.raises(InputError, match="at least one"):
        lw.suggest(None, None, pairs, 0)
    with pytest.raises(InputError, match="nothing to choose"):
        lw.suggest(None, None, pairs, 1, candidates=[[0, 2]])
    groups = lw.group(lw.Pairs([0, 1], [1, 2], [True, False], n_items=5))
    with pytest.raises(InputError, match="same items"):
        lw.group(pairs, start=groups)
    groups = lw.group(lw.Pairs([0, 1], [1, 4], [True, False]))
    for candidates in (None, [[0, 2]]):
        with pytest.raises(InputError, match=r"the groups are of 5 items, but .* about 3"):
            lw.suggest(groups, None, pairs, 1, candidates=candidates)
