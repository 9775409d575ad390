"""Which pairs to ask next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import likewise
from likewise.active import pool as pool_module
from likewise.active import suggestion as suggestion_module
from likewise.active.information import information, same_table, tables_of_people
from likewise.active.pool import spread, unjudged
from likewise.active.suggestion import choose, suggest
from likewise.errors import InputError
from likewise.inference import JointResult
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.posterior import Posterior
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel, ExactChannel, RateChannel
from likewise.pairs import Pairs

N = 60


def result_with(belief: np.ndarray, channel: Channel) -> JointResult:
    eye = np.eye(belief.shape[1])
    return JointResult(nn.Identity(), eye, channel, belief, belief, belief, {}, [], "made by hand")


def certain_but(uncertain: list[int]) -> np.ndarray:
    belief = 0.97 * np.eye(3)[np.arange(N) % 3] + 0.01
    belief[uncertain] = [0.49, 0.49, 0.02]
    return belief


def test_information_is_the_mutual_information():
    rng = np.random.default_rng(0)
    belief = rng.dirichlet(np.ones(3), 4)
    p = np.array([[0.9, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.7]])
    found = information(belief, np.array([[0, 1]]), p)
    joint = np.outer(belief[0], belief[1])
    expected = 0.0
    for answer in (p, 1 - p):
        marginal = (joint * answer).sum()
        expected += (joint * answer * np.log(answer / marginal)).sum()
    assert found[0] == pytest.approx(expected)


def test_nothing_is_learned_from_coins_or_from_what_is_known():
    belief = np.eye(3)[[0, 1]]
    assert information(belief, np.array([[0, 1]]), np.full((3, 3), 0.5))[0] == pytest.approx(0)
    sure = same_table(RateChannel(0.9, 0.1), 3)
    assert information(belief, np.array([[0, 1]]), sure)[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "channel",
    [
        RateChannel(0.9, 0.1),
        ExactChannel(),
        ConfusionChannel.from_rates(0.9, 0.1, 3),
        AnnotatorChannel.from_rates(0.9, 0.1, 2),
    ],
    ids=lambda channel: type(channel).__name__,
)
def test_uncertain_items_are_asked_about_first(channel):
    uncertain = [7, 20, 41]
    found = suggest(
        result_with(certain_but(uncertain), channel), np.zeros((N, 2)), Pairs([0], [1], [0]), 4
    )
    assert found.shape == (4, 2)
    assert all(np.isin(pair, uncertain).sum() == 1 for pair in found)


def test_suggestions_are_new_distinct_pairs_of_two_items():
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(np.arange(N) % 3, 20, 0)
    model = result_with(rng.dirichlet(np.ones(3), N), RateChannel(0.8, 0.2))
    found = suggest(model, np.zeros((N, 2)), pairs, 100)
    judged = {(min(a, b), max(a, b)) for a, b in zip(pairs.left, pairs.right)}
    asked = {(min(a, b), max(a, b)) for a, b in found.tolist()}
    assert len(asked) == len(found) == 100
    assert not asked & judged
    assert all(a != b for a, b in asked)


@pytest.mark.parametrize("listed", [True, False])
def test_as_many_come_back_as_there_are(monkeypatch: pytest.MonkeyPatch, listed: bool) -> None:
    if not listed:
        monkeypatch.setattr(pool_module, "ALL_PAIRS", 0)
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(12, 1)
    belief = rng.dirichlet(np.ones(3), 12)
    for n_judged in (11, 40, 66):
        kept = rng.permutation(66)[:n_judged]
        pairs = Pairs(left[kept], right[kept], rng.random(n_judged) < 0.5, n_items=12)
        judged = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        for n in (1, 15, 40, 55, 99):
            found = suggest(result_with(belief, RateChannel(0.8, 0.2)), np.zeros((12, 2)), pairs, n)
            asked = {(min(pair), max(pair)) for pair in found.tolist()}
            assert len(found) == len(asked) == min(n, 66 - n_judged)
            assert not asked & judged


def test_items_keep_their_names_where_some_were_not_judged_yet() -> None:
    pairs = Pairs([0], [1], [False], item_ids=["a", "b"])
    known = suggestion_module._known(
        result_with(certain_but([5]), RateChannel(0.9, 0.1)), np.zeros((N, 2)), pairs, 1
    )
    assert known.pairs.n_items == N
    assert known.pairs.item_ids is not None
    assert known.pairs.item_ids[:2].tolist() == ["a", "b"]
    with pytest.raises(InputError, match="about 2 items, but there are 1"):
        suggest(result_with(certain_but([5]), RateChannel(0.9, 0.1)), np.zeros((1, 2)), pairs, 1)


def test_candidates_are_all_there_is_to_choose_from():
    model = result_with(certain_but([5]), RateChannel(0.9, 0.1))
    pool = np.array([[0, 1], [2, 5], [3, 4]])
    found = suggest(model, np.zeros((N, 2)), Pairs([0], [2], [0]), 10, candidates=pool)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, pool.tolist()))
    assert found[0].tolist() == [3, 4] or 5 in found[0]


def crowd(careless: int) -> Pairs:
    """Six people judge the sure items of `certain_but`; two of them, at ``careless``, are coins."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, N, (2, 600))
    left, right = left[left != right], right[left != right]
    person = rng.integers(0, 6, len(left))
    same = left % 3 == right % 3
    coin = (person == careless) | (person == careless + 1)
    same = np.where(coin, rng.random(len(same)) < 0.5, same)
    return Pairs(left, right, same, [f"p{k}" for k in person], n_items=N)


