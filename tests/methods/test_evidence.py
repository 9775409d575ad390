"""The E-step of a joint fit: components, else the graph alone, else EM; the first that decides."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from likewise.inference.em import Options
from likewise.inference.fit import JointResult, fit_joint
from likewise.inference.propagation.graph_beliefs import GraphBeliefs, graph_beliefs
from likewise.methods import evidence as module
from likewise.methods import joint
from likewise.methods.dispatch import fit
from likewise.methods.evidence import DECIDED, Evidence, find_evidence
from likewise.methods.joint import joint_program
from likewise.methods.lifted_evidence import lift_judgements
from likewise.methods.options import FitOptions
from likewise.methods.problem import Problem
from likewise.metrics import matched_accuracy, transition_error
from likewise.nn.model import logits_of
from likewise.noise import corrupt_labels, symmetric
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import ExactChannel, RateChannel
from likewise.pairs import Pairs
from likewise.training.scheduler import run_program
from tiny import QUICK, blobs, tiny_problem

Labels = NDArray[np.int64]
CPU = torch.device("cpu")


def flipped(pairs: Pairs, how_many: int, seed: int = 0) -> Pairs:
    """The same judgements, listed, with some answers turned around."""
    listed = pairs.explicit()
    same = listed.same.copy()
    which = np.random.default_rng(seed).choice(len(same), how_many, replace=False)
    same[which] = ~same[which]
    return Pairs(listed.left, listed.right, same, n_items=listed.n_items)


def nothing_lifted(*_: object) -> None:
    """Stands for items that show no clusters."""


class Calls:
    """Stand-ins for the graph alone and for EM that say nothing much, and are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, decided: float | None = None) -> None:
        self.graph: list[Pairs] = []
        self.em: list[dict[str, object]] = []
        self.decided = decided
        monkeypatch.setattr(module, "graph_beliefs", self._graph_beliefs)
        monkeypatch.setattr(module, "lift_judgements", nothing_lifted)
        monkeypatch.setattr(module, "fit_joint", self._fit_joint)

    def _graph_beliefs(self, pairs: Pairs, n_classes: int, seed: int) -> GraphBeliefs | None:
        self.graph.append(pairs)
        if self.decided is None:
            return None
        rows = np.full((pairs.n_items, n_classes), 1 / n_classes, np.float32)
        rows[: round(self.decided * pairs.n_items)] = np.eye(n_classes)[0]
        return GraphBeliefs(rows, RateChannel(0.9, 0.1), 0.0)

    def _fit_joint(
        self, items: NDArray[np.float32], pairs: Pairs, n_classes: int, **options: object
    ) -> JointResult:
        self.em.append({"pairs": pairs, **options})
        even = np.full((len(items), n_classes), 1 / n_classes, np.float32)
        return JointResult(
            None, np.eye(n_classes), ExactChannel(), even, even, even, {}, [], "class: as asked"
        )


# -- in that order -------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["auto", "class"])
def test_consistent_judgements_need_neither_graph_nor_em(
    monkeypatch: pytest.MonkeyPatch, noise: str
) -> None:
    calls = Calls(monkeypatch)
    problem, _ = tiny_problem(noise=0.3)
    found = find_evidence(problem, "estimate", noise)
    assert not calls.graph
    assert not calls.em
    assert found.channel is None
    assert found.transition is None
    assert found.model is None
    np.testing.assert_array_equal(found.rows, np.eye(3)[problem.components])
    assert "consistent" in found.why


def test_an_item_outside_the_largest_groups_has_no_evidence() -> None:
    problem, _ = tiny_problem(noise=0.3)
    z = problem.components.copy()
    z[:5] = np.arange(3, 8)  # each of a class of its own
    odd = replace(problem, pairs=Pairs.from_labels(z))
    rows = find_evidence(odd, "estimate", "auto").rows
    assert not rows[:5].any()
    assert (rows[5:].sum(dim=1) == 1).all()


@pytest.mark.parametrize("noise", ["auto", "judgement", "both"])
@pytest.mark.parametrize("decided", [None, DECIDED - 0.05, DECIDED + 0.02])
def test_em_is_for_what_the_graph_does_not_decide(
    monkeypatch: pytest.MonkeyPatch, noise: str, decided: float | None
) -> None:
    calls = Calls(monkeypatch, decided)
    problem, _ = tiny_problem(noise=0.3)
    problem = replace(problem, pairs=flipped(problem.pairs, 1))
    found = find_evidence(problem, "estimate", noise)
    enough = decided is not None and decided >= DECIDED
    assert len(calls.graph) == 1
    assert len(calls.em) == (0 if enough else 1)
    assert isinstance(found.channel, RateChannel if enough else ExactChannel)
    assert (found.transition is None) is enough  # of the graph's evidence, training finds T
    assert "contradict" in found.why
    if not enough:
        assert calls.em[0]["noise"] == noise
        assert calls.em[0]["transition"] == "estimate"


