"""A joint fit is as sure as held-out judgements show it to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likewise import noise
from likewise.methods.joint import joint_program
from likewise.methods.problem import Problem
from likewise.metrics import matched_accuracy
from likewise.nn.model import logits_of
from likewise.nn.networks import MLP, temperature_scaled
from likewise.pairs import Pairs
from likewise.training.recipe import Recipe
from likewise.training.scheduler import run_program


def test_logits_are_divided_and_the_given_model_is_left_alone() -> None:
    model, few = MLP(3, 4), torch.randn(5, 3)
    before = model(few)
    torch.testing.assert_close(temperature_scaled(model, 0.5, lambda m: m(few))(few), 2 * before)
    torch.testing.assert_close(model(few), before)
    assert temperature_scaled(model, 1.0, lambda m: m(few)) is model


def test_a_model_that_ends_otherwise_is_not_touched() -> None:
    few = torch.randn(5, 3)
    for model in (nn.Sequential(nn.Linear(3, 4), nn.Softplus()), nn.Identity()):
        assert temperature_scaled(model, 0.5, lambda m: m(few)) is model


def test_a_mixed_joint_fit_is_calibrated() -> None:
    """Mixing items leaves a network too unsure; its mean confidence must come near its accuracy."""
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=1500)
    items = (np.eye(4)[classes] * 3 + rng.normal(size=(1500, 4))).astype(np.float32)
    z = noise.corrupt_labels(classes, noise.symmetric(4, 0.2), 0)
    recipe = Recipe(epochs=30, batch_size=64, lr=0.01, ema_decay=0.9, mixup=1.0)
    problem = Problem(items[:1000], Pairs.from_labels(z[:1000]), 4, "mlp", recipe, 0.3)
    fitted = run_program(joint_program(problem))
    sure = []
    for model in (fitted.model, fitted.last_model):  # the second is not brought to a temperature
        p = logits_of(model, items[1000:], problem.device).softmax(dim=1)
        sure.append(float(p.max(dim=1).values.mean()))
    predicted = logits_of(fitted.model, items[1000:], problem.device).argmax(dim=1).numpy()
    assert sure[0] > sure[1] + 0.02
    assert sure[0] == pytest.approx(matched_accuracy(predicted, classes[1000:]), abs=0.04)
