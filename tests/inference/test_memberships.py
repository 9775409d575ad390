"""Beliefs about groups and one not seen yet: against sums over all groupings, and as they grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.inference.partition import continue_partition, continued, growing
from likewise.inference.partition.answers import Answers, two_rates
from likewise.inference.partition.continued import dense_core, settled
from likewise.inference.partition.memberships import Messages, propagate


def judged(truth: np.ndarray, left: np.ndarray, right: np.ndarray, flips: float = 0.0) -> Answers:
    rng = np.random.default_rng(0)
    same = (truth[left] == truth[right]) ^ (rng.random(len(left)) < flips)
    return Answers.build(left, right, same, len(truth), None, None)


def test_on_a_tree_beliefs_are_those_of_all_groupings() -> None:
    left, right = np.array([0, 0, 1]), np.array([1, 2, 3])  # a tree of four items
    answers = judged(np.array([0, 0, 1, 1]), left, right)
    rng = np.random.default_rng(0)
    likelihood = rng.uniform(0.1, 0.9, (3, 2))
    prior = rng.dirichlet(np.ones(3), 4)
    meeting = 0.3
    share = np.array([1.0, 1.0, meeting])
    belief, together, total = np.zeros((4, 3)), np.zeros(3), 0.0
    for groups in itertools.product(range(3), repeat=4):
        chance = np.prod(prior[np.arange(4), groups])
        equal = [share[groups[i]] if groups[i] == groups[j] else 0.0 for i, j in zip(left, right)]
        parts = [e * s + (1 - e) * d for e, (s, d) in zip(equal, likelihood, strict=True)]
        weight = chance * np.prod(parts)
        belief[np.arange(4), groups] += weight
        together += [
            weight * e * s / p for e, (s, _), p in zip(equal, likelihood, parts, strict=True)
        ]
        total += weight
    start = np.full((4, 3), 1 / 3)
    found = propagate(Messages.along(answers), np.log(likelihood), np.log(prior), meeting, start)
    np.testing.assert_allclose(found.belief, belief / total, atol=2e-3)
    np.testing.assert_allclose(found.pair_same, together / total, atol=2e-3)
    assert found.evidence == pytest.approx(np.log(total), abs=2e-3)


def test_a_pair_that_everybody_agrees_on_says_all_there_is_to_say() -> None:
    """Likelihoods of a thousand answers are below the smallest number there is."""
    answers = judged(np.array([0, 0, 1]), np.array([0, 1]), np.array([1, 2]))
    likelihood = np.array([[-300.0, -1200.0], [-1200.0, -300.0]])
    prior = np.tile(np.log([0.5, 0.5, 1e-9]), (3, 1))
    start = np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    found = propagate(Messages.along(answers), likelihood, prior, 0.5, start)
    np.testing.assert_allclose(found.pair_same, [1, 0], atol=1e-6)
    np.testing.assert_allclose(found.belief[0], found.belief[1], atol=1e-3)
    assert found.evidence == pytest.approx(-600 + 2 * np.log(0.5), abs=1e-2)


def test_an_item_nobody_judged_believes_what_was_known_before() -> None:
    answers = judged(np.zeros(3, int), np.array([0]), np.array([1]))
    prior = np.array([[0.5, 0.3, 0.2]] * 3)
    found = propagate(Messages.along(answers), np.log([[0.9, 0.1]]), np.log(prior), 0.5, prior)
    np.testing.assert_allclose(found.belief[2], prior[2], atol=1e-6)
    np.testing.assert_allclose(found.judged[2], 0, atol=1e-6)


def test_the_core_is_what_was_judged_densely() -> None:
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(12, 1)
    strewn = rng.integers(12, 400, (150, 2))
    strewn = strewn[strewn[:, 0] != strewn[:, 1]]
    left, right = np.append(i, strewn[:, 0]), np.append(j, strewn[:, 1])
    core = dense_core(judged(np.zeros(400, int), left, right))
    np.testing.assert_array_equal(core, np.arange(12))


@pytest.mark.parametrize("seed", range(5))
def test_the_core_is_that_of_peeling_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 30, (2, 90))
    answers = judged(np.zeros(30, int), left[left != right], right[left != right])
    ends = np.stack([answers.left, answers.right])
    most = int(np.ceil(np.sqrt(2 * answers.n_pairs))) + 1
    alive, best, core = set(ends.ravel().tolist()), -1.0, set[int]()
    while len(alive) > 1:
        inside = [(i, j) for i, j in ends.T.tolist() if i in alive and j in alive]
        if len(alive) <= most and len(inside) / len(alive) > best:
            best, core = len(inside) / len(alive), set(alive)
        degree = {k: sum(k in pair for pair in inside) for k in sorted(alive)}
        alive.remove(min(degree, key=lambda k: degree[k]))
    assert set(dense_core(answers).tolist()) == core


def test_strewn_answers_have_no_large_core() -> None:
    strewn = np.random.default_rng(0).integers(0, 1000, (500, 2))
    strewn = strewn[strewn[:, 0] != strewn[:, 1]]
    answers = judged(np.zeros(1000, int), strewn[:, 0], strewn[:, 1])
    assert len(dense_core(answers)) <= np.sqrt(2 * answers.n_pairs) + 2


def test_nothing_is_settled_with_one_group() -> None:
    core = np.arange(4)
    assert not settled(np.array([[0.99, 0.01]] * 4), core)
    assert settled(np.array([[0.98, 0.01, 0.01]] * 4), core)
    assert not settled(np.array([[0.5, 0.49, 0.01]] * 4), core)


def test_concentration_expects_as_many_groups_as_there_are() -> None:
    alpha = growing.concentration(10, 200.0)
    expected = (alpha / (alpha + np.arange(200))).sum()  # Ewens
    assert expected == pytest.approx(10, rel=0.2)


def world(n_groups: int, size: int, flips: float, seed: int = 0) -> tuple[np.ndarray, ...]:
    """All pairs of the first items, and each later one against all of those."""
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(n_groups), size)
    i, j = np.triu_indices(len(truth), 1)
    said = (truth[i] == truth[j]) ^ (rng.random(len(i)) < flips)
    return truth, i, j, said


def agree(labels: np.ndarray, truth: np.ndarray) -> bool:
    return len(set(zip(labels.tolist(), truth.tolist()))) == len(set(truth)) == len(set(labels))


def test_groups_are_continued() -> None:
    truth, i, j, said = world(3, 8, 0.1)
    start = np.where(np.arange(24) < 12, truth, -1)
    found = continue_partition(i, j, said, start, np.full(24, 0.9))
    assert agree(found.labels, truth)
    assert (found.probability > 0.9).all()
    assert found.p_same[0, 0] == pytest.approx(0.9, abs=0.08)
    assert found.p_same[0, 1] == pytest.approx(0.1, abs=0.08)


def test_a_group_that_was_not_seen_yet_is_opened() -> None:
    truth, i, j, said = world(4, 8, 0.05)
    start = np.where(truth < 3, truth, -1)
    found = continue_partition(i, j, said, start, np.full(32, 0.9))
    assert agree(found.labels, truth)


def grown(
    truth: np.ndarray, start: np.ndarray, i: np.ndarray, j: np.ndarray, said: np.ndarray
) -> tuple[growing.Grown, growing.Grown]:
    """Before and after groups may change, without a search from scratch."""
    answers = Answers.build(i, j, said, len(truth), None, None)
    grower = growing.Grower(answers)
    begun = grower.settle(
        grower.begin(start, np.full(len(truth), 0.9)), two_rates(answers, 0.8, 0.2)
    )
    return begun, grower.grow(begun)


def test_halves_of_one_group_are_merged() -> None:
    truth, i, j, said = world(3, 16, 0.0)
    first = np.arange(48) < 24
    # Few answers between the halves: too few for single items to change sides.
    apart = (truth[i] == 0) & (truth[j] == 0) & (first[i] != first[j])
    kept = ~apart | ((i + j) % 4 == 0)
    start = np.where((truth == 0) & first, 3, truth)
    begun, after = grown(truth, start, i[kept], j[kept], said[kept])
    assert not agree(begun.labels, truth)
    assert agree(after.labels, truth)
    assert after.score > begun.score


def test_items_unlike_all_groups_open_theirs() -> None:
    truth, i, j, said = world(4, 8, 0.1)
    begun, after = grown(truth, np.where(truth == 3, 2, truth), i, j, said)
    assert not agree(begun.labels, truth)
    assert agree(after.labels, truth)
    assert after.score > begun.score


class Astray(growing.Grower):
    """Whatever is settled once more explains the answers so much worse."""

    worse = 0.0

    def settle(self, *about: Any, **more: Any) -> growing.Grown:
        state = super().settle(*about, **more)
        self.worse += 1000.0
        found = replace(state.found, evidence=state.found.evidence - self.worse)
        return replace(state, found=found, score=state.score - self.worse)


def test_what_leads_astray_is_not_followed() -> None:
    """Neither a group that makes all else fit worse, nor turns that do."""
    truth, i, j, said = world(4, 8, 0.1)
    answers = Answers.build(i, j, said, len(truth), None, None)
    for start in (np.where(truth == 3, 2, truth), truth):
        willing, astray = growing.Grower(answers), Astray(answers)
        begun = willing.settle(
            willing.begin(start, np.full(len(truth), 0.9)), two_rates(answers, 0.8, 0.2)
        )
        assert agree(willing.grow(begun).labels, truth)
        stays = astray.grow(begun)
        assert stays.score == begun.score
        np.testing.assert_array_equal(stays.labels, begun.labels)


@pytest.mark.parametrize(
    ("n_groups", "gain", "merged"), [(2, 5, True), (10, 5, False), (10, 9, True)]
)
def test_one_of_many_pairs_of_groups_seems_one_by_chance(
    n_groups: int, gain: float, merged: bool
) -> None:
    class Gains(growing.Grower):
        """Fewer groups gain so much, and the first two are proposed."""

        def settle(self, *about: Any, **more: Any) -> growing.Grown:
            state = super().settle(*about, **more)
            fewer = state.belief.shape[1] - 1 < n_groups
            return replace(state, score=gain if fewer else 0.0)

        def _merged(self, state: growing.Grown) -> Iterator[np.ndarray]:
            merged = np.delete(state.belief, 1, axis=1)
            merged[:, 0] += state.belief[:, 1]
            yield merged

        def _split(self, state: growing.Grown) -> Iterator[np.ndarray]:
            yield from ()

    truth, i, j, said = world(n_groups, 6, 0.0)
    answers = Answers.build(i, j, said, len(truth), None, None)
    grower = Gains(answers)
    begun = grower.settle(
        grower.begin(truth, np.full(len(truth), 0.9)), two_rates(answers, 0.8, 0.2)
    )
    assert (grower.grow(begun).belief.shape[1] - 1 < n_groups) == merged


def test_two_groups_taken_for_one_are_split() -> None:
    """Few answers to other groups, so that no item is sure to be of one not seen yet."""
    truth, i, j, said = world(4, 12, 0.0)
    draw = np.random.default_rng(1).random((2, len(i)))
    both = (truth[i] >= 2) & (truth[j] >= 2)
    kept = np.where(both, draw[0] < 0.5, (truth[i] == truth[j]) | (draw[1] < 0.1))
    begun, after = grown(truth, np.where(truth == 3, 2, truth), i[kept], j[kept], said[kept])
    assert not agree(begun.labels, truth)
    assert agree(after.labels, truth)
    assert after.score > begun.score


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 4, 5, 8, 32])
def test_a_given_number_of_groups_is_kept_whatever_the_start_had(
    n_groups: int, looked: bool
) -> None:
    truth, i, j, said = world(4, 8, 0.1)
    items = 4.0 * np.eye(4)[truth] + np.random.default_rng(0).normal(size=(32, 4))
    start, sure = np.minimum(truth, 2), np.full(32, 0.9)  # of three groups
    found = continue_partition(
        i, j, said, start, sure, n_groups=n_groups, items=items if looked else None
    )
    assert set(found.labels) == set(range(n_groups))
    kinds = set(zip(found.labels.tolist(), truth.tolist()))
    assert len(kinds) == max(n_groups, 4)  # what is merged is merged whole, what is cut is of one
    alone = np.bincount(found.labels)[found.labels] == 1
    apart = found.pair_same[alone[found.pairs].any(axis=1)]
    assert (apart < 0.5).all()


def test_items_that_only_features_place_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the groups before foretold: the search knows nothing of items nobody judged."""
    truth, i, j, said = world(4, 12, 0.0)
    items = 4.0 * np.eye(4)[truth] + np.random.default_rng(0).normal(size=(48, 4))
    judged = (i % 12 < 9) & (j % 12 < 9)
    monkeypatch.setattr(continued, "_as_they_were", lambda answers, begun: (np.inf, None))
    searched = continued.infer_partition

    def likelier(*given: Any, **options: Any) -> continued.Partition:
        return replace(searched(*given, **options), objective=np.inf)

    monkeypatch.setattr(continued, "infer_partition", likelier)
    about = i[judged], j[judged], said[judged], truth, np.full(48, 0.9)
    found = continue_partition(*about, items=items)
    assert (found.labels >= 0).all()
    assert agree(found.labels, truth)