@pytest.mark.parametrize("careless", [0, 4])
def test_questions_go_to_people_who_look(careless):
    pairs, belief = crowd(careless), certain_but([])
    model = result_with(belief, RateChannel(0.8, 0.2))
    pool = np.array([[0, 2], [3, 8]]).repeat(6, axis=0)
    belief[[0, 3]] = [0.49, 0.02, 0.49]
    people = np.array([f"p{k}" for k in range(6)] * 2)
    taken = choose(model, np.zeros((N, 2)), pairs, 8, pool, annotators=people)
    first = set(people[taken[:4]])
    assert len(taken) == len(set(taken.tolist())) == 8
    assert not first & {f"p{careless}", f"p{careless + 1}"}


@pytest.mark.parametrize("fitted", ["result", "classifier"])
def test_people_are_known_by_their_names(fitted: str) -> None:
    """Another crowd of as many people: its answers say of what types these are."""
    pairs = crowd(careless=0)  # of p0 ... p5
    channel = AnnotatorChannel.from_rates(0.95, 0.05, 6)
    graph = Graph.from_pairs(pairs)
    belief = Posterior(torch.from_numpy(np.log(certain_but([]))), 0.0, 0, False)
    for _ in range(3):
        channel = channel.update(edge_statistics(belief, graph, channel))
    table = {"annotator": [f"p{k}" for k in (3, 2, 5, 4, 1, 0)]}  # most reliable first

    class Classifier:
        transition_ = None
        channel_ = channel
        annotators_ = table

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return certain_but([])

    model: Any = Classifier()
    if fitted == "result":
        model = replace(result_with(certain_but([]), channel), annotators=table)
    for people, coins in (("p0 p1 p2 p3 p4 p5", [0, 1]), ("q0 q1 q2 q3 q4 q5", [4, 5])):
        others = crowd(careless=coins[0])
        names = np.array(people.split())
        others = Pairs(others.left, others.right, others.same, names[others.annotator], n_items=N)
        known = suggestion_module._known(model, np.zeros((N, 2)), others, 1)
        tables = tables_of_people(known.belief, known.pairs, known.channel)
        told = tables[:6, 0, 0] - tables[:6, 0, 1]
        assert sorted(np.argsort(told)[:2]) == coins
        assert told[coins].max() < 0.3 < 0.7 < np.delete(told, coins).min()
        same = same_table(known.channel, 3)
        np.testing.assert_allclose(same, same_table(channel, 3))


def test_a_stranger_is_taken_for_one_of_the_crowd():
    pairs, belief = crowd(0), certain_but([])
    tables = tables_of_people(belief, pairs, RateChannel(0.8, 0.2))
    assert tables.shape == (7, 3, 3)
    told = tables[:, 0, 0] - tables[:, 0, 1]  # what a person's "same" is worth
    assert max(told[:2]) < told[6] < min(told[2:6])
    known = AnnotatorChannel.from_rates(0.9, 0.1, 6)
    np.testing.assert_allclose(
        tables_of_people(belief, pairs, known)[3], same_table(known, 3), atol=1e-9
    )