@pytest.mark.parametrize("noise", ["annotator", "confusion"])
def test_noise_that_two_rates_cannot_tell_goes_to_em(
    monkeypatch: pytest.MonkeyPatch, noise: str
) -> None:
    calls = Calls(monkeypatch, decided=1.0)
    problem, _ = tiny_problem(noise=0.3)
    find_evidence(problem, "estimate", noise)
    assert not calls.graph
    assert [call["noise"] for call in calls.em] == [noise]


def test_flips_alone_are_not_asked_of_a_graph_that_contradicts_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls(monkeypatch, decided=1.0)
    problem, _ = tiny_problem(noise=0.3)
    find_evidence(replace(problem, pairs=flipped(problem.pairs, 1)), "estimate", "class")
    assert not calls.graph
    assert [call["noise"] for call in calls.em] == ["class"]


@pytest.mark.parametrize(("people", "by_em"), [(1, False), (2, True)])
def test_several_people_are_told_apart_by_em(
    monkeypatch: pytest.MonkeyPatch, people: int, by_em: bool
) -> None:
    calls = Calls(monkeypatch, decided=1.0)
    problem, _ = tiny_problem(noise=0.3)
    pairs = flipped(problem.pairs, 1)
    names = [f"p{k % people}" for k in range(len(pairs))]
    pairs = Pairs(pairs.left, pairs.right, pairs.same, names, n_items=pairs.n_items)
    find_evidence(replace(problem, pairs=pairs), "estimate", "auto")
    assert (len(calls.graph), len(calls.em)) == ((0, 1) if by_em else (1, 0))


def by_two_people(problem: Problem) -> Problem:
    """With judgements of two people, one of whom slips."""
    pairs = flipped(problem.pairs, 1)
    rng = np.random.default_rng(0)
    person = rng.integers(2, size=len(pairs))
    same = pairs.same ^ (rng.random(len(pairs)) < 0.05 * person)
    listed = Pairs(pairs.left, pairs.right, same, [f"p{k}" for k in person], n_items=pairs.n_items)
    return replace(problem, pairs=listed)


@pytest.mark.parametrize("noise", ["auto", "annotator"])
def test_of_many_judgements_the_graph_tells_people_apart(
    monkeypatch: pytest.MonkeyPatch, noise: str
) -> None:
    monkeypatch.setattr("likewise.methods.evidence.FEW_JUDGEMENTS", 100)
    calls = Calls(monkeypatch)
    problem, z = tiny_problem(noise=0.3)
    found = find_evidence(by_two_people(problem), "estimate", noise)
    assert not calls.em
    assert isinstance(found.channel, AnnotatorChannel)
    assert found.channel.n_annotators == 2
    assert "2 people told apart" in found.why
    assert found.rows.argmax(1).numpy().shape == z.shape
    fitted = fit(by_two_people(problem), "joint", FitOptions(noise=noise))
    assert fitted.annotators is not None
    assert sorted(fitted.annotators["annotator"]) == ["p0", "p1"]
    assert sum(fitted.annotators["judgements"]) == len(by_two_people(problem).pairs)


