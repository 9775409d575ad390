"""Compiled networks compute what they compute, and nothing else of a run knows of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.methods.joint import joint_program
from likewise.methods.problem import Problem
from likewise.nn.bf16_weights import Bf16Weights
from likewise.nn.compiled import CompiledModel
from likewise.nn.networks import ResNet
from likewise.noise import symmetric
from likewise.pairs import Pairs
from likewise.training.checkpoints import Checkpoints
from likewise.training.objectives.pairwise import CompletePairwise, PairwiseLoss
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from tiny import flat, pictures

RECIPE = Recipe(
    epochs=3, batch_size=32, optimizer="sgd", lr=0.02, ema_decay=0.9, shift=1, flip=True, mixup=0.5,
    mean_teacher_from=0.4, augment_strength=0.3,
)  # fmt: skip


@pytest.fixture(autouse=True)
def traced_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced and differentiated as for compiling, then run as it is: no compiler is needed."""
    monkeypatch.setattr("likewise.nn.compiled.BACKEND", "aot_eager")
    torch._dynamo.reset()


@pytest.mark.parametrize("half", [False, True])
def test_the_same_outputs_gradients_and_statistics(half: bool) -> None:
    x = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    outcomes = []
    for compile in (False, True):
        torch.manual_seed(0)
        model = ResNet(3, 5, (8, 16), (2, 1)).train()
        forward = model
        if half:
            forward = Bf16Weights(model, compile)
        elif compile:
            forward = CompiledModel(model)
        with torch.autocast("cpu", torch.bfloat16, enabled=half, cache_enabled=False):
            out = forward(x)
        out.float().square().sum().backward()
        gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
        outcomes.append((out.float(), gradients, flat(model)))
    tolerance = 3e-2 if half else 1e-4
    for plain, made in zip(*outcomes):
        scale = plain.abs().mean()
        assert (plain - made).abs().mean() < tolerance * scale


def new_run(compile: bool) -> TrainingRun:
    images, y = pictures(n=96, size=16)
    recipe = RECIPE.with_(compile=compile)
    return next(joint_program(Problem(images, Pairs.from_labels(y), 2, "lenet", recipe)))


def test_a_compiled_run_learns_the_same_and_goes_on_from_its_checkpoint(tmp_path) -> None:
    plain, whole = new_run(False), new_run(True)
    plain.train()
    whole.train()
    torch.testing.assert_close(flat(whole.select()), flat(plain.select()), rtol=1e-3, atol=1e-4)
    assert whole.model.state_dict().keys() == plain.model.state_dict().keys()
    np.testing.assert_allclose(
        [row["held_out"] for row in whole.history],
        [row["held_out"] for row in plain.history],
        rtol=1e-3,
    )
    first = new_run(True)
    first.name, first.until = "run", 2
    first.train()
    Checkpoints(tmp_path).save(first)
    resumed = new_run(True)
    resumed.name = "run"
    assert Checkpoints(tmp_path).resume(resumed)
    resumed.train()
    torch.testing.assert_close(flat(resumed.select(best=False)), flat(whole.select(best=False)))


def test_runs_share_what_was_compiled() -> None:
    """One after the other or side by side: the second model of a kind costs no second minute."""
    from torch._dynamo.utils import counters

    new_run(True).train()
    counters.clear()
    new_run(True).train()
    assert counters["stats"]["unique_graphs"] == 0


@pytest.mark.parametrize("kind", ["mcl", "mns", "kcl"])
def test_the_compiled_loss_over_all_pairs(kind: str) -> None:
    """Also of a second run, which shares what was compiled for the first."""
    torch._dynamo.utils.counters.clear()
    generator = torch.Generator().manual_seed(0)
    transition = torch.as_tensor(symmetric(4, 0.3), dtype=torch.float32) if kind == "mns" else None
    pairs = Pairs.from_labels(np.arange(40) % 3)
    for _ in range(2):
        costs, slopes = [], []
        logits = torch.randn(16, 4, generator=generator)
        rows = torch.randperm(40, generator=generator)[:16]
        for compile in (False, True):
            loss = PairwiseLoss(kind, transition, compile=compile)
            objective = CompletePairwise(loss, pairs, pairs, torch.device("cpu"))
            leaf = logits.clone().requires_grad_()
            cost = objective.loss(leaf, rows)
            costs.append(cost.detach())
            slopes += torch.autograd.grad(cost, leaf)
        torch.testing.assert_close(*costs)
        torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
