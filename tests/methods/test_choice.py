"""`auto` keeps the joint objective unless a pairwise method is clearly better on held-out ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from likewise.methods import dispatch
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult
from likewise.noise import flip_judgements
from likewise.pairs import Pairs


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=240)
    items = (np.eye(3)[classes] * 4 + rng.normal(size=(240, 3))).astype(np.float32)
    pairs = flip_judgements(Pairs.from_labels(classes, per_item=40, random_state=0), 0.9, 0.1, 0)
    return Problem(items, pairs, 3, "mlp", None, 0.3)


class Oracle(nn.Module):
    """Logits that name the largest of the three features, or (blind) nothing at all."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.tensor(strength))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.strength * x


def fitted(model: nn.Module) -> FitResult:
    return FitResult("joint", model, model, None, [], best_epoch=0, score=0.0)


def test_costs_are_of_the_answers_and_lower_for_a_better_model(problem: Problem) -> None:
    good = dispatch.held_out_costs(problem, Oracle(3.0))
    blind = dispatch.held_out_costs(problem, Oracle(0.0))
    held = problem.parts[3]
    assert good.shape == (len(held),)
    share = held.n_same / len(held)
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert blind.mean() == pytest.approx(entropy, abs=0.01)  # all that a blind model can know
    assert good.mean() < blind.mean() - 0.1


@pytest.mark.parametrize(("strength", "method"), [(3.0, "joint"), (0.0, "mns")])
def test_the_joint_model_stands_unless_it_is_clearly_beaten(
    problem: Problem, strength: float, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint = fitted(Oracle(strength))
    monkeypatch.setattr(dispatch, "_noisy_joint", lambda *_: joint)
    chosen = dispatch.fit(problem, "auto", "estimate", "auto", "counts")
    assert chosen.method == method
    assert chosen.choice.startswith(f"{method}: some judgements contradict each other")


def test_too_few_held_out_judgements_compare_nothing(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(problem, held_out=0.05)
    assert len(few.parts[3]) < dispatch.FEWEST_TO_COMPARE
    monkeypatch.setattr(dispatch, "_noisy_joint", lambda *_: fitted(Oracle(0.0)))
    assert dispatch.fit(few, "auto", "estimate", "auto", "counts").method == "joint"
