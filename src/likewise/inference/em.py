"""EM on the judgement graph: infer the perceived classes, fit head, T and channel to them, repeat.

Each round: cross-fit the head to the posterior of z through T, re-estimate T from the out-of-fold
predictions, infer z again from f = g @ T and the judgements, re-estimate the channel. The evidence
of the judgements under out-of-fold predictions says when to stop, and which round to keep: EM may
also get worse, at high noise.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from likewise.inference.heads.cross_fitting import Head, Targets, judged_score, log_perceived
from likewise.inference.propagation.belief_propagation import infer
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import certain, clamped
from likewise.inference.propagation.posterior import Posterior, guess
from likewise.inference.propagation.sort_graph import SortGraph
from likewise.io.progress import tracked
from likewise.noise.channels import Channel, RateChannel
from likewise.noise.estimation import class_posterior, likelihood_transition


@dataclass(frozen=True)
class Options:
    """How EM runs. ``transition``: a fixed (C, C) T, or None to estimate it."""

    rounds: int = 12
    folds: int = 4
    tolerance: float = 3e-3  # nats an item that a round must gain, to be worth another
    patience: int = 2
    transition: Tensor | None = None
    iterations: int = 30
    epochs: int = 40
    final_epochs: int = 60
    start_steps: int = 600


@dataclass(frozen=True)
class State:
    """Everything that one round leaves behind; ``log_g`` (N, C) is out of fold."""

    targets: Targets
    transition: Tensor
    channel: Channel
    log_g: Tensor
    posterior: Posterior
    evidence: float
    history: list[dict[str, Any]] = field(default_factory=list)


def first_targets(perceived: Tensor, weight: Tensor | None = None) -> Targets:
    """Targets of the first round: a guess (N, C) of z stands for everything else."""
    full = torch.ones(len(perceived), device=perceived.device) if weight is None else weight
    return Targets(perceived, perceived, perceived, full)


def run_em(
    graph: Graph,
    head: Head,
    channel: Channel,
    start: Targets,
    options: Options,
    generator: torch.Generator,
    transition: Tensor | None = None,
) -> State:
    """Rounds of EM from ``start`` until the evidence stops rising; the best round is returned.

    ``transition`` (C, C) is where T starts from.
    """
    folds = fold_of_items(graph.n_items, options.folds, generator).to(graph.device)
    if transition is None:
        transition = _first_transition(start.perceived, options)
    records: list[dict[str, Any]] = []
    # The first inference begins from the start's beliefs: where the prior is flat, one that began
    # from nothing would forget them.
    targets: Targets = start
    posterior: Posterior | None = None if start.weight.min() == 0 else guess(start.perceived)
    best: State | None = None
    waited = 0
    for _ in tracked(range(options.rounds), of=options.rounds):
        began = time.perf_counter()
        state = _round(
            graph, head, channel, targets, transition, folds, options, generator, posterior
        )
        records.append(record(state, len(records) + 1, time.perf_counter() - began))
        gain = float("inf") if best is None else state.evidence - best.evidence
        if best is None or gain > 0:
            best = state
        waited = 0 if gain > options.tolerance * graph.n_items else waited + 1
        if waited >= options.patience:
            break
        targets, transition, channel = state.targets, state.transition, state.channel
        posterior = state.posterior
    assert best is not None
    return replace(best, history=records)


def fold_of_items(n_items: int, folds: int, generator: torch.Generator) -> Tensor:
    """(N,) fold of each item, as even as can be."""
    return torch.randperm(n_items, generator=generator) % folds


def _first_transition(like: Tensor, options: Options) -> Tensor:
    if options.transition is not None:
        return options.transition.to(like.device, torch.float64)
    n_classes = like.shape[1]
    eye = torch.eye(n_classes, dtype=torch.float64, device=like.device)
    return 0.7 * eye + 0.3 / n_classes


def _round(
    graph: Graph,
    head: Head,
    channel: Channel,
    targets: Targets,
    transition: Tensor,
    folds: Tensor,
    options: Options,
    generator: torch.Generator,
    posterior: Posterior | None,
) -> State:
    log_joint = head.crossfit(targets, transition, folds, generator)
    own_evidence = float(torch.logsumexp(log_joint.double(), dim=1).sum())
    log_g = torch.log_softmax(log_joint, dim=1)
    if options.transition is None:
        known = targets.informed()
        transition, temperature, _ = likelihood_transition(
            log_g[known].double(), targets.judged[known], head.temperatures, iterations=30
        )
        log_g = torch.log_softmax(log_g / float(temperature), dim=1)
    log_g = clamped(log_g, graph.known)
    log_f = log_perceived(log_g, transition)
    # Items that the start named keep that name for one round: the rest is settled around them.
    named = (targets.weight > 0) & (targets.weight.min() == 0)
    anchor = 5 * torch.log(targets.perceived.clamp_min(1e-2)) * named[:, None]
    posterior, channel = _e_step(log_f + anchor, graph, channel, options.iterations, posterior)
    judged = torch.softmax(posterior.log_belief - log_f, dim=1)
    classes = certain(class_posterior(log_g, transition, judged), graph.known)
    weight = torch.ones_like(targets.weight)
    renewed = Targets(posterior.belief, judged, classes, weight)
    evidence = posterior.evidence + own_evidence
    return State(renewed, transition, channel, log_g, posterior, evidence)


def _e_step(
    log_prior: Tensor,
    graph: Graph,
    channel: Channel,
    iterations: int,
    start: Posterior | None,
) -> tuple[Posterior, Channel]:
    """The posterior of z, and the channel refitted to it; piles of a sort need no channel."""
    if isinstance(graph, SortGraph):
        return graph.infer(log_prior, iterations, start), channel
    posterior = infer(log_prior, graph, channel, iterations=iterations, start=start)
    return posterior, channel.update(edge_statistics(posterior, graph, channel))


def record(state: State, number: int, seconds: float) -> dict[str, Any]:
    """A round as a row of the history."""
    row: dict[str, Any] = {
        "round": number,
        "evidence": state.evidence,
        "score": float(judged_score(state.log_g, state.transition, state.targets.judged).mean()),
        "kept": float(state.transition.diagonal().mean()),
        "seconds": seconds,
    }
    if isinstance(state.channel, RateChannel):
        row |= {"same_given_same": state.channel.a, "same_given_different": state.channel.b}
    return row