def test_what_the_graph_of_people_does_not_decide_goes_to_em(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("likewise.methods.evidence.FEW_JUDGEMENTS", 100)
    calls = Calls(monkeypatch)
    problem = by_two_people(tiny_problem(noise=0.3)[0])
    rng = np.random.default_rng(0)
    nothing = problem.pairs.with_answers(rng.random(len(problem.pairs)) < 0.3)
    find_evidence(replace(problem, pairs=nothing), "estimate", "auto")
    rich = rng.normal(size=(240, 100)).astype(np.float32)
    find_evidence(replace(problem, items=rich), "estimate", "auto")
    monkeypatch.setattr("likewise.methods.evidence.sorts_of", lambda pairs: "sorts")
    find_evidence(problem, "estimate", "auto")
    assert len(calls.em) == 3


def confused(problem: Problem, z: Labels, people: bool) -> Problem:
    """Answers that tell classes 0 and 1 apart half of the time, and all others nearly always."""
    rng = np.random.default_rng(2)
    base = Pairs.from_labels(z, 100, rng)
    near = (z[base.left] < 2) & (z[base.right] < 2) & ~base.same
    same = rng.random(len(base)) < np.where(base.same, 0.95, np.where(near, 0.5, 0.02))
    names = [f"p{k}" for k in rng.integers(2, size=len(base))] if people else None
    return replace(problem, pairs=Pairs(base.left, base.right, same, names, n_items=len(z)))


@pytest.mark.parametrize("people", [False, True])
def test_classes_that_people_confuse_are_left_to_em(
    monkeypatch: pytest.MonkeyPatch, people: bool
) -> None:
    monkeypatch.setattr("likewise.methods.evidence.FEW_JUDGEMENTS", 100)
    monkeypatch.setattr("likewise.methods.evidence.DECIDED", 0.0)
    calls = Calls(monkeypatch)
    monkeypatch.setattr(module, "graph_beliefs", graph_beliefs)
    problem, z = tiny_problem(noise=0.0)
    mixed = confused(problem, z, people)
    find_evidence(mixed, "estimate", "annotator" if people else "judgement")  # as was asked for
    monkeypatch.setattr("likewise.methods.evidence.MOST_JUDGEMENTS", 1000)
    find_evidence(mixed, "estimate", "auto")  # too many for EM
    assert not calls.em
    monkeypatch.undo()
    calls = Calls(monkeypatch)
    monkeypatch.setattr("likewise.methods.evidence.FEW_JUDGEMENTS", 100)
    monkeypatch.setattr("likewise.methods.evidence.DECIDED", 0.0)
    monkeypatch.setattr(module, "graph_beliefs", graph_beliefs)
    find_evidence(mixed, "estimate", "auto")
    assert len(calls.em) == 1


def test_rich_features_are_read_beside_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch, decided=1.0)
    problem, _ = tiny_problem(noise=0.3)
    rich = np.random.default_rng(0).normal(size=(240, 100)).astype(np.float32)
    problem = replace(problem, items=rich, pairs=flipped(problem.pairs, 1))
    find_evidence(problem, "estimate", "auto")
    assert (len(calls.graph), len(calls.em)) == (0, 1)


def test_dense_judgements_are_thinned_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    rng = np.random.default_rng(0)
    z = rng.integers(0, 3, 1500)
    pairs = flipped(Pairs.from_labels(z), 10)  # a thousand and a half an item
    problem = Problem(rng.normal(size=(1500, 4)).astype(np.float32), pairs, 3)
    find_evidence(problem, "estimate", "auto")
    for few in (calls.graph[0], calls.em[0]["pairs"]):
        assert isinstance(few, Pairs)
        assert 2 * len(few) / 1500 == pytest.approx(300, rel=0.05)
    assert len(problem.pairs) == len(pairs)


# -- no cliff ------------------------------------------------------------------------------------


def agreement(one: Evidence, other: Evidence) -> float:
    return matched_accuracy(one.rows.argmax(dim=1).numpy(), other.rows.argmax(dim=1).numpy())


@pytest.mark.parametrize("contradictions", [1, 10, 287])  # of 28,680: up to one per cent
def test_contradictions_do_not_change_the_engine(
    monkeypatch: pytest.MonkeyPatch, contradictions: int
) -> None:
    def refuse(*_: object, **__: object) -> JointResult:
        raise AssertionError("EM was not to be needed")

    monkeypatch.setattr(module, "fit_joint", refuse)
    problem, _y = tiny_problem(noise=0.3)
    slipped = replace(problem, pairs=flipped(problem.pairs, contradictions))
    clean, found = (find_evidence(p, "estimate", "auto") for p in (problem, slipped))
    assert agreement(clean, found) == 1.0
    assert found.rows.max(dim=1).values.min() > 0.99
    assert isinstance(found.channel, RateChannel)
    share = contradictions / len(slipped.pairs)
    assert found.channel.a == pytest.approx(1 - share, abs=0.003)
    assert found.channel.b == pytest.approx(share, abs=0.003)
    assert "the graph decides 100% of the items" in found.why


def test_a_fit_with_a_contradiction_is_trained_by_the_same_program() -> None:
    """The same number of runs by the same recipe, to the same classes and T."""
    recipe = QUICK.with_(teachers=2, mixup=0.5)
    problem, y = tiny_problem(recipe, noise=0.3)
    slipped = replace(problem, pairs=flipped(problem.pairs, 1))
    fits = [run_program(joint_program(p)) for p in (problem, slipped)]
    assert [len(one.history) for one in fits] == [24, 24]
    for one in fits:
        predicted = logits_of(one.model, problem.items, CPU).argmax(dim=1).numpy()
        assert matched_accuracy(predicted, y) > 0.93
        assert transition_error(one.transition, symmetric(3, 0.3)) < 0.2
    assert fits[0].channel is None
    assert isinstance(fits[1].channel, RateChannel)


# -- EM ------------------------------------------------------------------------------------------


