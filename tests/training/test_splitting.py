"""Merged classes are found by the judgements and split into outputs that are free."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from likewise.methods.pairwise import pairwise_program
from likewise.methods.problem import Problem
from likewise.metrics import matched_accuracy
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.training.objectives.pairwise import (
    CompletePairwise,
    ListedPairwise,
    Objective,
    PairwiseLoss,
)
from likewise.training.recipe import Recipe
from likewise.training.splitting import split_merged_outputs

CPU = torch.device("cpu")
C = 8
CENTRES = 6 * np.eye(C, C + 1)


def made(noise: float = 0.4, n: int = 2400) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """(items, true classes, perceived classes) of eight round clouds."""
    rng = np.random.default_rng(0)
    y = rng.integers(C, size=n)
    x = CENTRES[y] + rng.normal(size=(n, C + 1))
    return torch.tensor(x, dtype=torch.float32), y, corrupt_labels(y, symmetric(C, noise), 1)


def objective(z: np.ndarray, per_item: int | None) -> Objective:
    pairs = Pairs.from_labels(z, per_item=per_item, random_state=0)
    if per_item is None:
        return CompletePairwise(PairwiseLoss("mcl"), pairs, pairs, CPU)
    return ListedPairwise(PairwiseLoss("mcl"), pairs, pairs, CPU, batch=64)


def model(rows: list[list[float]]) -> nn.Linear:
    """A linear model whose outputs are nearest to these points."""
    layer = nn.Linear(C + 1, len(rows))
    points = torch.tensor(rows)
    with torch.no_grad():
        layer.weight.copy_(points)
        layer.bias.copy_(-points.square().sum(dim=1) / 2)
    return layer


def between(*classes: int) -> list[float]:
    return CENTRES[list(classes)].mean(axis=0).astype(np.float32).tolist()


NOWHERE = [0.0] * C + [-90.0]
ASIDE = (CENTRES[3] + 0.5 * np.eye(C + 1)[C]).tolist()  # halves a class with the next
OTHER_SIDE = (CENTRES[3] - 0.5 * np.eye(C + 1)[C]).tolist()
REST = [between(k) for k in range(4, C)]


@pytest.mark.parametrize("per_item", [None, 60])
@pytest.mark.parametrize(
    "rows",
    [
        [between(0, 1), NOWHERE, between(2), between(3), *REST],
        [between(0, 1), between(2), ASIDE, OTHER_SIDE, *REST],
        [NOWHERE, between(0, 1), NOWHERE, between(2, 3), *REST],
    ],
    ids=["an empty output", "a halved class", "two of each"],
)
def test_a_merged_class_gets_a_free_output(rows, per_item):
    x, y, z = made()
    layer = model(rows)
    before = matched_accuracy(y, layer(x).argmax(dim=1).numpy())
    merged = sum(row in rows for row in (between(0, 1), between(2, 3)))
    assert split_merged_outputs(layer, x, objective(z, per_item), seed=0) == merged
    assert before < 0.9
    assert matched_accuracy(y, layer(x).argmax(dim=1).numpy()) > 0.95


@pytest.mark.parametrize("per_item", [None, 60])
def test_nothing_is_done_where_every_class_has_its_output(per_item):
    x, _, z = made()
    layer = model([between(k) for k in range(C)])
    before = layer.weight.clone()
    assert split_merged_outputs(layer, x, objective(z, per_item), seed=0) == 0
    assert torch.equal(layer.weight, before)


def test_a_spare_output_does_not_split_a_single_class():
    x, _, z = made()
    layer = model([*(between(k) for k in range(C)), NOWHERE])
    assert split_merged_outputs(layer, x, objective(z, None), seed=0) == 0


def test_a_network_that_has_learned_little_is_left_to_learn():
    x, _, z = made()
    pairs = [between(0, 1), between(2, 3), between(4, 5), between(6, 7)]
    layer = model([*pairs, NOWHERE, NOWHERE, NOWHERE, NOWHERE])
    assert split_merged_outputs(layer, x, objective(z, None), seed=0) == 0


def test_models_that_do_not_end_in_a_linear_layer_are_left_alone():
    x, _, z = made()
    network = nn.Sequential(
        model([between(0, 1), NOWHERE, between(2), between(3), *REST]), nn.ReLU()
    )
    assert split_merged_outputs(network, x, objective(z, None), seed=0) == 0


@pytest.mark.parametrize("per_item", [None, 30])
def test_agreement_is_the_sum_over_pairs(per_item):
    _, _, z = made(n=60)
    asked_of = objective(z, per_item)
    rng = np.random.default_rng(1)
    items, features = np.sort(rng.permutation(60)[:25]), rng.normal(size=(25, 3))
    row = dict(zip(items.tolist(), features))
    listed = Pairs.from_labels(z, per_item=per_item, random_state=0).explicit()
    same, asked = np.zeros((3, 3)), np.zeros((3, 3))
    for left, right, answer in zip(listed.left, listed.right, listed.same):
        if left in row and right in row:
            both = np.outer(row[left], row[right]) + np.outer(row[right], row[left])
            asked += both
            same += both * answer
    found = asked_of.agreement(torch.from_numpy(items), torch.from_numpy(features))
    assert found is not None
    np.testing.assert_allclose(found[0], same, atol=1e-8)
    np.testing.assert_allclose(found[1], asked, atol=1e-8)


def test_a_fit_with_revivals_forgets_the_epochs_that_lacked_a_class():
    x, y, z = made()
    recipe = Recipe(epochs=4, batch_size=64, lr=1e-2, split_merged_at=(0.5,))
    items = x.numpy()
    problem = Problem(items, Pairs.from_labels(z), C, network="linear", recipe=recipe)
    program = pairwise_program(problem, "mcl")
    run = next(program)
    assert run.until == 2
    collapsed = model([between(0, 1), NOWHERE, between(2), between(3), *REST])
    run.train()
    with torch.no_grad():  # as if training had gone astray
        scale, mean = run.model.inputs.scale, run.model.inputs.mean
        layer = [m for m in run.model.modules() if isinstance(m, nn.Linear)][-1]
        layer.weight.copy_(collapsed.weight / scale)
        layer.bias.copy_(collapsed.bias + collapsed.weight @ mean)
    run = program.send(run)
    assert run.until is None
    assert run.best.score == torch.inf
    run.train()
    with pytest.raises(StopIteration) as end:
        program.send(run)
    fitted = end.value.value
    assert fitted.best_epoch >= 2
    predicted = fitted.model(torch.from_numpy(items)).argmax(dim=1).numpy()
    assert matched_accuracy(y, predicted) > 0.95
