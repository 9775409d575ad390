"""Lifting on small sets with known answers, and its counts against a loop."""

from __future__ import annotations

import numpy as np
import torch

from likewise import Pairs
from likewise.inference.lifting.hierarchy import Tree
from likewise.inference.lifting.lifted_start import embeddings, lifted_start, plant
from likewise.inference.lifting.lifted_tree import lift_tree
from likewise.inference.lifting.lifting import lift
from likewise.inference.lifting.tallies import Tallies
from likewise.inference.propagation.graph import Graph
from likewise.metrics import best_matching, confusion


def blobs(n: int, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) % n_classes
    centres = 6 * rng.normal(size=(n_classes, 8))
    return (centres[y] + rng.normal(size=(n, 8))).astype(np.float32), y


def agreement(belief: torch.Tensor, y: np.ndarray) -> float:
    n_classes = belief.shape[1]
    table = confusion(belief.argmax(1).numpy(), y, n_classes)
    return float(table[np.arange(n_classes), best_matching(table)].sum() / len(y))


def test_tallies_are_what_a_loop_counts() -> None:
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 5, 40)
    cluster[:5] = np.arange(5)
    left, right = rng.integers(0, 20, 100), rng.integers(20, 40, 100)
    same = rng.random(100) < 0.4
    weight = rng.random(100)
    tallies = Tallies.of(Graph.from_pairs(Pairs(left, right, same, weight=weight)), cluster)
    expected = np.zeros((2, 5, 5))
    for i, j, s, w in zip(left, right, same, weight):
        a, b = cluster[i], cluster[j]
        expected[int(s), a, b] += w
        if a != b:
            expected[int(s), b, a] += w
    np.testing.assert_allclose(tallies.same.numpy(), expected[1], rtol=1e-5)
    np.testing.assert_allclose(tallies.different.numpy(), expected[0], rtol=1e-5)
    assert float(tallies.share.sum()) == 1.0


def test_clusters_get_their_classes_from_noisy_answers() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(600) % 4
    cluster = (np.arange(600) % 24).astype(np.int64)  # each within a class: 24 = 6 · 4
    left, right = rng.integers(0, 600, 900), rng.integers(0, 600, 900)
    keep = left != right
    left, right = left[keep], right[keep]
    same = (y[left] == y[right]) ^ (rng.random(len(left)) < 0.1)
    graph = Graph.from_pairs(Pairs(left, right, same, n_items=600))
    found = lift(graph, cluster, 4, seed=0)
    assert agreement(found.items(), y) == 1.0
    assert abs(found.a - 0.9) < 0.06
    assert abs(found.b - 0.1) < 0.06
    # The evidence knows the truth from a clustering that lies across the classes.
    across = rng.permutation(cluster)
    assert found.evidence > lift(graph, across, 4, seed=0).evidence + 50


def test_evidence_of_a_tree_beats_that_of_a_shuffled_one() -> None:
    rng = np.random.default_rng(2)
    X, y = blobs(400, 4, rng)
    pairs = Pairs.from_labels(y, 2, rng)
    graph = Graph.from_pairs(pairs)
    forest = plant([X], leaves=(40,))
    cluster, tree = forest.clusters[0], forest.trees[0]
    hint = [torch.softmax(torch.from_numpy(rng.normal(size=(40, 4))).float(), 1)]
    centres = rng.permutation(np.stack([X[cluster == m].mean(0) for m in range(40)]))
    shuffled = Tree.of(centres)
    right = lift_tree(graph, cluster, tree, 4, hint, improvements=6)
    wrong = lift_tree(graph, cluster, shuffled, 4, hint, improvements=6)
    assert right.evidence > wrong.evidence + 10


def test_a_lifted_start_finds_classes_with_one_judgement_an_item() -> None:
    rng = np.random.default_rng(3)
    X, y = blobs(400, 5, rng)
    graph = Graph.from_pairs(Pairs.from_labels(y, 1, rng))
    found = lifted_start(graph, plant(embeddings(X, 5)), 5)
    assert agreement(found.belief, y) > 0.97
    torch.testing.assert_close(found.belief.sum(1), torch.ones(400))
    # Answers that mean nothing must not be explained as well.
    nonsense = Graph(graph.left, graph.right, graph.same[torch.randperm(len(graph))], 400)
    assert lifted_start(nonsense, plant(embeddings(X, 5)), 5).evidence < found.evidence - 20
