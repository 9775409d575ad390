"""The tree against a sum over all classes of all nodes, written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from likewise.inference.lifting.hierarchy import Tree


@pytest.mark.parametrize("seed", [0, 1])
def test_marginals_and_log_z_are_those_of_the_sum_over_all_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = Tree.of(rng.normal(size=(4, 2)).astype(np.float32))
    n_classes, size = 3, 4
    field = torch.from_numpy(rng.normal(size=(2, size, n_classes)).astype(np.float32))
    keep = tree.keep(torch.tensor([1.0, 5.0]))
    found, log_z = tree.marginals(field, keep)
    parent = {}
    for i in range(size - 1):
        parent[int(tree.left[i])] = parent[int(tree.right[i])] = size + i
    for run in range(2):
        total, marginal = 0.0, np.zeros((size, n_classes))
        for classes in product(range(n_classes), repeat=2 * size - 1):
            p = 1 / n_classes
            for node, above in parent.items():
                share = float(keep[run, node])
                p *= share * (classes[node] == classes[above]) + (1 - share) / n_classes
            p *= float(np.exp(sum(float(field[run, m, classes[m]]) for m in range(size))))
            total += p
            for m in range(size):
                marginal[m, classes[m]] += p
        assert float(log_z[run]) == pytest.approx(np.log(total), abs=1e-4)
        np.testing.assert_allclose(found[run].numpy(), marginal / total, atol=1e-4)


def test_near_leaves_share_a_class_and_far_ones_need_not() -> None:
    points = np.concatenate([np.zeros((5, 1)), np.full((5, 1), 9.0)])
    points += np.linspace(0, 0.1, 10)[:, None]
    tree = Tree.of(points.astype(np.float32))
    field = torch.zeros(1, 10, 2)
    field[0, 0, 0] = 4.0  # one leaf of the first five is told its class
    belief, _ = tree.marginals(field, tree.keep(torch.tensor([2.0])))
    assert float(belief[0, 1:5, 0].min()) > 0.7
    assert abs(float(belief[0, 5:, 0].max()) - 0.5) < float(belief[0, 1:5, 0].min()) - 0.5
