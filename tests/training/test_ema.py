"""Averaged weights, and the statistics of batch normalisation that go with them."""

from __future__ import annotations

import copy

import torch
from torch import nn

from likewise.methods.joint import joint_program
from likewise.methods.problem import Problem
from likewise.nn.networks import BatchNorm
from likewise.pairs import Pairs
from likewise.training.ema import averaged_state, ema_update_, update_bn
from likewise.training.recipe import Recipe
from tiny import pictures


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), BatchNorm(4), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(4, 3, 3),
        nn.BatchNorm2d(3, momentum=0.3),
    )  # fmt: skip


def test_statistics_are_those_of_the_batches():
    """Against means and variances of each layer's inputs, layer by layer; dropout stays off."""
    model = network().eval()
    batches = [torch.randn(20, 1, 8, 8) * scale + 3 for scale in (1.0, 4.0)]
    with torch.no_grad():
        first = [model[0](batch) for batch in batches]
        norm = nn.BatchNorm2d(4, affine=False)
        second = [model[4](norm(x).relu()) for x in first]
    update_bn(model, batches)
    for layer, seen in ((model[1], first), (model[5], second)):
        mean = torch.stack([x.mean(dim=(0, 2, 3)) for x in seen]).mean(dim=0)
        spread = torch.stack([x.var(dim=(0, 2, 3)) for x in seen]).mean(dim=0)
        torch.testing.assert_close(layer.running_mean, mean)
        torch.testing.assert_close(layer.running_var, spread)
    assert (model[1].momentum, model[5].momentum) == (0.1, 0.3)
    assert not any(module.training for module in model.modules())


def test_the_average_leaves_statistics_alone():
    learned, averaged = network(), network()
    with torch.no_grad():
        for p in learned.parameters():
            p.add_(1.0)
        learned[1].running_mean.fill_(7.0)
    before = copy.deepcopy(averaged)
    ema_update_(averaged_state(averaged), averaged_state(learned), torch.tensor(0.25))
    for now, then in zip(averaged.parameters(), before.parameters()):
        torch.testing.assert_close(now, then + 0.25)
    assert not averaged[1].running_mean.any()


def test_a_run_scores_its_average_with_statistics_of_plain_items():
    """Not of mixed ones, whose brightness varies less, nor of the weights of a while ago."""
    images, y = pictures(n=120)
    recipe = Recipe(
        epochs=3, batch_size=32, optimizer="sgd", lr=0.05, ema_decay=0.99, mixup=2.0, shift=1
    )
    body = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)
    )
    run = next(joint_program(Problem(images, Pairs.from_labels(y), 2, body, recipe)))
    run.train()
    convolution, norm = run.ema.network[0], run.ema.network[1]
    with torch.no_grad():
        seen = convolution(run.ema.inputs(run.batches.source.items))
    torch.testing.assert_close(norm.running_mean, seen.mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var, seen.var(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5)
