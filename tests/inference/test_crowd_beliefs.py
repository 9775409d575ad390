"""Classes and people from judgements alone, in one process and over several."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.inference.annotator_table import annotator_table
from likewise.inference.propagation.crowd_beliefs import CrowdAnswers, crowd_beliefs
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.graph_beliefs import graph_beliefs
from likewise.metrics import matched_accuracy
from likewise.pairs import Pairs
from likewise.pairs.shards import PairShard
from rank_threads import Threads, on_ranks

RATES = np.array([[0.95, 0.02], [0.8, 0.1], [0.6, 0.02], [0.5, 0.5], [0.02, 0.02], [0.98, 0.98]])


def crowd(n_items: int = 203, per_item: int = 80, weighted: bool = False) -> tuple[Pairs, list]:
    """Judgements of six people, of whom three do not look, and the classes."""
    rng = np.random.default_rng(1)
    z = rng.integers(4, size=n_items)
    base = Pairs.from_labels(z, per_item, rng)
    person = rng.integers(6, size=len(base))
    same = rng.random(len(base)) < np.where(base.same, *RATES[person].T)
    weight = rng.choice([0.0, 0.5, 2.0], len(base)) if weighted else None
    names = [f"p{k}" for k in person]
    return Pairs(base.left, base.right, same, names, weight, n_items=n_items), z.tolist()


def cut(pairs: Pairs, exchange: Threads) -> PairShard:
    return PairShard.of(pairs, exchange, lambda: pairs)


def test_people_who_do_not_look_are_not_listened_to() -> None:
    pairs, z = crowd()
    found, all_alike = crowd_beliefs(pairs, 4, seed=0), graph_beliefs(pairs, 4, seed=0)
    assert found is not None
    assert all_alike is not None
    right, wrong = (matched_accuracy(one.evidence.argmax(1), z) for one in (found, all_alike))
    assert right > 0.97
    assert right > wrong
    assert found.decided > 0.9
    np.testing.assert_allclose(found.channel.rates()[:4], RATES[:4], atol=0.12)


@pytest.mark.parametrize("world", [2, pytest.param(3, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_beliefs_and_people_are_those_of_one_process(world: int, weighted: bool) -> None:
    pairs, _ = crowd(weighted=weighted)
    alone = crowd_beliefs(pairs, 4, seed=0)
    assert alone is not None
    for found in on_ranks(world, lambda exchange: crowd_beliefs(cut(pairs, exchange), 4, seed=0)):
        assert found is not None
        np.testing.assert_array_equal(found.evidence, alone.evidence)
        assert torch.equal(found.channel.rates(), alone.channel.rates())
        assert found.log_likelihood == alone.log_likelihood


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_and_products_are_those_of_a_slow_loop(weighted: bool) -> None:
    pairs, _ = crowd(31, 12, weighted)
    twice = Pairs.concatenate([pairs, pairs])  # the same pair by the same person, twice
    rng = np.random.default_rng(0)
    belief = rng.dirichlet(np.ones(4), 31).astype(np.float32)
    table = rng.normal(size=12)
    weight = (
        np.ones(len(twice))
        if twice.weight is None
        else twice.weight / twice.weight[twice.weight > 0].mean()
    )
    asked, equal, field = np.zeros(12), np.zeros(12), np.zeros((31, 4))
    for i, j, same, person, w in zip(
        twice.left, twice.right, twice.same, twice.annotator, weight, strict=True
    ):
        group = 2 * person + same
        asked[group] += w
        equal[group] += w * belief[i] @ belief[j]
        field[i] += w * table[group] * belief[j]
        field[j] += w * table[group] * belief[i]
    answers = CrowdAnswers.of(twice)
    np.testing.assert_allclose(answers.count(), asked, rtol=1e-6)
    np.testing.assert_allclose(answers.count(belief), equal, rtol=1e-5)
    np.testing.assert_allclose(answers.times(table, belief), field, rtol=1e-4, atol=1e-5)


def test_a_table_of_people_is_that_of_one_process() -> None:
    pairs, z = crowd()
    classes = torch.eye(4)[torch.tensor(z)] * 0.9 + 0.025
    alone = annotator_table(Graph.from_pairs(pairs), classes, pairs.annotator_names)

    def table(exchange: Threads) -> dict[str, list]:
        graph = Graph.from_pairs(cut(pairs, exchange))
        return annotator_table(graph, classes, pairs.annotator_names, exchange)

    for found in on_ranks(3, table):
        assert found["annotator"] == alone["annotator"]
        assert found["judgements"] == alone["judgements"]
        assert found["reliability"] == pytest.approx(alone["reliability"], abs=1e-9)


@pytest.mark.parametrize("answer", [True, False])
def test_answers_of_one_kind_say_nothing(answer: bool) -> None:
    pairs, _ = crowd()
    assert crowd_beliefs(pairs.with_answers(np.full(len(pairs), answer)), 4, seed=0) is None


def test_items_too_few_for_their_classes_are_left_to_others() -> None:
    pairs, _ = crowd(31, 12)
    assert crowd_beliefs(pairs, 11, seed=0) is None
    assert crowd_beliefs(pairs, 1, seed=0) is None
