"""Perceived classes from judgements alone: against a slow loop, and on known partitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.inference.propagation import graph_beliefs as module
from likewise.inference.propagation.graph_beliefs import (
    SURE,
    GraphBeliefs,
    _Answers,
    _settle,
    graph_beliefs,
    thinned,
)
from likewise.metrics import matched_accuracy
from likewise.noise.channels import RateChannel
from likewise.pairs import Pairs

Labels = NDArray[np.int64]


def undecided(found: GraphBeliefs | None) -> bool:
    """Whether the graph leaves the classes open: EM, or the items, are to decide."""
    return found is None or found.decided < 0.8


def planted(
    n_items: int = 300,
    n_classes: int = 4,
    per_item: int = 60,
    a: float = 0.9,
    b: float = 0.1,
    seed: int = 0,
) -> tuple[Pairs, Labels]:
    """Judgements of a random partition that slip: P(same | same) a, P(same | different) b."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, n_classes, n_items)
    pairs = Pairs.from_labels(z, per_item, seed)
    u = rng.random(len(pairs))
    same = np.where(pairs.same, u < a, u < b)
    return Pairs(pairs.left, pairs.right, same, n_items=n_items), z


def weighted(pairs: Pairs, weight: NDArray[np.float32]) -> Pairs:
    return Pairs(pairs.left, pairs.right, pairs.same, weight=weight, n_items=pairs.n_items)


# -- mean field ----------------------------------------------------------------------------------


def slow_sweep(
    pairs: Pairs, belief: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float, float, float]:
    """(belief, a, b, log-likelihood at the belief that came in), judgement by judgement."""
    n_items, n_classes = belief.shape
    weight = (
        np.ones(len(pairs))
        if pairs.weight is None
        else pairs.weight / pairs.weight[pairs.weight > 0].mean()
    )
    within, within_same, across, across_same = 0.0, 0.0, 0.0, 0.0
    for i, j, same, w in zip(pairs.left, pairs.right, pairs.same, weight):
        equal = w * float(belief[i] @ belief[j])
        within, within_same = within + equal, within_same + equal * same
        across, across_same = across + w - equal, across_same + (w - equal) * same
    a, b = (within_same + 1) / (within + 2), (across_same + 1) / (across + 2)
    bound = within_same * np.log(a) + (within - within_same) * np.log(1 - a)
    bound += across_same * np.log(b) + (across - across_same) * np.log(1 - b)
    log = np.zeros((n_items, n_classes))
    for i, j, same, w in zip(pairs.left, pairs.right, pairs.same, weight):
        for k in range(n_classes):
            if_equal = np.log(a if same else 1 - a)
            if_not = np.log(b if same else 1 - b)
            log[i, k] += w * (belief[j, k] * if_equal + (1 - belief[j, k]) * if_not)
            log[j, k] += w * (belief[i, k] * if_equal + (1 - belief[i, k]) * if_not)
    likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    return likelihood / likelihood.sum(axis=1, keepdims=True), a, b, bound


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("sweeps", [1, 3])
def test_a_sweep_is_the_loop(
    monkeypatch: pytest.MonkeyPatch, sweeps: int, has_weights: bool
) -> None:
    pairs, z = planted(30, 3, 12, a=0.8, b=0.2)
    rng = np.random.default_rng(1)
    if has_weights:
        pairs = weighted(pairs, rng.uniform(0.2, 3, len(pairs)).astype(np.float32))
    guess = np.where(rng.random(30) < 0.3, rng.integers(0, 3, 30), z)
    monkeypatch.setattr(module, "SWEEPS", sweeps)
    found = _settle(_Answers.of(pairs), guess, 3)
    belief = np.eye(3)[guess]
    for _ in range(sweeps):
        belief, a, b, bound = slow_sweep(pairs, belief)
    np.testing.assert_allclose(found.evidence, belief, atol=1e-4)
    assert (found.channel.a, found.channel.b) == pytest.approx((a, b), abs=1e-5)
    assert found.log_likelihood == pytest.approx(bound, rel=1e-4)


