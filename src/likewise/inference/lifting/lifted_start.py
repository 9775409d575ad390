"""Lifted beliefs: trees of micro-clusters in several embeddings carry the judgements.

First beliefs (N, C) of all items, judged or not: what each tree finds is brought to one order of
the classes and averaged. The judgement graph alone: `inference.propagation.graph_beliefs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.lifting.hierarchy import Tree
from likewise.inference.lifting.lifted_tree import carried, lift_tree
from likewise.inference.lifting.lifting import IMPROVEMENTS, Lifted, lift, micro_clusters
from likewise.inference.lifting.neighbours import (
    NEIGHBOURS,
    FloatMatrix,
    eigenmaps,
    nearest_neighbours,
    principal_components,
)
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import in_known_order

LEAVES = (200, 400)  # micro-clusters of a tree, where there are items enough
FEW_ITEMS = 5_000  # below which one size of tree is enough
ITEMS_A_LEAF = 5
CUTS = (1.5, 2.5, 4.0)  # times C: groups of a tree that are lifted first
MAX_AXES = 60
SPARSE = 4  # judgements an item


@dataclass(frozen=True)
class Forest:
    """Micro-clusters (N,) and their tree, in several embeddings of the same items.

    Made of the items alone: one forest serves any judgements about them.
    """

    points: list[FloatMatrix]
    clusters: list[NDArray[np.int64]]
    trees: list[Tree]


@dataclass(frozen=True)
class Begin:
    """A first guess: ``belief`` (N, C), rates ``a``, ``b`` of the answers it implies."""

    belief: Tensor
    a: float
    b: float
    evidence: float
    trees: tuple[Lifted, ...] = ()
    """What each tree has found."""


def embeddings(items: NDArray[np.generic], n_classes: int, seed: int = 0) -> list[FloatMatrix]:
    """Points (N, d) in which items of a kind lie together: eigenmaps of different depth.

    One decomposition serves all; too few items for a graph are their principal components.
    """
    scores = principal_components(items, seed=seed)
    if len(scores) < 4 * NEIGHBOURS:
        return [scores]
    depths = sorted({min(round(f * n_classes) + 2, MAX_AXES, len(scores) // 4) for f in (1, 2, 3)})
    axes = eigenmaps(nearest_neighbours(scores), depths[-1], seed)
    return [np.ascontiguousarray(axes[:, :depth]) for depth in depths]


def is_sparse(graph: Graph) -> bool:
    """Whether judgements are so few that the search for classes is worth several times the time."""
    return 2 * len(graph) < SPARSE * graph.n_items


def plant(
    points: Sequence[FloatMatrix],
    seed: int = 0,
    leaves: Sequence[int] = LEAVES,
    thorough: bool = False,
) -> Forest:
    """A tree for each of the points (N, d) and each number of leaves that N allows.

    Few items have one tree each, unless ``thorough`` (where judgements are sparse: `is_sparse`).
    """
    found = Forest(list(points), [], [])
    for layer, place in enumerate(points):
        leaves = leaves if thorough or len(place) >= FEW_ITEMS else leaves[:1]
        sizes = sorted({min(number, max(len(place) // ITEMS_A_LEAF, 2)) for number in leaves})
        for number in sizes:
            cluster = micro_clusters(place, number, seed + 31 * layer + number)
            count = np.bincount(cluster)
            centres = np.zeros((len(count), place.shape[1]))
            np.add.at(centres, cluster, place)
            found.clusters.append(cluster)
            found.trees.append(Tree.of((centres / count[:, None]).astype(np.float32)))
    return found


def lifted_start(
    graph: Graph, forest: Forest, n_classes: int, seed: int = 0, known: Begin | None = None
) -> Begin:
    """Beliefs of the items by all trees of the forest together, nearly equal in their say.

    Each tree is solved from coarse cuts of itself, then from what the other trees have found.
    What is ``known`` of most of the judgements is gone on from, in place of coarse cuts.
    Averages do better than the tree of highest evidence: single clusters lie across classes in one
    embedding and not in another. Evidence only mutes trees that are far behind.
    """
    if known is None:
        places = zip(forest.clusters, forest.trees)
        found = [_solve(graph, cluster, tree, n_classes, seed) for cluster, tree in places]
    else:
        found = [
            lift_tree(graph, one.cluster, tree, n_classes, [one.belief], one.kappa)
            for one, tree in zip(known.trees, forest.trees)
        ]
    sparse = is_sparse(graph)
    # What one tree cannot find, another may tell it; the best is improved before it tells.
    best = max(range(len(found)), key=lambda k: found[k].evidence)
    for k in [best, *(k for k in range(len(found)) if k != best)]:
        one, tree = found[k], forest.trees[k]
        rounds = IMPROVEMENTS if k == best or sparse else 1
        again = lift_tree(graph, one.cluster, tree, n_classes, _told(found, one), one.kappa, rounds)
        found[k] = max(one, again, key=lambda lifted: lifted.evidence)
    evidence = torch.tensor([one.evidence for one in found])
    first = found[int(evidence.argmax())]
    share = torch.softmax(evidence / _temper(graph), dim=0)
    belief = torch.zeros_like(first.items())
    for weight, one in zip(share.tolist(), found):
        belief += weight * in_known_order(one.items(), first.items())
    return Begin(belief, first.a, first.b, first.evidence, tuple(found))


def _temper(graph: Graph) -> float:
    """How far behind, in nats, a tree may be and still be heard: it grows as chance does."""
    return max(5.0, 1.5 * float(np.sqrt(len(graph))))


def _solve(
    graph: Graph, cluster: NDArray[np.int64], tree: Tree, n_classes: int, seed: int
) -> Lifted:
    """A tree's classes, begun from coarse cuts of itself that were lifted on their own."""
    hints = []
    for factor in CUTS:
        number = min(max(round(factor * n_classes), 2), tree.leaves)
        group = np.unique(tree.cut(number), return_inverse=True)[1].astype(np.int64)
        coarse = lift(graph, group[cluster], n_classes, seed)
        hints.append(0.9 * coarse.belief[torch.from_numpy(group)] + 0.1 / n_classes)
    label = np.minimum(tree.cut(n_classes), n_classes - 1)
    hints.append(0.9 * torch.eye(n_classes)[torch.from_numpy(label)] + 0.1 / n_classes)
    return lift_tree(graph, cluster, tree, n_classes, hints)


def _told(others: Sequence[Lifted], one: Lifted) -> list[Tensor]:
    """(M, C) what other trees say of the clusters of ``one``."""
    told = [carried(other.items(), one.cluster) for other in others if other is not one]
    return [one.belief, *told]
