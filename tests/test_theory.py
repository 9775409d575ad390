"""Theorem 1 of the paper, term by term."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from likewise.errors import InputError
from likewise.nn.networks import MLP, LeNet, build_network
from likewise.theory import generalisation_bound

OPTIONS = {"n_judgements": 10_000, "n_classes": 3, "input_norm": 2.0, "loss_bound": 5.0}


def two_layers() -> nn.Sequential:
    first, second = nn.Linear(2, 2), nn.Linear(2, 3)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))  # norm 5
        second.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]))  # norm 3
    return nn.Sequential(first, nn.ReLU(), second)


def test_the_two_terms():
    bound = generalisation_bound(two_layers(), **OPTIONS, delta=0.1)
    assert bound.frobenius_norms == pytest.approx((5.0, 3.0))
    complexity = 2 * 2.0 * 3 * (math.sqrt(2 * 2 * math.log(2)) + 1) * 15 / math.sqrt(10_000)
    confidence = 5.0 * math.sqrt(math.log(10) / (2 * 10_000))
    assert bound.complexity == pytest.approx(complexity)
    assert bound.confidence == pytest.approx(confidence)
    assert bound.value == pytest.approx(complexity + confidence)


def test_delta_is_a_twentieth_unless_told():
    default = generalisation_bound(two_layers(), **OPTIONS)
    assert default == generalisation_bound(two_layers(), **OPTIONS, delta=0.05)


def test_the_bound_falls_with_the_root_of_the_judgements():
    few = generalisation_bound(two_layers(), **OPTIONS)
    many = generalisation_bound(two_layers(), **{**OPTIONS, "n_judgements": 40_000})
    assert many.value == pytest.approx(few.value / 2)


def test_biases_are_left_out():
    plain, biased = two_layers(), two_layers()
    with torch.no_grad():
        biased[0].bias += 100
    assert generalisation_bound(plain, **OPTIONS) == generalisation_bound(biased, **OPTIONS)


@pytest.mark.parametrize("network", [MLP(4, 3), LeNet(1, 28, 28, 3)])
def test_plain_networks_have_a_bound(network):
    assert generalisation_bound(network, **OPTIONS).value > 0


def test_convolutions_count_by_their_kernels():
    network = nn.Sequential(nn.Conv2d(1, 1, 2, bias=False), nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[0].weight.fill_(1.0)
    assert generalisation_bound(network, **OPTIONS).frobenius_norms[0] == pytest.approx(2.0)


def test_networks_outside_the_assumptions_are_refused():
    with pytest.raises(InputError, match=r"BatchNorm is outside its assumptions"):
        generalisation_bound(build_network("resnet32", (3, 8, 8), 3), **OPTIONS)
    with pytest.raises(InputError, match=r"Sigmoid"):
        generalisation_bound(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()), **OPTIONS)
    with pytest.raises(InputError, match=r"no linear layer"):
        generalisation_bound(nn.Sequential(nn.ReLU()), **OPTIONS)


@pytest.mark.parametrize(
    "wrong",
    [{"n_judgements": 0}, {"delta": 0.0}, {"delta": 1.0}, {"input_norm": -1}, {"loss_bound": -1}],
)
def test_options_that_cannot_be(wrong):
    with pytest.raises(InputError, match=r"^the bound needs"):
        generalisation_bound(two_layers(), **{**OPTIONS, **wrong})