def test_a_group_is_cut_where_answers_agree_the_least() -> None:
    """Four and four items of one group, with a fifth of the answers between them "different"."""
    truth, i, j, said = world(2, 8, 0.0)
    half = np.arange(16) // 8
    between = (truth[i] == 0) & (truth[j] == 0) & (half[i] != half[j])
    said = said & ~(between & ((i + j) % 5 == 0))
    sure = np.full(16, 0.9)
    assert agree(continue_partition(i, j, said, truth, sure).labels, truth)
    found = continue_partition(i, j, said, truth, sure, n_groups=3)
    assert len(set(found.labels)) == 3
    assert len(set(found.labels[truth == 1])) == 1


def test_a_wrong_start_does_not_stay() -> None:
    truth, i, j, said = world(3, 10, 0.1)
    start = np.random.default_rng(0).integers(0, 5, 30)
    assert agree(continue_partition(i, j, said, start, np.full(30, 0.4)).labels, truth)


def test_items_nobody_judged_are_placed_by_what_they_look_like() -> None:
    truth, i, j, said = world(3, 30, 0.1)
    rng = np.random.default_rng(0)
    items = 6.0 * np.eye(3)[truth] + rng.normal(size=(90, 3))
    known = (i < 45) & (j < 45)
    start = np.where(np.arange(90) < 20, truth, -1)
    alone = continue_partition(i[known], j[known], said[known], start, np.full(90, 0.9))
    assert (alone.labels[45:] == -1).all()
    found = continue_partition(
        i[known], j[known], said[known], start, np.full(90, 0.9), items=items
    )
    assert agree(found.labels, truth)


def test_features_that_say_nothing_change_nothing() -> None:
    truth, i, j, said = world(3, 12, 0.15)
    noise = np.random.default_rng(0).normal(size=(36, 4))
    few = (i + j) % 3 == 0
    start, sure = np.where(np.arange(36) < 20, truth, -1), np.full(36, 0.9)
    alone, looked = (
        continue_partition(i[few], j[few], said[few], start, sure, items=items)
        for items in (None, noise)
    )
    np.testing.assert_array_equal(alone.labels, looked.labels)


def test_more_than_memory_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, i, j, said = world(3, 8, 0.1)
    monkeypatch.setattr(growing, "MAX_FLOATS", 2 * len(i) * 4 - 1)
    with pytest.raises(InputError, match="3 groups and 276 judged pairs are too many"):
        continue_partition(i, j, said, truth, np.full(24, 0.9))
