"""Inference on the judgement graph, against enumeration of every assignment of classes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from likewise.inference.propagation import edge_posteriors, fields
from likewise.inference.propagation.belief_propagation import choose_method, guess, infer
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph, contract
from likewise.inference.selection.ranking import answer_log_likelihood
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel, ExactChannel, RateChannel
from likewise.pairs import Pairs

TREE = ([0, 1, 1, 3], [1, 2, 3, 4], [1, 0, 1, 0])  # five items, item 5 isolated
N_ITEMS = 6


def graph_of(left, right, same, n_items=N_ITEMS, annotator=None, weight=None) -> Graph:
    return Graph.from_pairs(Pairs(left, right, same, annotator, weight, n_items=n_items))


def log_prior(n_items: int, n_classes: int, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.log(torch.tensor(rng.dirichlet(np.ones(n_classes), n_items)))


def enumerate_all(prior: torch.Tensor, graph: Graph, channel: Channel):
    """(beliefs, evidence, P(equal) of every judgement) by summing over every assignment."""
    n, c = prior.shape
    table = channel.log_table()
    groups = channel.groups(graph.same, graph.annotator)
    belief = torch.zeros(n, c, dtype=torch.float64)
    equal = torch.zeros(len(graph), dtype=torch.float64)
    total = 0.0
    for z in itertools.product(range(c), repeat=n):
        log_p = float(sum(prior[i, k] for i, k in enumerate(z)))
        for m in range(len(graph)):
            a, b = z[int(graph.left[m])], z[int(graph.right[m])]
            entry = (
                table[groups[m], 0 if a == b else 1] if channel.two_rate else table[groups[m], a, b]
            )
            log_p += float(entry) * (1.0 if graph.weight is None else float(graph.weight[m]))
        p = np.exp(log_p)
        total += p
        for i, k in enumerate(z):
            belief[i, k] += p
        for m in range(len(graph)):
            equal[m] += p * (z[int(graph.left[m])] == z[int(graph.right[m])])
    return belief / total, np.log(total), equal / total


def channels() -> list[Channel]:
    p = torch.tensor([[0.9, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.7]], dtype=torch.float64)
    people = AnnotatorChannel.from_rates(0.8, 0.2, 3)
    return [RateChannel(0.8, 0.1), ConfusionChannel(p), people, people.with_classes(3)]


@pytest.mark.parametrize("channel", channels(), ids=lambda c: f"{type(c).__name__}-{c.two_rate}")
@pytest.mark.parametrize("weighted", [False, True])
def test_belief_propagation_is_exact_on_a_tree(channel, weighted):
    weight = [1.0, 0.5, 2.0, 1.0] if weighted else None
    graph = graph_of(*TREE, annotator=["a", "b", "c", "a"], weight=weight)
    prior = log_prior(N_ITEMS, 3)
    belief, evidence, equal = enumerate_all(prior, graph, channel)
    found = infer(prior, graph, channel, method="bp", iterations=200, tolerance=1e-12)
    torch.testing.assert_close(found.belief, belief, atol=1e-6, rtol=0)
    assert found.evidence == pytest.approx(evidence, abs=1e-6)
    assert found.converged
    counts = edge_statistics(found, graph, channel)
    found_equal = counts[:, 0] if channel.two_rate else counts.diagonal(dim1=1, dim2=2).sum(1)
    weights = torch.ones(len(graph)) if graph.weight is None else graph.weight
    groups = channel.groups(graph.same, graph.annotator)
    expected = torch.zeros_like(found_equal).index_add_(0, groups, weights.double() * equal)
    torch.testing.assert_close(found_equal, expected, atol=1e-6, rtol=0)


def test_an_isolated_item_keeps_its_prior():
    prior = log_prior(N_ITEMS, 3)
    found = infer(prior, graph_of(*TREE), RateChannel(0.8, 0.1), method="bp")
    torch.testing.assert_close(found.log_belief[5], prior[5])


def test_repeated_and_contradictory_judgements_are_close_to_enumeration():
    graph = graph_of([0, 0, 0, 1, 2], [1, 1, 1, 2, 0], [1, 1, 0, 1, 0], n_items=4)
    prior, channel = log_prior(4, 3), RateChannel(0.7, 0.2)
    belief, evidence, _ = enumerate_all(prior, graph, channel)
    found = infer(prior, graph, channel, method="bp", iterations=300)
    torch.testing.assert_close(found.belief, belief, atol=0.03, rtol=0)
    assert found.evidence == pytest.approx(evidence, abs=0.1)


def test_the_exact_channel_merges_what_same_joins():
    graph = graph_of([0, 1, 3, 2, 0], [1, 2, 4, 3, 4], [1, 1, 1, 0, 0])
    prior = log_prior(N_ITEMS, 3)
    channel = ExactChannel(slip=1e-9)
    belief, _, _ = enumerate_all(prior, graph, channel)
    found = infer(prior, graph, channel)
    torch.testing.assert_close(found.belief, belief, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.log_belief[0], found.log_belief[2])


def test_exact_evidence_counts_only_consistent_assignments():
    graph = graph_of([0, 1], [1, 2], [1, 0], n_items=3)
    prior = torch.log(torch.full((3, 2), 0.5, dtype=torch.float64))
    found = infer(prior, graph, ExactChannel(slip=1e-9))
    assert found.evidence == pytest.approx(np.log(2 / 8), abs=1e-6)  # 001 and 110 of eight


def test_contract_counts_contradictions_and_drops_repeats():
    merged = contract(graph_of([0, 1, 0, 2, 2], [1, 2, 2, 3, 3], [1, 1, 0, 0, 0], n_items=4))
    assert merged.contradictions == 1
    assert len(merged.graph) == 1
    assert merged.sizes.tolist() == [3, 1]


def test_mean_field_bound_is_below_the_evidence_and_its_two_forms_agree():
    rng = np.random.default_rng(1)
    left, right = np.triu_indices(5, 1)
    graph = graph_of(left, right, rng.random(10) < 0.5, n_items=5)
    prior, channel = log_prior(5, 3), RateChannel(0.8, 0.3)
    _, evidence, _ = enumerate_all(prior, graph, channel)
    found = infer(prior, graph, channel, method="mean_field", iterations=500, tolerance=1e-10)
    full = infer(
        prior,
        graph,
        ConfusionChannel.from_rates(0.8, 0.3, 3),
        method="mean_field",
        iterations=500,
        tolerance=1e-10,
    )
    assert found.evidence < evidence
    torch.testing.assert_close(found.belief, full.belief, atol=1e-4, rtol=0)


def test_statistics_count_every_judgement_once():
    graph = graph_of(*TREE, annotator=["a", "b", "c", "a"])
    for channel in channels():
        found = infer(log_prior(N_ITEMS, 3), graph, channel, method="bp")
        counts = edge_statistics(found, graph, channel)
        assert counts.shape == channel.log_table().shape
        assert float(counts.sum()) == pytest.approx(4)


@pytest.mark.parametrize("method", ["bp", "mean_field"])
def test_statistics_table_by_table_are_those_of_single_judgements(monkeypatch, method):
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 10, 200), rng.integers(10, 20, 200)
    names = [f"p{k}" for k in rng.integers(0, 4, 200)] + ["silent"]  # one says a single thing
    said = np.append(rng.random(200) < 0.4, True)
    ends = np.append(left, 0), np.append(right, 11)
    graph = graph_of(*ends, said, n_items=20, annotator=names)
    for channel in (channels()[1], AnnotatorChannel.from_rates(0.8, 0.2, 5).with_classes(3)):
        found = infer(log_prior(20, 3), graph, channel, method=method)
        by_table = []
        for answers_a_table, chunk in ((0, 64), (10**9, 64), (0, 1 << 18)):
            monkeypatch.setattr(edge_posteriors, "ANSWERS_A_TABLE", answers_a_table)
            monkeypatch.setattr("likewise.inference.propagation.graph.MOST_EDGES", chunk)
            by_table.append(edge_statistics(found, graph, channel))
        assert float(by_table[0].sum()) == pytest.approx(201)
        torch.testing.assert_close(by_table[0], by_table[1], atol=1e-5, rtol=0)
        torch.testing.assert_close(by_table[2], by_table[1], atol=1e-5, rtol=0)


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    left, right = np.triu_indices(20, 1)
    graph = graph_of(left, right, rng.random(len(left)) < 0.3, n_items=20)
    prior, channel = log_prior(20, 3), RateChannel(0.8, 0.3)
    whole = {method: infer(prior, graph, channel, method=method) for method in ("bp", "mean_field")}
    monkeypatch.setattr("likewise.inference.propagation.graph.CHUNK", 7)
    for method, expected in whole.items():
        found = infer(prior, graph, channel, method=method)
        torch.testing.assert_close(found.belief, expected.belief)
        assert found.evidence == pytest.approx(expected.evidence)


def test_nothing_is_changed_in_place():
    prior, graph = log_prior(N_ITEMS, 3), graph_of(*TREE)
    before = prior.clone()
    for method in ("bp", "mean_field"):
        infer(prior, graph, RateChannel(0.8, 0.1), method=method)
    torch.testing.assert_close(prior, before)


def test_held_out_likelihood_is_the_mixture_of_the_table():
    belief = log_prior(N_ITEMS, 3).exp()
    graph = graph_of([0], [1], [1])
    p = torch.tensor([[0.9, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.7]], dtype=torch.float64)
    expected = torch.log(belief[0] @ p @ belief[1])
    found = answer_log_likelihood(belief, graph, ConfusionChannel(p))
    assert float(found) == pytest.approx(float(expected))


def test_size_decides_the_method(monkeypatch):
    graph = graph_of(*TREE)
    assert choose_method(graph, 3) == "bp"
    monkeypatch.setattr("likewise.inference.propagation.belief_propagation.MAX_MESSAGE_FLOATS", 10)
    assert choose_method(graph, 3) == "mean_field"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [7, 60, 1000])
def test_the_sparse_field_equals_the_scattered_one(
    weighted: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field and expected log likelihood, by sums over neighbours and edge by edge."""
    monkeypatch.setattr("likewise.inference.propagation.fields.BLOCK", block)
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(rng.integers(4, size=60), per_item=10, random_state=0)
    twice = Pairs.concatenate([pairs, pairs.subset(np.arange(60)), Pairs([3], [61], [1])])
    weight = rng.random(len(twice)) if weighted else None
    graph = Graph.from_pairs(
        Pairs(twice.left, twice.right, twice.same, weight=weight, n_items=twice.n_items)
    )
    n = twice.n_items
    assert n == 62  # one of which is judged by nobody
    belief = torch.randn(n, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    channel = RateChannel(0.7, 0.05)
    sparse, scattered = (
        kind(graph, channel, belief) for kind in (fields.SparseField, fields.ScatterField)
    )
    covered, parts = zip(*sparse.blocks(belief), strict=True)
    assert np.concatenate([np.arange(n)[items] for items in covered]).tolist() == list(range(n))
    expected = torch.cat([part for _, part in scattered.blocks(belief)])
    torch.testing.assert_close(torch.cat(parts), expected, atol=1e-5, rtol=1e-5)
    assert sparse.expected_log_likelihood(belief) == pytest.approx(
        scattered.expected_log_likelihood(belief), rel=1e-6
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mean_field_in_blocks_is_mean_field(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = log_prior(40, 3).to(dtype)
    before = prior.clone()
    graph = Graph.from_pairs(Pairs.from_labels(np.arange(40) % 3, per_item=6, random_state=0))

    def found(**options):
        return infer(prior, graph, RateChannel(0.8, 0.2), method="mean_field", **options)

    whole = found()
    again = found(start=found(iterations=2))
    monkeypatch.setattr("likewise.inference.propagation.fields.BLOCK", 7)
    monkeypatch.setattr("likewise.inference.propagation.belief_propagation.BLOCK", 7)
    parts = found()
    assert whole.converged
    torch.testing.assert_close(parts.log_belief, whole.log_belief)
    torch.testing.assert_close(again.belief, whole.belief, atol=1e-3, rtol=0)
    assert parts.evidence == pytest.approx(whole.evidence, rel=1e-6)
    torch.testing.assert_close(prior, before, atol=0, rtol=0)


def test_without_judgements_the_prior_remains() -> None:
    prior = log_prior(5, 3)
    graph = graph_of([], [], [], n_items=5)
    found = infer(prior, graph, RateChannel(0.8, 0.2), method="mean_field")
    torch.testing.assert_close(found.belief, prior.exp())
    assert found.evidence == pytest.approx(0.0, abs=1e-9)


def test_under_an_exact_channel_a_node_starts_from_the_average_of_its_items() -> None:
    graph = graph_of([0, 1, 3, 0, 2, 5], [1, 2, 4, 3, 5, 4], [1, 1, 1, 0, 0, 0])
    prior, belief = log_prior(N_ITEMS, 3), log_prior(N_ITEMS, 3, seed=1).exp()
    options = {"iterations": 1, "damping": 0.5}
    found = infer(prior, graph, ExactChannel(slip=0.01), start=guess(belief), **options)
    merged = contract(graph)
    nodes, start = torch.zeros(3, 3).double(), torch.zeros(3, 3).double()
    for node in range(3):
        own = [i for i in range(N_ITEMS) if merged.component[i] == node]
        nodes[node] = sum(prior[i] for i in own)
        start[node] = sum(belief[i] for i in own) / len(own)
    by_hand = infer(nodes, merged.graph, RateChannel(0.99, 0.01), start=guess(start), **options)
    torch.testing.assert_close(found.log_belief, by_hand.log_belief[merged.component])
    cold = infer(prior, graph, ExactChannel(slip=0.01), **options)
    assert (found.belief - cold.belief).abs().max() > 0.01  # the start is felt