def sparse_problem(z: Labels, X: NDArray[np.float32], seed: int = 0) -> Problem:
    pairs = Pairs.from_labels(z, 8, seed)
    return Problem(X, flipped(pairs, len(pairs) // 20), 3, recipe=QUICK.with_(teachers=2))


def only_short_em(monkeypatch: pytest.MonkeyPatch) -> None:
    """EM alone, with networks that learn for a while: blobs are soon told apart."""
    monkeypatch.setattr(module, "lift_judgements", nothing_lifted)
    short = Options(rounds=4, folds=2, epochs=12, start_steps=150)
    monkeypatch.setattr(module, "fit_joint", partial(fit_joint, options=short))


def test_sparse_judgements_are_completed_by_em(monkeypatch: pytest.MonkeyPatch) -> None:
    only_short_em(monkeypatch)
    X, y = blobs(n=240, apart=5.0)
    problem = sparse_problem(y, X)
    found = find_evidence(problem, "estimate", "auto")
    assert found.transition is not None
    assert found.transition.shape == (3, 3)
    assert found.posterior is not None
    assert matched_accuracy(found.posterior.argmax(axis=1), y) > 0.95
    np.testing.assert_allclose(found.rows.sum(dim=1), 1, atol=1e-4)
    assert [row["method"] for row in found.history] == ["em"] * len(found.history)
    assert [row["epoch"] for row in found.history] == list(range(len(found.history)))
    assert not any("seconds" in row for row in found.history)
    monkeypatch.setattr(joint, "find_evidence", lambda *_: found)  # which it would find again
    fitted = run_program(joint_program(problem))
    predicted = logits_of(fitted.model, X, CPU).argmax(dim=1).numpy()
    assert matched_accuracy(predicted, y) > 0.95
    assert {row["method"] for row in fitted.history} == {"em", "teacher 1", "teacher 2", "joint"}


ASYMMETRIC = np.array([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.3, 0.0, 0.7]])


@pytest.mark.parametrize(
    "order", [[1, 2, 0], *(pytest.param(o, marks=pytest.mark.slow) for o in ([0, 1, 2], [2, 1, 0]))]
)
def test_em_too_takes_a_given_t_in_any_order(
    monkeypatch: pytest.MonkeyPatch, order: list[int]
) -> None:
    only_short_em(monkeypatch)
    X, y = blobs(n=300, apart=5.0)
    z = corrupt_labels(y, ASYMMETRIC, 1)
    problem = sparse_problem(z, X)
    found = find_evidence(problem, ASYMMETRIC[np.ix_(order, order)], "both")
    assert found.transition is not None
    perceived = found.rows.argmax(dim=1).numpy()
    place = [int(np.bincount(z[perceived == k], minlength=3).argmax()) for k in range(3)]
    assert sorted(place) == [0, 1, 2]
    np.testing.assert_allclose(found.transition, ASYMMETRIC[np.ix_(place, place)], atol=1e-6)


@pytest.mark.parametrize("given", [symmetric(3, 0.4), None])
def test_em_itself_uses_a_t_that_has_no_order(
    monkeypatch: pytest.MonkeyPatch, given: NDArray[np.float64] | None
) -> None:
    calls = Calls(monkeypatch)
    X, y = blobs(n=200)
    find_evidence(sparse_problem(y, X), given, "auto")
    assert calls.em[0]["transition"] is given


# -- lifting -------------------------------------------------------------------------------------


def test_items_that_lie_in_clusters_carry_few_judgements() -> None:
    """Two judgements an item, where the graph is in pieces and EM finds nothing."""
    X, y = blobs(n=400, apart=6.0)
    problem = Problem(X, Pairs.from_labels(y, 2, 0), 3, recipe=QUICK.with_(teachers=2))
    found = find_evidence(problem, "estimate", "auto")
    assert found.of_classes
    assert matched_accuracy(found.rows.argmax(dim=1).numpy(), y) > 0.95
    assert isinstance(found.channel, RateChannel)
    assert found.channel.a > 0.9 > 0.1 > found.channel.b
    assert "lifting explains" in found.why


def test_a_given_t_does_not_stand_between_items_and_classes_that_were_lifted() -> None:
    X, y = blobs(n=400, apart=6.0)
    problem = Problem(X, Pairs.from_labels(y, 2, 0), 3, recipe=QUICK.with_(teachers=2))
    fitted = run_program(joint_program(problem, ASYMMETRIC))
    predicted = logits_of(fitted.model, X, CPU).argmax(dim=1).numpy()
    assert matched_accuracy(predicted, y) > 0.93


def test_items_that_say_nothing_are_not_lifted() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    noise = rng.normal(size=(400, 5)).astype(np.float32)
    problem = Problem(noise, Pairs.from_labels(y, 4, 0), 3)
    assert lift_judgements(problem, "estimate") is None
