"""Rows as the paper wrote them: its stopping rule, its starts, the networks of its base code."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from likewise.experiments.cells import Cell
from likewise.experiments.paper import reported
from likewise.experiments.problem import Truth
from likewise.experiments.programs import chain_program
from likewise.experiments.settings import load_settings
from likewise.methods.problem import Problem
from likewise.nn.networks import build_network
from likewise.training.objectives.pairwise import PairwiseLoss
from likewise.training.run import TrainingRun
from likewise.training.scheduler import run_program
from tiny import flat, tiny_problem, watched


def test_the_error_is_that_of_the_best_matching() -> None:
    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(size=(60, 4)))
    perceived = torch.tensor(rng.integers(4, size=60))
    predicted = logits.argmax(dim=1).numpy()
    errors = [
        float(np.mean(np.array(order)[predicted] != perceived.numpy()))
        for order in itertools.permutations(range(4))
    ]
    error = PairwiseLoss("mcl").classification_error(logits, perceived)
    assert float(error) == pytest.approx(min(errors))


def test_the_error_is_of_the_perceived_class_not_of_the_true_one() -> None:
    """T swaps two classes for a third: behind it the likeliest perceived class is another."""
    T = torch.tensor([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    logits = torch.tensor([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    perceived = torch.tensor([0, 1, 0])  # the first and the last are taken for one
    assert float(PairwiseLoss("mns", T).classification_error(logits, perceived)) == 0
    assert float(PairwiseLoss("mcl").classification_error(logits, perceived)) > 0


@pytest.mark.parametrize(
    ("name", "shape", "linear"), [("lenet_l2c", (1, 28, 28), 2), ("vgg8_l2c", (3, 32, 32), 1)]
)
def test_the_base_codes_networks(name: str, shape: tuple[int, int, int], linear: int) -> None:
    network = build_network(name, shape, 7)
    kinds = [type(layer) for layer in network.modules()]
    pools = {"lenet_l2c": 2, "vgg8_l2c": 5}[name]
    assert kinds.count(nn.MaxPool2d) == kinds.count(nn.Conv2d) == pools
    assert kinds.count(nn.Linear) == linear
    assert kinds.count(nn.BatchNorm2d) + kinds.count(nn.BatchNorm1d) == pools + linear - 1
    assert network(torch.zeros(2, *shape)).shape == (2, 7)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_of_ours_is_in_the_papers_rows(number: int) -> None:
    settings = load_settings(f"paper{number}")
    ours = load_settings(f"table{number}")
    recipe = settings.recipe("mns_true")
    assert recipe.self_pairs
    assert recipe.stop_by == "error"
    assert settings.estimator == "argmax"
    assert not recipe.split_merged_at
    assert not recipe.balance
    assert not recipe.ema_decay
    assert recipe.epochs == ours.recipe("mcl").epochs == {1: 30, 2: 120, 3: 200}[number]


def begun(as_published: bool) -> dict[str, tuple[TrainingRun, torch.Tensor]]:
    """The runs of a chain, by cell, with the weights that each began from."""

    problem, y = tiny_problem(load_settings("paper1").training.with_(epochs=12), noise=0.1)
    settings = dataclasses.replace(
        load_settings("paper1"), as_published=as_published, training=problem.recipe
    )
    truth = Truth(torch.from_numpy(problem.items), y, np.eye(3), np.arange(3))
    methods = ("mcl", "mns_estimated", "mns_true")
    chain = [Cell("paper1", "x", "mlp", "symmetric", 0.2, method, 0) for method in methods]
    found: list[tuple[TrainingRun, torch.Tensor]] = []

    def problems(cell: Cell) -> tuple[Problem, Truth]:
        return problem, truth

    program = chain_program(chain, problems, settings, lambda outcome: None)  # type: ignore[arg-type]
    run_program(watched(program, lambda run: found.append((run, flat(run.model).clone()))))
    return dict(zip(methods, found, strict=True))


def test_mns_with_t_begins_anew_and_stage_two_where_stage_one_ended() -> None:
    runs = begun(as_published=True)
    first, weights = runs["mcl"]
    assert torch.equal(runs["mns_true"][1], weights)  # the same seed, untrained
    assert torch.equal(runs["mns_estimated"][1], flat(first.select()))


def test_ours_goes_on_from_stage_one() -> None:
    runs = begun(as_published=False)
    assert not torch.equal(runs["mns_true"][1], runs["mcl"][1])


def test_the_papers_figures_stand_beside_its_own_rows() -> None:

    assert reported("paper2", "mcl", 0.2) == reported("table2", "mcl", 0.2) is not None
