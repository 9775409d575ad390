"""Ranking by unseen judgements: the truth wins, nonsense loses, and errors know shared items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from likewise import Pairs
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.ranking import answer_scores, by_pair, jackknife_error


def truth_and_graph(seed: int, per_item: int = 6) -> tuple[torch.Tensor, Graph]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 300)
    sure = 0.96 * torch.eye(4)[torch.from_numpy(y)] + 0.01
    return sure, Graph.from_pairs(Pairs.from_labels(y, per_item, rng))


def test_the_truth_is_ranked_before_half_of_it_and_before_nonsense() -> None:
    truth, graph = truth_and_graph(0)
    generator = torch.Generator().manual_seed(1)
    half = truth.clone()
    half[::2] = half[::2][torch.randperm(150, generator=generator)]
    nonsense = truth[torch.randperm(300, generator=generator)]
    held = torch.rand(len(graph), generator=generator) < 0.15
    seen, unseen = graph.select(~held), graph.select(held)
    means = [float(answer_scores(b, seen, unseen).mean()) for b in (truth, half, nonsense)]
    assert means[0] > means[1] > means[2]


def test_scores_are_those_of_a_loop() -> None:
    truth, graph = truth_and_graph(1)
    scores = answer_scores(truth, graph, graph)
    # Clean answers: the rates are nearly 1 and 0, so P(same) is nearly the overlap.
    for m in range(0, len(graph), 97):
        overlap = float(truth[graph.left[m]] @ truth[graph.right[m]])
        likely = overlap if bool(graph.same[m]) else 1 - overlap
        assert abs(float(scores[m]) - np.log(likely)) < 0.1


def test_error_is_larger_where_judgements_share_items() -> None:
    generator = torch.Generator().manual_seed(0)
    per_item = torch.randn(300, generator=generator)
    _, graph = truth_and_graph(2, per_item=40)
    shared = per_item[graph.left.long()] + per_item[graph.right.long()]
    alone = shared[torch.randperm(len(shared), generator=generator)]
    naive = float(shared.std()) / len(shared) ** 0.5
    assert jackknife_error(shared, graph) > 2 * naive
    assert jackknife_error(alone, graph) < 2 * naive


def test_every_pair_counts_alike_however_often_it_was_judged() -> None:
    graph = Graph.from_pairs(Pairs([0, 1, 0, 2], [1, 0, 1, 1], [True, True, False, True]))
    scores = torch.tensor([-1.0, -2.0, -3.0, -8.0], dtype=torch.float64)
    means = [-(1 + 2 + 3) / 3, -8.0]  # of the pair (0, 1), judged three times, and of (1, 2)
    assert float(by_pair(scores, graph).mean()) == pytest.approx(np.mean(means))


def test_error_is_that_of_leaving_out_each_item() -> None:
    _, graph = truth_and_graph(3, per_item=4)
    scores = torch.randn(len(graph), generator=torch.Generator().manual_seed(0))
    means = []
    for item in range(graph.n_items):
        rest = (graph.left != item) & (graph.right != item)
        if not bool(rest.all()):
            means.append(float(scores[rest].double().mean()))
    n = len(means)
    slow = ((n - 1) / n / 2 * np.square(np.array(means) - np.mean(means)).sum()) ** 0.5
    assert jackknife_error(scores, graph) == pytest.approx(slow, rel=1e-6)


def test_a_judgement_of_weight_two_is_the_judgement_twice() -> None:
    """In the rates that are read from the seen ones, and in what the unseen ones come to."""
    truth, graph = truth_and_graph(4)
    twice = torch.arange(len(graph)) % 3 == 0
    flipped = torch.where(torch.arange(len(graph)) % 5 < 2, ~graph.same, graph.same)
    weighted = replace(graph, same=flipped, weight=1.0 + twice.float())
    repeated = torch.repeat_interleave(torch.arange(len(graph)), 1 + twice.long())
    listed = replace(graph, same=flipped).select(repeated)
    found, slow = answer_scores(truth, weighted, weighted), answer_scores(truth, listed, listed)
    expected = torch.zeros_like(found).index_add_(0, repeated, slow)
    torch.testing.assert_close(found, expected)
