"""Inference, iteration by iteration, against the same recursions written as loops over edges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.inference.propagation.belief_propagation import choose_method, infer
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.ranking import answer_log_likelihood
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel, ExactChannel, RateChannel
from likewise.pairs import Pairs

C = 3
P = torch.tensor([[0.9, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.7]], dtype=torch.float64)
METHODS = ("bp", "mean_field")
MODULE = "likewise.inference.propagation.belief_propagation"


def channels() -> list[Channel]:
    people = AnnotatorChannel.from_rates(0.8, 0.2, 3)
    return [RateChannel(0.8, 0.1), ConfusionChannel(P), people, people.with_classes(C)]


every_channel = pytest.mark.parametrize(
    "channel", channels(), ids=lambda c: f"{type(c).__name__}-{c.two_rate}"
)


def loopy_graph(weighted: bool = False) -> Graph:
    """Cycles, a repeat, a contradiction, an isolated item."""
    left, right = [0, 1, 2, 0, 3, 0, 0], [1, 2, 0, 3, 4, 1, 1]
    weight = [1.0, 0.5, 2.0, 1.0, 0.0, 1.5, 1.0] if weighted else None
    people = ["a", "b", "c", "a", "b", "c", "a"]
    return Graph.from_pairs(Pairs(left, right, [1, 0, 1, 0, 1, 1, 0], people, weight, n_items=6))


def log_prior(n_items: int = 6, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.log(torch.tensor(rng.dirichlet(np.ones(C), n_items)))


def edge_table(graph: Graph, channel: Channel, m: int) -> np.ndarray:
    """(C, C) log likelihood of answer m for every pair of classes, weight included."""
    annotator = None if graph.annotator is None else graph.annotator[m : m + 1]
    table = channel.log_table()[int(channel.groups(graph.same[m : m + 1], annotator))]
    if channel.two_rate:
        equal, different = table.tolist()
        full = np.full((C, C), different)
        np.fill_diagonal(full, equal)
    else:
        full = table.numpy()
    return full * (1.0 if graph.weight is None else float(graph.weight[m]))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def ends(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(graph.left.tolist(), graph.right.tolist()))


# -- the loops -----------------------------------------------------------------------------------


def mean_field_by_loop(prior, graph, channel, iterations, damping, belief=None):
    """(beliefs, lower bound of the evidence)."""
    prior = prior.numpy()
    belief = np.array([softmax(row) for row in prior]) if belief is None else belief
    for _ in range(iterations):
        total = prior.copy()
        for m, (i, j) in enumerate(ends(graph)):
            table = edge_table(graph, channel, m)
            total[i] += table @ belief[j]
            total[j] += table.T @ belief[i]
        belief = damping * belief + (1 - damping) * np.array([softmax(row) for row in total])
    bound = float((belief * (prior - np.log(belief))).sum())
    for m, (i, j) in enumerate(ends(graph)):
        bound += belief[i] @ edge_table(graph, channel, m) @ belief[j]
    return belief, bound


def messages_by_loop(prior, graph, channel, iterations, damping, start=None):
    """(beliefs, Bethe evidence, log messages to left and right), all edges at once a round."""
    prior, edges = prior.numpy(), ends(graph)
    shape = (len(edges), C)
    to_left, to_right = (np.zeros(shape), np.zeros(shape)) if start is None else start

    def gather() -> np.ndarray:
        total = prior.copy()
        for m, (i, j) in enumerate(edges):
            total[i] += to_left[m]
            total[j] += to_right[m]
        return total

    for iteration in range(iterations):
        keep = 0.0 if iteration == 0 and start is None else damping
        total, new_left, new_right = gather(), np.empty(shape), np.empty(shape)
        for m, (i, j) in enumerate(edges):
            likelihood = np.exp(edge_table(graph, channel, m))
            from_left, from_right = softmax(total[i] - to_left[m]), softmax(total[j] - to_right[m])
            new_right[m] = keep * to_right[m] + (1 - keep) * np.log(likelihood.T @ from_left)
            new_left[m] = keep * to_left[m] + (1 - keep) * np.log(likelihood @ from_right)
        to_left, to_right = new_left, new_right
    total = gather()
    belief = np.array([softmax(row) for row in total])
    evidence = sum(math.log(np.exp(row).sum()) for row in total)
    for m, (i, _) in enumerate(edges):
        evidence -= math.log(softmax(total[i] - to_left[m]) @ np.exp(to_left[m]))
    return belief, evidence, to_left, to_right


@every_channel
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("iterations", [1, 4])
def test_mean_field_is_its_recursion(channel, weighted, iterations):
    graph, prior = loopy_graph(weighted), log_prior()
    belief, bound = mean_field_by_loop(prior, graph, channel, iterations, damping=0.3)
    found = infer(
        prior, graph, channel, method="mean_field", iterations=iterations, tolerance=0, damping=0.3
    )
    np.testing.assert_allclose(found.belief.numpy(), belief, atol=1e-6)
    assert found.evidence == pytest.approx(bound, abs=1e-5)
    assert found.iterations == iterations
    assert found.converged is False
    assert found.to_left is None


@every_channel
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("iterations", [1, 4])
def test_belief_propagation_is_its_recursion(channel, weighted, iterations):
    graph, prior = loopy_graph(weighted), log_prior()
    expected = messages_by_loop(prior, graph, channel, iterations, damping=0.4)
    found = infer(
        prior, graph, channel, method="bp", iterations=iterations, tolerance=0, damping=0.4
    )
    belief, evidence, to_left, to_right = expected
    np.testing.assert_allclose(found.belief.numpy(), belief, atol=1e-9)
    np.testing.assert_allclose(found.to_left.numpy(), to_left, atol=1e-9)
    np.testing.assert_allclose(found.to_right.numpy(), to_right, atol=1e-9)
    assert found.evidence == pytest.approx(evidence, abs=1e-9)
    assert found.iterations == iterations
    assert found.converged is False


@pytest.mark.parametrize("channel", [RateChannel(0.8, 0.1), ConfusionChannel(P)], ids=["2", "C"])
def test_a_warm_start_goes_on_where_it_was(channel):
    graph, prior = loopy_graph(), log_prior()
    options = {"tolerance": 0, "damping": 0.3}
    first = infer(prior, graph, channel, method="bp", iterations=2, **options)
    went_on = infer(prior, graph, channel, method="bp", iterations=3, start=first, **options)
    messages = first.to_left.numpy(), first.to_right.numpy()
    belief, *_ = messages_by_loop(prior, graph, channel, 3, 0.3, start=messages)
    np.testing.assert_allclose(went_on.belief.numpy(), belief, atol=1e-9)

    first = infer(prior, graph, channel, method="mean_field", iterations=2, **options)
    went_on = infer(
        prior, graph, channel, method="mean_field", iterations=3, start=first, **options
    )
    whole = infer(prior, graph, channel, method="mean_field", iterations=5, **options)
    np.testing.assert_allclose(went_on.belief.numpy(), whole.belief.numpy(), atol=1e-6)


def test_a_start_of_another_graph_is_not_taken_for_messages():
    channel, prior = RateChannel(0.8, 0.1), log_prior()
    short = Graph.from_pairs(Pairs([0], [1], [1], n_items=6))
    start = infer(prior, short, channel, method="bp")
    found = infer(prior, loopy_graph(), channel, method="bp", start=start, iterations=200)
    cold = infer(prior, loopy_graph(), channel, method="bp", iterations=200)
    np.testing.assert_allclose(found.belief.numpy(), cold.belief.numpy(), atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_it_stops_when_nothing_moves(method):
    graph, prior, channel = loopy_graph(), log_prior(), RateChannel(0.8, 0.3)
    found = infer(prior, graph, channel, method=method, iterations=500, tolerance=1e-6)
    assert found.converged is True
    assert 1 < found.iterations < 100
    more = infer(prior, graph, channel, method=method, iterations=500, tolerance=1e-9)
    assert more.iterations > found.iterations
    np.testing.assert_allclose(found.belief.numpy(), more.belief.numpy(), atol=1e-5)
    fewer = infer(prior, graph, channel, method=method, iterations=found.iterations - 1)
    assert fewer.iterations <= found.iterations - 1


@pytest.mark.parametrize("method", METHODS)
def test_change_is_a_mean_over_items(method):
    """Many settled items beside a few must not be waited for as if changes added up."""
    prior = log_prior(2000)
    graph = Graph.from_pairs(Pairs([0, 1], [1, 2], [1, 0], n_items=2000))
    found = infer(prior, graph, RateChannel(0.8, 0.1), method=method, tolerance=1e-3)
    assert found.converged
    assert found.iterations <= 2


def test_fifty_iterations_with_little_damping_unless_told():
    graph, prior, channel = loopy_graph(), log_prior(), RateChannel(0.8, 0.1)
    for method in METHODS:
        default = infer(prior, graph, channel, method=method, tolerance=-1)
        told = infer(prior, graph, channel, method=method, iterations=50, damping=0.3, tolerance=-1)
        assert default.iterations == told.iterations == 50
        assert torch.equal(default.log_belief, told.log_belief)
        assert not default.converged
    assert (
        infer(prior, graph, channel).iterations
        == infer(prior, graph, channel, tolerance=1e-4).iterations
    )


@pytest.mark.parametrize("method", METHODS)
@every_channel
def test_no_judgements_leave_the_prior(method, channel):
    empty = Graph.from_pairs(Pairs([], [], [], n_items=4))
    if isinstance(channel, AnnotatorChannel):
        empty = Graph(empty.left, empty.right, empty.same, 4, torch.zeros(0, dtype=torch.int64))
    prior = log_prior(4)
    found = infer(prior, empty, channel, method=method)
    torch.testing.assert_close(found.log_belief, prior)
    assert found.evidence == pytest.approx(0, abs=1e-12)
    assert found.converged
    assert answer_log_likelihood(found.belief, empty, channel).shape == (0,)
    assert float(edge_statistics(found, empty, channel).sum()) == 0


@pytest.mark.parametrize("method", METHODS)
def test_no_items_are_no_trouble(method):
    empty = Graph.from_pairs(Pairs([], [], [], n_items=0))
    found = infer(torch.zeros(0, C), empty, RateChannel(0.8, 0.1), method=method)
    assert found.belief.shape == (0, C)
    assert found.converged
    assert found.iterations == 1


@pytest.mark.parametrize("method", METHODS)
@every_channel
def test_single_precision_stays_and_agrees(method, channel):
    graph, prior = loopy_graph(True), log_prior()
    found = infer(prior.float(), graph, channel, method=method)
    expected = infer(prior, graph, channel, method=method)
    assert found.log_belief.dtype == torch.float32
    torch.testing.assert_close(found.belief.double(), expected.belief, atol=1e-4, rtol=0)
    assert edge_statistics(found, graph, channel).dtype == torch.float64
    likelihood = answer_log_likelihood(found.belief, graph, channel)
    assert likelihood.dtype == torch.float32
    torch.testing.assert_close(
        likelihood.double(),
        answer_log_likelihood(expected.belief, graph, channel),
        atol=1e-3,
        rtol=0,
    )


# -- what the M-step and the scores read off -----------------------------------------------------


def edge_joints(found, graph, channel) -> list[np.ndarray]:
    """(C, C) posterior of the two classes of each judgement."""
    joints = []
    for m, (i, j) in enumerate(ends(graph)):
        if found.to_left is None:
            joint = np.outer(found.belief[i], found.belief[j])
        else:
            cavities = (
                softmax((found.log_belief[i] - found.to_left[m]).numpy()),
                softmax((found.log_belief[j] - found.to_right[m]).numpy()),
            )
            joint = np.outer(*cavities) * np.exp(edge_table(graph, channel, m))
        joints.append(joint / joint.sum())
    return joints


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
@every_channel
def test_statistics_by_loop(method, weighted, channel):
    graph = loopy_graph(weighted)
    found = infer(log_prior(), graph, channel, method=method, iterations=3, tolerance=0)
    joints = edge_joints(found, graph, channel)
    counts = np.zeros(channel.log_table().shape)
    groups = channel.groups(graph.same, graph.annotator).tolist()
    for m, joint in enumerate(joints):
        weight = 1.0 if graph.weight is None else float(graph.weight[m])
        cell = [np.trace(joint), 1 - np.trace(joint)] if channel.two_rate else joint
        counts[groups[m]] += weight * np.array(cell)
    np.testing.assert_allclose(edge_statistics(found, graph, channel).numpy(), counts, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@every_channel
def test_held_out_likelihood_by_loop(weighted, channel):
    graph, belief = loopy_graph(weighted), log_prior(seed=3).exp()
    plain = replace(graph, weight=None)
    turned = replace(plain, same=~graph.same)
    expected = []
    for m, (i, j) in enumerate(ends(graph)):
        said, other = (
            belief[i].numpy() @ np.exp(edge_table(one, channel, m)) @ belief[j].numpy()
            for one in (plain, turned)
        )
        weight = 1.0 if graph.weight is None else float(graph.weight[m])
        expected.append(weight * math.log(said / (said + other)))
    found = answer_log_likelihood(belief, graph, channel)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)


def test_certain_beliefs_cost_no_nan():
    """Beliefs of exactly 0 and 1 against a nearly certain channel that says the opposite."""
    prior = torch.log(torch.tensor([[1.0, 1e-40, 1e-40], [1.0, 1e-40, 1e-40]]).double())
    graph = Graph.from_pairs(Pairs([0], [1], [0]))
    channel = RateChannel(1 - 1e-12, 1e-12)
    for method in METHODS:
        found = infer(prior.float(), graph, channel, method=method)
        assert torch.isfinite(found.log_belief).all()
        assert math.isfinite(found.evidence)
        counts = edge_statistics(found, graph, channel)
        assert ((counts >= 0) & (counts <= 1)).all()


# -- the exact channel ---------------------------------------------------------------------------


def test_each_contradiction_costs_a_slip():
    channel = ExactChannel(slip=1e-3)
    prior = log_prior(4)
    clean = infer(prior, Graph.from_pairs(Pairs([0, 1, 0], [1, 2, 3], [1, 1, 0])), channel)
    dirty = infer(
        prior, Graph.from_pairs(Pairs([0, 1, 0, 0, 1], [1, 2, 3, 2, 2], [1, 1, 0, 0, 0])), channel
    )
    torch.testing.assert_close(clean.belief, dirty.belief)
    assert dirty.evidence - clean.evidence == pytest.approx(2 * math.log(1e-3))


def test_options_reach_the_contracted_graph():
    """Four groups in a cycle of "different": its messages need several rounds."""
    left, right = [0, 2, 4, 6, 1, 3, 5, 7], [1, 3, 5, 7, 2, 4, 6, 0]
    graph = Graph.from_pairs(Pairs(left, right, [1, 1, 1, 1, 0, 0, 0, 0]))
    prior, channel = log_prior(8), ExactChannel()
    nodes = torch.stack([prior[i] + prior[i + 1] for i in (0, 2, 4, 6)])
    apart = Graph.from_pairs(Pairs([0, 0, 1, 2], [1, 3, 2, 3], [0, 0, 0, 0]))
    for options in (
        {"iterations": 1},
        {"iterations": 3, "damping": 0.6, "tolerance": 0.0},
        {"iterations": 300, "tolerance": 1e-9},
        {"iterations": 300, "tolerance": 1e-2},
    ):
        found = infer(prior, graph, channel, **options)
        inner = infer(nodes, apart, RateChannel(1 - channel.slip, channel.slip), **options)
        torch.testing.assert_close(found.belief, inner.belief[[0, 0, 1, 1, 2, 2, 3, 3]])
        assert found.iterations == inner.iterations
        assert found.converged is inner.converged
        assert found.evidence == pytest.approx(inner.evidence)


# -- which method --------------------------------------------------------------------------------


def test_the_limits_of_belief_propagation(monkeypatch):
    graph = loopy_graph()  # 7 judgements of 6 items: 42 message floats, degree 7/3
    monkeypatch.setattr(f"{MODULE}.MAX_MESSAGE_FLOATS", 42)
    assert choose_method(graph, C) == "bp"
    monkeypatch.setattr(f"{MODULE}.MAX_MESSAGE_FLOATS", 41)
    assert choose_method(graph, C) == "mean_field"
    monkeypatch.setattr(f"{MODULE}.MAX_MESSAGE_FLOATS", 10**6)
    monkeypatch.setattr(f"{MODULE}.DENSE_DEGREE", 14 / 6)
    assert choose_method(graph, C) == "bp"
    monkeypatch.setattr(f"{MODULE}.DENSE_DEGREE", 13 / 6)
    assert choose_method(graph, C) == "mean_field"
    found = infer(log_prior(), graph, RateChannel(0.8, 0.1))
    assert found.to_left is None
    monkeypatch.setattr(f"{MODULE}.DENSE_DEGREE", 10)
    assert infer(log_prior(), graph, RateChannel(0.8, 0.1)).to_left is not None
    assert choose_method(Graph.from_pairs(Pairs([], [], [], n_items=0)), C) == "bp"


# -- symmetries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(st.permutations(range(C)), st.permutations(range(6)), st.integers(0, 100))
def test_nothing_depends_on_how_things_are_numbered(method, classes, items, seed):
    graph, prior = loopy_graph(), log_prior(seed=seed)
    channel = ConfusionChannel(P)
    renumbered = ConfusionChannel(P[classes][:, classes])
    position = torch.tensor(items)  # item i becomes position[i]
    moved_prior = torch.empty_like(prior)
    moved_prior[position] = prior[:, classes]
    moved = Graph(
        position[graph.left.long()], position[graph.right.long()], graph.same, 6, graph.annotator
    )
    expected = infer(prior, graph, channel, method=method)
    found = infer(moved_prior, moved, renumbered, method=method)
    torch.testing.assert_close(found.belief[position], expected.belief[:, classes])
    assert found.evidence == pytest.approx(expected.evidence)


@pytest.mark.parametrize("method", METHODS)
@every_channel
def test_a_judgement_has_no_order(method, channel):
    graph, prior = loopy_graph(True), log_prior()
    swapped = Graph(graph.right, graph.left, graph.same, 6, graph.annotator, graph.weight)
    options = {"method": method, "iterations": 500, "tolerance": 1e-12}
    expected = infer(prior, graph, channel, **options)
    found = infer(prior, swapped, channel, **options)
    torch.testing.assert_close(found.belief, expected.belief, atol=1e-6, rtol=0)
    assert found.evidence == pytest.approx(expected.evidence, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_judgement_of_weight_nothing_says_nothing(method):
    prior, channel = log_prior(), RateChannel(0.8, 0.1)
    weightless = Graph.from_pairs(Pairs([0, 3], [1, 4], [1, 1], weight=[1.0, 0.0], n_items=6))
    without = Graph.from_pairs(Pairs([0], [1], [1], weight=[1.0], n_items=6))
    found = infer(prior, weightless, channel, method=method)
    expected = infer(prior, without, channel, method=method)
    torch.testing.assert_close(found.belief, expected.belief)
    assert found.evidence == pytest.approx(expected.evidence, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
@every_channel
def test_judgements_in_pieces_change_nothing(method, channel, monkeypatch):
    graph, prior = loopy_graph(True), log_prior()
    whole = infer(prior, graph, channel, method=method)
    monkeypatch.setattr("likewise.inference.propagation.graph.CHUNK", 2)
    pieces = infer(prior, graph, channel, method=method)
    torch.testing.assert_close(pieces.belief, whole.belief)
    assert pieces.evidence == pytest.approx(whole.evidence)
    counts = (edge_statistics(found, graph, channel) for found in (pieces, whole))
    torch.testing.assert_close(*counts)