@pytest.mark.parametrize(("a", "b"), [(0.95, 0.02), (0.9, 0.1), (0.75, 0.2), (0.5, 0.05)])
def test_rates_and_classes_of_a_planted_partition_are_found(a: float, b: float) -> None:
    pairs, z = planted(a=a, b=b, per_item=80)
    found = graph_beliefs(pairs, 4, seed=0)
    assert found is not None
    assert isinstance(found.channel, RateChannel)
    assert (found.channel.a, found.channel.b) == pytest.approx((a, b), abs=0.02)
    assert matched_accuracy(found.evidence.argmax(axis=1), z) > 0.97
    np.testing.assert_allclose(found.evidence.sum(axis=1), 1, atol=1e-5)
    assert found.evidence.dtype == np.float32


@pytest.mark.parametrize(("n_classes", "per_item"), [(2, 40), (10, 250)])
def test_any_number_of_classes_is_found(n_classes: int, per_item: int) -> None:
    pairs, z = planted(40 * n_classes, n_classes, per_item)
    found = graph_beliefs(pairs, n_classes, seed=0)
    assert found is not None
    assert matched_accuracy(found.evidence.argmax(axis=1), z) > 0.99
    assert found.decided > 0.99


def test_unequal_classes_are_found() -> None:
    z = np.repeat([0, 1, 2], [180, 90, 30])
    base = Pairs.from_labels(z, 80, 0)
    flip = np.random.default_rng(0).random(len(base)) < 0.05
    found = graph_beliefs(Pairs(base.left, base.right, base.same ^ flip, n_items=300), 3, seed=0)
    assert found is not None
    assert matched_accuracy(found.evidence.argmax(axis=1), z) > 0.98


def test_one_contradiction_leaves_certainty() -> None:
    pairs, z = planted(a=1.0, b=0.0, per_item=40)
    same = pairs.same.copy()
    same[0] = ~same[0]
    found = graph_beliefs(Pairs(pairs.left, pairs.right, same, n_items=300), 4, seed=0)
    assert found is not None
    assert found.decided == 1.0
    assert matched_accuracy(found.evidence.argmax(axis=1), z) == 1.0


def test_the_likeliest_start_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter([3.0, 1.0, 7.0, 7.0, 2.0])
    made: list[GraphBeliefs] = []

    def settle(*_: object) -> GraphBeliefs:
        made.append(GraphBeliefs(np.eye(3, dtype=np.float32), RateChannel(), next(given)))
        return made[-1]

    monkeypatch.setattr(module, "_settle", settle)
    pairs, _ = planted()
    assert graph_beliefs(pairs, 4, seed=0) is made[2]
    assert len(made) == module.STARTS


def test_the_same_seed_gives_the_same_beliefs() -> None:
    pairs, _ = planted(a=0.8, b=0.2, per_item=60)
    first, second = graph_beliefs(pairs, 4, seed=3), graph_beliefs(pairs, 4, seed=3)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.evidence, second.evidence)


def test_decided_is_the_share_of_the_nearly_certain() -> None:
    rows = np.array([[1, 0], [SURE + 0.01, 0.04], [SURE - 0.01, 0.06], [0.5, 0.5]], np.float32)
    assert GraphBeliefs(rows, RateChannel(), 0.0).decided == 0.5


# -- too little to go by -------------------------------------------------------------------------


@pytest.mark.parametrize("per_item", [1, 2, 3, 5, 10])
def test_sparse_judgements_decide_nothing(per_item: int) -> None:
    pairs, _ = planted(1000, 8, per_item, a=0.8, b=0.1)
    found = graph_beliefs(pairs, 8, seed=0)
    assert undecided(found) or found.decided < 0.1  # chance groups may stand out, but fade
    if per_item >= 5:
        assert undecided(found)


@pytest.mark.parametrize("seed", range(5))
def test_coin_tosses_say_nothing(seed: int) -> None:
    pairs, _ = planted(400, 4, 60, a=0.3, b=0.3, seed=seed)
    assert undecided(graph_beliefs(pairs, 4, seed=0))


def test_fewer_classes_than_asked_for_leave_the_rest_empty() -> None:
    pairs, z = planted(400, 3, 60)
    found = graph_beliefs(pairs, 6, seed=0)
    assert found is not None
    assert matched_accuracy(found.evidence.argmax(axis=1), z) > 0.97


