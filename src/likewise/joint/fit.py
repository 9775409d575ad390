"""`fit_joint`: from items and judgements to a classifier, by what the judgements say together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from likewise.annotators import AnnotatorChannel
from likewise.batches import InputLayer, check_items, network_shape
from likewise.channels import Channel, ConfusionChannel, ExactChannel, RateChannel
from likewise.errors import InputError
from likewise.graph import Graph, contract
from likewise.joint.choice import ENOUGH_TESTS, Comparison, candidates, compare_channels, redundant
from likewise.joint.em import Options, State, first_targets, run_em
from likewise.joint.heads import Head, NetworkHead, log_perceived
from likewise.joint.people import annotator_table
from likewise.joint.rates import moment_rates
from likewise.joint.starts import (
    MAX_SPECTRAL_ITEMS,
    component_start,
    pairwise_start,
    spectral_embedding,
    spectral_start,
)
from likewise.messages import infer
from likewise.networks import build_network
from likewise.noise import check_transition
from likewise.pairs import Pairs

Noise = Literal["auto", "class", "judgement", "both", "annotator", "confusion"]
NOISES = ("auto", "class", "judgement", "both", "annotator", "confusion")
TRIAL_ROUNDS = 2


@dataclass(frozen=True)
class JointResult:
    """What `fit_joint` found.

    ``module``: items to (n, C) logits of g; ``transition`` (C, C); ``channel``; ``posterior``
    (N, C) of z and ``classes`` (N, C) of y; ``annotators``: a table by columns, most reliable
    first; ``history``: a row a round; ``choice``: which noise model, and why; ``evidence``: the
    figures behind it.
    """

    module: nn.Module
    transition: np.ndarray
    channel: Channel
    posterior: np.ndarray
    classes: np.ndarray
    annotators: dict[str, list[Any]]
    history: list[dict[str, Any]]
    choice: str
    evidence: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Problem:
    """The data of one fit, on one device."""

    pairs: Pairs
    graph: Graph
    items: Tensor
    build: Callable[[int], nn.Module]
    n_classes: int
    options: Options
    rng: np.random.Generator
    generator: torch.Generator

    @property
    def n_annotators(self) -> int:
        names = self.pairs.annotator_names
        return 0 if names is None else len(names)

    def head(self) -> Head:
        epochs, final = self.options.epochs, self.options.final_epochs
        return NetworkHead(self.items, self.build, epochs=epochs, final_epochs=final)


def fit_joint(
    X: ArrayLike,
    pairs: Pairs,
    n_classes: int,
    *,
    network: str | nn.Module | None = None,
    noise: Noise = "auto",
    transition: str | ArrayLike | None = "estimate",
    random_state: int | np.random.Generator | None = None,
    device: str | torch.device = "cpu",
    options: Options | None = None,
) -> JointResult:
    """Fit a classifier to judgements by their joint likelihood; nothing but them is used.

    ``transition``: "estimate", a (C, C) array, or None for no class flips. ``noise="auto"``
    chooses the channel by consistency and by held-out judgement likelihood, and says why.
    """
    if noise not in NOISES:
        raise InputError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}.")
    problem = _problem(X, pairs, n_classes, network, transition, random_state, device, options)
    if noise == "annotator" and problem.n_annotators == 0:
        raise InputError("noise='annotator' needs judgements with an annotator column.")
    if noise == "auto":
        state, choice, evidence = _fit_auto(problem)
    else:
        state = _fit_kind(problem, noise)
        choice, evidence = f"{noise}: as asked", {}
    module = problem.head().finish(state.targets, state.transition, problem.generator)
    names = pairs.annotator_names
    table = {} if names is None else annotator_table(problem.graph, state.targets.classes, names)
    return JointResult(
        module,
        state.transition.cpu().numpy(),
        state.channel,
        state.targets.perceived.cpu().numpy(),
        state.targets.classes.cpu().numpy(),
        table,
        state.history,
        choice,
        evidence | {"evidence": state.evidence},
    )


def _problem(
    X: ArrayLike,
    pairs: Pairs,
    n_classes: int,
    network: str | nn.Module | None,
    transition: str | ArrayLike | None,
    random_state: int | np.random.Generator | None,
    device: str | torch.device,
    options: Options | None,
) -> _Problem:
    items = check_items(X)
    if len(items) < pairs.n_items:
        raise InputError(
            f"a judgement names item {pairs.n_items - 1}, but there are only {len(items)} items."
        )
    if n_classes < 2:
        raise InputError(f"n_classes must be at least 2, but is {n_classes}.")
    if not len(pairs):
        raise InputError("there are no judgements to learn from.")
    rng = np.random.default_rng(random_state)
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    settings = options or Options()
    if not isinstance(transition, str):
        fixed = 0.995 * np.eye(n_classes) + 0.005 / n_classes
        if transition is not None:
            fixed = check_transition(transition, n_classes)
        settings = replace(settings, transition=torch.as_tensor(fixed))
    elif transition != "estimate":
        raise InputError(f"transition must be 'estimate', an array or None, not {transition!r}.")
    shape, scaling = network_shape(items), InputLayer.fit(items)

    def build(seed: int) -> nn.Module:
        scale = InputLayer(scaling.mean.clone(), scaling.scale.clone(), scaling.images)
        return nn.Sequential(scale, build_network(network, shape, n_classes, seed))

    graph = Graph.from_pairs(pairs, device)
    graph = replace(graph, n_items=len(items))
    tensor = torch.as_tensor(items).to(device)
    return _Problem(pairs, graph, tensor, build, n_classes, settings, rng, generator)


# -- one noise model ----------------------------------------------------------------------------


def _fit_kind(problem: _Problem, kind: str) -> State:
    if kind == "class":
        return _fit_exact(problem)
    if kind == "judgement" and problem.options.transition is None:
        n_classes = problem.n_classes
        still = 0.995 * torch.eye(n_classes, dtype=torch.float64) + 0.005 / n_classes
        problem = replace(problem, options=replace(problem.options, transition=still))
    moments = moment_rates(problem.pairs.explicit(), problem.n_classes, problem.rng)
    channel: Channel = RateChannel(moments.a, moments.b)
    if kind == "annotator":
        channel = AnnotatorChannel.from_rates(moments.a, moments.b, problem.n_annotators)
    if kind == "confusion":
        start = _noisy_start(problem, channel)
        rates = start.channel
        assert isinstance(rates, RateChannel)
        confusion = ConfusionChannel.from_rates(rates.a, rates.b, problem.n_classes)
        return _continue(problem, start, confusion)
    return _continue(problem, _noisy_start(problem, channel))


def _fit_exact(problem: _Problem) -> State:
    label = component_start(contract(problem.graph), problem.n_classes)
    named = label >= 0
    guess = torch.full(
        (problem.graph.n_items, problem.n_classes), 1 / problem.n_classes, device=label.device
    )
    guess[named] = torch.eye(problem.n_classes, device=label.device)[label[named]]
    start = first_targets(guess, named.float())
    return run_em(
        problem.graph,
        problem.head(),
        ExactChannel(),
        start,
        problem.options,
        problem.generator,
    )


def _noisy_start(problem: _Problem, channel: Channel) -> State:
    """The better, by evidence after a few rounds, of the starts that stand a chance."""
    trial = replace(problem.options, rounds=TRIAL_ROUNDS)
    states = []
    for start in _promising_starts(problem):
        perceived, refitted = start(problem, channel)
        states.append(
            run_em(
                problem.graph,
                problem.head(),
                refitted,
                first_targets(perceived),
                trial,
                problem.generator,
            )
        )
    return max(states, key=lambda state: state.evidence)


Start = Callable[[_Problem, Channel], tuple[Tensor, Channel]]


def _promising_starts(problem: _Problem) -> list[Start]:
    """The graph alone where its spectrum stands out, the features where it does not, or both."""
    graph, wanted = problem.graph, problem.n_classes - 1
    if graph.n_items > MAX_SPECTRAL_ITEMS or graph.n_items < 3 * problem.n_classes:
        return [_from_network]
    share = problem.pairs.n_same / len(problem.pairs)
    edge = 2 * np.sqrt(2 * len(graph) / graph.n_items * share * (1 - share))
    values, _ = spectral_embedding(graph, wanted)
    if values[-1] > 1.2 * edge:
        return [_from_graph]
    if (values > edge).sum() < wanted / 2:
        return [_from_network]
    return [_from_graph, _from_network]


def _from_graph(problem: _Problem, channel: Channel) -> tuple[Tensor, Channel]:
    seed = int(problem.rng.integers(2**31))
    posterior, channel = spectral_start(problem.graph, channel, problem.n_classes, seed)
    return posterior.belief, channel


def _from_network(problem: _Problem, channel: Channel) -> tuple[Tensor, Channel]:
    log_g, channel = pairwise_start(
        problem.graph,
        problem.items,
        problem.build,
        channel,
        problem.n_classes,
        problem.generator,
        problem.options.start_steps,
    )
    return infer(log_g, problem.graph, channel, iterations=30).belief, channel


def _continue(problem: _Problem, state: State, channel: Channel | None = None) -> State:
    return run_em(
        problem.graph,
        problem.head(),
        channel or state.channel,
        state.targets,
        problem.options,
        problem.generator,
        state.history,
    )


# -- choosing -----------------------------------------------------------------------------------


def _fit_auto(problem: _Problem) -> tuple[State, str, dict[str, float]]:
    merged = contract(problem.graph)
    tests = redundant(merged, problem.graph)
    if merged.contradictions == 0 and tests >= ENOUGH_TESTS:
        why = f"class: none of {tests:,} redundant judgements contradicts the others"
        return _fit_exact(problem), why, {"redundant": float(tests), "contradictions": 0.0}
    state = _fit_kind(problem, "annotator" if problem.n_annotators > 1 else "both")
    if merged.contradictions == 0:
        exact = _fit_exact(problem)
        if exact.evidence > state.evidence:
            why = f"class: evidence {exact.evidence:.1f}, with slips {state.evidence:.1f}"
            return exact, why, {"redundant": float(tests), "contradictions": 0.0}
    rates = _as_rates(state.channel)
    options = candidates(problem.graph, rates, problem.n_classes, problem.n_annotators)
    log_f = log_perceived(state.log_g, state.transition)
    comparison = compare_channels(log_f, problem.graph, options, problem.generator)
    if _kind(comparison.channel) != _kind(state.channel):
        state = _continue(problem, state, comparison.channel)
    evidence = {f"held_out_{name}": value for name, value in comparison.log_likelihood.items()}
    evidence |= {"redundant": float(tests), "contradictions": float(merged.contradictions)}
    return state, _explain(comparison, state), evidence


def _as_rates(channel: Channel) -> RateChannel:
    if isinstance(channel, RateChannel):
        return channel
    if isinstance(channel, AnnotatorChannel):
        a, b = channel.rates().mean(0).tolist()
        return RateChannel(a, b)
    return RateChannel()


def _kind(channel: Channel) -> tuple[type, bool]:
    return type(channel), channel.two_rate


def _explain(comparison: Comparison, state: State) -> str:
    flips = 1 - float(state.transition.diagonal().mean())
    scores = ", ".join(f"{name} {value:.4f}" for name, value in comparison.log_likelihood.items())
    name = comparison.chosen
    if name == "judgement" and flips > 0.03:
        name = "both"
    return (
        f"{name}: held-out log-likelihood a judgement: {scores}; "
        f"class flips estimated at {flips:.2f}"
    )