def test_whose_answer_it_is_decides_what_it_tells():
    rng = np.random.default_rng(0)
    belief = rng.dirichlet(np.ones(3), 4)
    tables = np.stack([same_table(RateChannel(a, b), 3) for a, b in [(0.9, 0.1), (0.6, 0.5)]])
    pool = np.array([[0, 1], [2, 3], [0, 1]])
    found = information(belief, pool, tables, np.array([0, 1, 1]))
    alone = [information(belief, pool[[k]], tables[w])[0] for k, w in enumerate([0, 1, 1])]
    np.testing.assert_allclose(found, alone)
    assert found[0] > found[2]


def test_a_pair_judged_with_no_weight_may_be_asked_about():
    pairs = Pairs([0, 2, 4], [1, 1, 3], [1, 1, 0], weight=[0.0, 1.0, 1.0], n_items=5)
    pool = np.array([[1, 0], [1, 2], [3, 4], [0, 4]])
    assert unjudged(pool, pairs).tolist() == [[0, 1], [0, 4]]


def test_a_batch_does_not_repeat_itself():
    """Of a crowd that errs often: what one answer leaves open of an item is nearly all of it."""
    belief = certain_but([])
    belief[:8] = [0.72, 0.27, 0.01]
    belief[7] = [0.13, 0.67, 0.2]  # more open than any other
    model = result_with(belief, RateChannel(0.68, 0.3))
    for seed in range(5):
        found = suggest(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 5, random_state=seed)
        assert 7 in found[0]
        assert np.bincount(found.ravel()).max() == 1


def test_every_earlier_pair_of_an_item_halves_what_the_next_is_worth():
    rng = np.random.default_rng(0)
    pool = np.stack([rng.permutation(9)[:2] for _ in range(80)])  # some pairs more than once
    value = rng.random(80) ** 3
    expected: list[int] = []
    for _ in range(50):
        worth = []
        for k, pair in enumerate(pool):
            earlier = [end for chosen in expected for end in pool[chosen]]
            times = sum(earlier.count(end) for end in pair)
            worth.append(-1.0 if k in expected else value[k] * 0.5**times)
        expected.append(int(np.argmax(worth)))
    assert spread(value, pool, 50).tolist() == expected
    assert sorted(spread(value, pool, 99).tolist()) == list(range(80))
    assert len(spread(np.zeros(0), np.zeros((0, 2), np.int64), 5)) == 0


def test_what_one_answer_settles_is_not_asked_twice():
    belief = certain_but([7, 20, 41, 50])
    belief[7] = [0.5, 0.5, 0.0]  # the most uncertain by a little: every pair of it comes first
    model = result_with(belief, RateChannel(0.999, 0.001))
    sure = [0, 3, 6]
    pool = np.array([[item, other] for item in (7, 20, 41, 50) for other in sure])
    taken = choose(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 4, pool)
    assert sorted(pool[taken, 0].tolist()) == [7, 20, 41, 50]


def test_a_classifier_serves_as_well():
    class Classifier:
        transition_ = None
        channel_ = RateChannel(0.9, 0.1)

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return certain_but([7])

    found = suggest(Classifier(), np.zeros((N, 2)), Pairs([0], [1], [0]), 2)  # type: ignore[arg-type]
    assert all(7 in pair for pair in found)


def test_mistakes_are_refused_in_words():
    model = result_with(certain_but([5]), RateChannel(0.9, 0.1))
    with pytest.raises(InputError, match="at least one"):
        suggest(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 0)
    with pytest.raises(InputError, match=r"shape \(K, 2\)"):
        suggest(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 1, candidates=[1, 2])
    with pytest.raises(InputError, match="give candidates"):
        suggest(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 1, annotators=["a"])
    with pytest.raises(InputError, match="one person a candidate"):
        choose(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 1, [[1, 2]], annotators=["a", "b"])
    with pytest.raises(InputError, match="name items"):
        suggest(model, np.zeros((N, 2)), Pairs([0], [1], [0]), 1, candidates=[[1, N]])


def test_the_same_seed_suggests_the_same():
    model = result_with(np.random.default_rng(0).dirichlet(np.ones(3), N), RateChannel(0.8, 0.2))
    first, second = (
        suggest(model, torch.zeros(N, 2).numpy(), Pairs([0], [1], [0]), 9, random_state=4)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_no_module_hides_a_name_of_the_package():
    """Importing a module sets it on the package, where it would hide a function of its name."""
    from likewise import _HOMES

    folder = Path(likewise.__file__).parent
    assert not {path.stem for path in folder.glob("*.py")} & set(_HOMES)
    assert callable(likewise.suggest)
