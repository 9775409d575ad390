"""The chosen fit goes on with all judgements, or is begun anew where these are likelier then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from likewise.inference import fit
from likewise.inference.em import Options, State
from likewise.inference.heads.gaussian import GaussianHead
from likewise.inference.lifting.neighbours import Neighbours, nearest_neighbours
from likewise.inference.problem import JointProblem, make_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.channel_selection import Comparison
from likewise.inference.selection.final_fit import begun_anew, criterion
from likewise.inference.selection.start_selection import as_start, em_from
from likewise.inference.selection.trials import Trial
from likewise.metrics import matched_accuracy
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, RateChannel
from likewise.pairs import Pairs

N_CLASSES = 3


@pytest.fixture
def stuck() -> tuple[JointProblem, np.ndarray, Trial, Channel]:
    """Three classes, and a fit that has made two of them one and cut the third in two."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(120) % N_CLASSES)
    items = 0.8 * rng.normal(size=(N_CLASSES, 40))[y] + rng.normal(size=(120, 40)) + 3
    left = rng.integers(0, 120, 1500)
    right = (left + rng.integers(1, 120, 1500)) % 120
    same = (y[left] == y[right]) ^ (rng.random(1500) < 0.15)
    who = [f"p{k // 30}" for k in range(1500)]
    pairs = Pairs(left, right, same, who, n_items=120)
    about = N_CLASSES, None, "estimate", rng, "cpu", Options(rounds=5)
    problem = make_problem(items.astype(np.float32), pairs, *about)
    assert problem.features is not None
    head = GaussianHead(problem.features)
    channel = AnnotatorChannel.from_rates(0.8, 0.2, problem.n_annotators)
    wrong = np.where(y == 2, rng.integers(1, 3, 120), 0)
    belief = torch.from_numpy(0.8 * np.eye(N_CLASSES)[wrong] + 0.2 / N_CLASSES).float()
    start = as_start(problem, belief, channel, confusions=False)
    state = em_from(replace(problem, options=Options(rounds=1)), head, start)
    return problem, y, Trial(state, head, torch.zeros(0), start), channel


def right(state: State, y: np.ndarray) -> float:
    return matched_accuracy(state.targets.classes.argmax(1).numpy(), y)


@pytest.mark.usefixtures("few_draws")
def test_a_fit_that_is_stuck_gives_way_to_one_under_which_judgements_are_likelier(stuck) -> None:
    problem, y, chosen, channel = stuck
    assert problem.features is not None
    near = nearest_neighbours(problem.features.points.numpy())
    found = begun_anew(problem, channel, chosen, chosen.state, near)
    assert right(chosen.state, y) < 0.9 < right(found, y)
    assert criterion(found, problem.graph) > criterion(chosen.state, problem.graph)
    again = begun_anew(problem, channel, chosen, found, near)
    assert criterion(again, problem.graph) >= criterion(found, problem.graph)


class Suspicious(Neighbours):
    """Takes whatever other classes for mistakes."""

    def prefers(self, one: torch.Tensor, other: torch.Tensor, perceived: torch.Tensor) -> bool:
        return True


@pytest.mark.usefixtures("few_draws")
def test_a_likelier_fit_that_may_have_learned_mistakes_is_not_taken(stuck) -> None:
    problem, _, chosen, channel = stuck
    near = Suspicious(np.zeros((120, 1), int), np.zeros((120, 1)))
    assert begun_anew(problem, channel, chosen, chosen.state, near) is chosen.state


@pytest.mark.parametrize(("by", "taken"), [(1.0, AnnotatorChannel), (-1.0, RateChannel)])
def test_a_channel_that_leads_to_a_less_likely_fit_is_not_taken(
    stuck, monkeypatch, by: float, taken: type
) -> None:
    """Held-out answers, asked from given beliefs, prefer two rates for all; what they lead to is
    less likely here, or more, by so many nats."""
    problem, _, chosen, _ = stuck
    rates = RateChannel(0.8, 0.2)

    def compared(*_: object, **__: object) -> Comparison:
        return Comparison("judgement", rates, {"judgement": -0.4, "annotator": -0.5})

    def worse(problem: JointProblem, head: object, start: tuple) -> State:
        state = replace(chosen.state, channel=start[1])
        less = replace(state.posterior, evidence=state.posterior.evidence - by)
        return replace(state, posterior=less)

    monkeypatch.setattr(fit, "compare_channels", compared)
    monkeypatch.setattr(fit, "fit_with", worse)
    kept = fit._fit_best_channel(problem, chosen.state, chosen.head, {})
    assert isinstance(kept.state.channel, taken)


def test_rates_are_paid_for(stuck) -> None:
    problem, _, chosen, _ = stuck
    graph: Graph = problem.graph
    labels = chosen.state.targets.perceived.argmax(1).numpy()
    sides = labels[graph.left.numpy()] == labels[graph.right.numpy()]
    cost = sum(0.5 * np.log(1 + (sides == side).sum()) for side in (True, False))
    expected = chosen.state.posterior.evidence - cost
    assert criterion(chosen.state, graph) == pytest.approx(expected)
