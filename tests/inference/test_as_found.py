"""Starts that stand as they were found, and what is held out to compare fits by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.inference.em import Options
from likewise.inference.lifting.neighbours import nearest_neighbours
from likewise.inference.problem import make_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.as_found import as_found
from likewise.inference.selection.fit_selection import fit_selected
from likewise.inference.selection.ranking import held_out
from likewise.metrics import matched_accuracy
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import RateChannel
from likewise.pairs import Pairs


def test_all_answers_about_a_pair_are_held_out_together() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 20, 3000), rng.integers(20, 40, 3000)
    turned = rng.random(3000) < 0.5  # who stands left says nothing
    ends = np.where(turned, right, left), np.where(turned, left, right)
    graph = Graph.from_pairs(Pairs(*ends, rng.random(3000) < 0.5, n_items=40))
    held = held_out(graph, torch.Generator().manual_seed(0)).numpy()
    assert 0.1 < held.mean() < 0.2
    pair = np.minimum(*ends) * 40 + np.maximum(*ends)
    assert not set(pair[held]) & set(pair[~held])


def test_a_start_stands_and_judgements_say_how_sure_items_are_of_it() -> None:
    y = np.arange(60) % 6
    i, j = np.triu_indices(60, 1)
    wrong = np.random.default_rng(0).random(len(i)) < 0.1
    pairs = Pairs(i, j, (y[i] == y[j]) ^ wrong, n_items=60)
    rng = np.random.default_rng(1)
    items = rng.normal(size=(60, 30)).astype(np.float32)
    problem = make_problem(items, pairs, 6, None, "estimate", rng, "cpu", Options())
    start = y.copy()
    start[0] = 3  # which its judgements refute
    state = as_found(problem, (torch.eye(6)[torch.from_numpy(start)], RateChannel(0.8, 0.2)))
    assert np.array_equal(state.targets.classes.argmax(dim=1).numpy(), y)
    assert isinstance(state.channel, RateChannel)
    assert abs(state.channel.a - 0.9) < 0.1
    worse = as_found(problem, (torch.eye(6)[torch.from_numpy(rng.permutation(y))], RateChannel()))
    assert worse.evidence < state.evidence


@pytest.mark.usefixtures("few_draws")
def test_features_decide_where_judgements_alone_say_nothing() -> None:
    """Three answers an item and ten classes: without the features nothing can be found."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 10
    items = (4 * rng.normal(size=(10, 80))[y] + rng.normal(size=(300, 80))).astype(np.float32)
    left = rng.integers(0, 300, 500)
    right = (left + rng.integers(1, 300, 500)) % 300
    same = (y[left] == y[right]) ^ (rng.random(500) < 0.1)
    pairs = Pairs(left, right, same, [f"p{k % 20}" for k in range(500)], n_items=300)
    problem = make_problem(items, pairs, 10, None, "estimate", rng, "cpu", Options())
    channel = AnnotatorChannel.from_rates(0.8, 0.2, problem.n_annotators)
    state, _ = fit_selected(problem, channel)
    assert matched_accuracy(state.targets.classes.argmax(dim=1).numpy(), y) > 0.95


def test_boundaries_between_clusters_are_preferred_unless_people_say_otherwise() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    points = (6 * np.eye(2, 5)[y] + rng.normal(size=(200, 5))).astype(np.float32)
    through = (points[:, 4] > 0).astype(int)  # cuts both clusters
    near = nearest_neighbours(points)
    between, cut = (torch.eye(2)[torch.from_numpy(labels)] for labels in (y, through))
    mixed = torch.where(
        torch.rand(200, 1, generator=torch.Generator().manual_seed(0)) < 0.5, between, cut
    )
    assert near.prefers(between, cut, mixed)
    assert not near.prefers(cut, between, mixed)
    assert not near.prefers(between, cut, cut)
    # Another fit numbers the classes in its own way.
    assert near.prefers(between.flip(1), cut, mixed)
    assert not near.prefers(between.flip(1), cut, cut)


def test_classes_are_shown_where_few_items_lie_between_them_and_people_mostly_see_them() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    points = (6 * np.eye(2, 5)[y] + rng.normal(size=(200, 5))).astype(np.float32)
    near = nearest_neighbours(points)
    mistaken = np.where(rng.random(200) < 0.2, 1 - y, y)
    other = np.where(rng.random(200) < 0.4, 1 - y, y)
    through = (points[:, 4] > 0).astype(int)  # cuts both clusters
    shown, seen, hardly, cut = (
        torch.eye(2)[torch.from_numpy(labels)] for labels in (y, mistaken, other, through)
    )
    assert near.show(shown, seen)
    assert not near.show(shown, hardly)  # these are not the classes that people mean
    assert not near.show(cut, cut)