@pytest.mark.parametrize(("n_items", "n_classes"), [(8, 3), (30, 1)])
def test_too_few_items_or_classes_say_nothing(n_items: int, n_classes: int) -> None:
    pairs, _ = planted(n_items, 2, 5, a=1.0, b=0.0)
    assert undecided(graph_beliefs(pairs, n_classes, seed=0))


@pytest.mark.parametrize("same", [True, False])
def test_answers_of_one_kind_say_nothing(same: bool) -> None:
    pairs, _ = planted()
    one_kind = Pairs(pairs.left, pairs.right, np.full(len(pairs), same), n_items=300)
    assert undecided(graph_beliefs(one_kind, 4, seed=0))


def test_an_item_that_nobody_judged_is_undecided() -> None:
    pairs, z = planted()
    kept = pairs.select((pairs.left != 7) & (pairs.right != 7))
    found = graph_beliefs(kept, 4, seed=0)
    assert found is not None
    np.testing.assert_allclose(found.evidence[7], 0.25, atol=1e-6)
    assert found.decided < 1
    others = np.arange(300) != 7
    assert matched_accuracy(found.evidence[others].argmax(axis=1), z[others]) > 0.99


# -- weights -------------------------------------------------------------------------------------


def test_judgements_without_weight_do_not_count() -> None:
    """Right ones of weight 1, as many wrong ones of weight 0: as if these were not there."""
    pairs, _ = planted(a=0.95, b=0.05)
    both = Pairs(
        np.tile(pairs.left, 2),
        np.tile(pairs.right, 2),
        np.concatenate([pairs.same, ~pairs.same]),
        weight=np.repeat([1.0, 0.0], len(pairs)),
        n_items=300,
    )
    alone, found = graph_beliefs(pairs, 4, seed=0), graph_beliefs(both, 4, seed=0)
    assert alone is not None
    assert found is not None
    np.testing.assert_allclose(found.evidence, alone.evidence, atol=1e-5)
    assert found.channel.a == pytest.approx(alone.channel.a, abs=1e-5)


def test_the_unit_of_weights_does_not_make_noise_stand_out() -> None:
    pairs, _ = planted(400, 4, 60, a=0.3, b=0.3)
    heavy = weighted(pairs, np.full(len(pairs), 50, np.float32))
    assert undecided(graph_beliefs(heavy, 4, seed=0))


# -- thinning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_item", [5, 20, 60, 90])
def test_thinned_keeps_about_as_many_as_asked_and_repeats_none(per_item: int) -> None:
    pairs, _ = planted(400, 4, 100)
    found = thinned(pairs, np.random.default_rng(0), per_item)
    assert 2 * len(found) / 400 == pytest.approx(per_item, rel=0.1)
    kept = set(zip(found.left.tolist(), found.right.tolist()))
    asked = dict(zip(zip(pairs.left.tolist(), pairs.right.tolist()), pairs.same.tolist()))
    assert len(kept) == len(found)
    for i, j, same in zip(found.left.tolist(), found.right.tolist(), found.same.tolist()):
        assert asked[i, j] == same
    assert found.n_items == 400


def test_few_judgements_and_complete_sets_are_left_whole() -> None:
    pairs, z = planted(400, 4, 20)
    rng = np.random.default_rng(0)
    assert thinned(pairs, rng, 20) is pairs
    assert thinned(pairs, rng) is pairs
    everything = Pairs.from_labels(z)
    assert thinned(everything, rng, 5) is everything
    none = Pairs([], [], [], n_items=3)
    assert thinned(none, rng, 5) is none


def test_thinned_keeps_weights_and_people_with_their_judgements() -> None:
    base, _ = planted(100, 4, 50)
    weight = np.arange(1, len(base) + 1, dtype=np.float32)
    people = [f"p{k % 3}" for k in range(len(base))]
    pairs = Pairs(base.left, base.right, base.same, people, weight=weight, n_items=100)
    found = thinned(pairs, np.random.default_rng(0), 10)
    assert found.weight is not None
    assert found.annotator is not None
    place = found.weight.astype(int) - 1
    np.testing.assert_array_equal(found.left, base.left[place])
    names = np.asarray(found.annotator_names)[found.annotator]
    assert names.tolist() == [people[k] for k in place]
