"""Which noise model the judgements ask for, by the likelihood of held-out judgements."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.inference.propagation.belief_propagation import infer
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.posterior import Posterior
from likewise.inference.selection.ranking import answer_log_likelihood, held_out, jackknife_error
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel, RateChannel

MAX_CONFUSION_FLOATS = 200_000_000
JUDGED_A_CELL = 20
ROUNDS = 4  # in which a channel is refitted
ENOUGH_TESTS = 5  # redundant judgements below which "nothing contradicts" means nothing


@dataclass(frozen=True)
class Comparison:
    """Held-out log likelihood a judgement of each candidate (simplest first), and the one taken.

    ``chosen`` is the simplest candidate that is no worse than the best by more than one standard
    error of their difference, a jackknife over items: judgements that share an item are not
    independent.
    """

    chosen: str
    channel: Channel
    log_likelihood: dict[str, float]


def with_confusions(channel: Channel, n_classes: int) -> Channel:
    """The same channel with a (C, C) table in place of two rates."""
    if isinstance(channel, AnnotatorChannel) and channel.two_rate:
        return channel.with_classes(n_classes)
    if isinstance(channel, RateChannel):
        return ConfusionChannel.from_rates(channel.a, channel.b, n_classes)
    return channel


def confusable(graph: Graph, n_classes: int) -> bool:
    """Whether a (C, C) table is worth it: two classes have little to confuse, large ones cost.

    A usual cell must have been judged often enough to be told from the others.
    """
    told = len(graph) >= JUDGED_A_CELL * n_classes**2 / 2
    return n_classes > 2 and told and len(graph) * n_classes**2 <= MAX_CONFUSION_FLOATS


def candidates(
    graph: Graph, rates: RateChannel, n_classes: int, n_annotators: int
) -> dict[str, Channel]:
    """The channels worth comparing, simplest first."""
    found: dict[str, Channel] = {"judgement": rates}
    tables = confusable(graph, n_classes)
    if tables:
        found["confusion"] = ConfusionChannel.from_rates(rates.a, rates.b, n_classes)
    if graph.annotator is not None and n_annotators > 1:
        people = AnnotatorChannel.from_rates(rates.a, rates.b, n_annotators)
        found["annotator"] = people
        if tables:
            found["annotator+confusion"] = people.with_classes(n_classes)
    return found


def compare_channels(
    log_f: Tensor,
    graph: Graph,
    options: dict[str, Channel],
    generator: torch.Generator,
    start: Posterior | None = None,
) -> Comparison:
    """Fit each channel to most of the judgements, f (N, C) held fixed, and score the rest.

    ``start``: beliefs to begin from; where f is flat, classes could not be told apart without.
    """
    held = held_out(graph, generator)
    train, test = graph.select(~held), graph.select(held)
    fitted: dict[str, Channel] = {}
    scores: dict[str, Tensor] = {}
    for name, channel in options.items():
        posterior = infer(log_f, train, channel, iterations=10, start=start)
        for _ in range(ROUNDS):
            channel = channel.update(edge_statistics(posterior, train, channel))
            posterior = infer(log_f, train, channel, iterations=5, start=posterior)
        fitted[name] = channel
        scores[name] = answer_log_likelihood(posterior.belief, test, channel).double()
    means = {name: float(score.mean()) for name, score in scores.items()}
    best = max(means, key=lambda name: means[name])
    for name, score in scores.items():
        loss = scores[best] - score
        if name == best or float(loss.mean()) <= jackknife_error(loss, test):
            return Comparison(name, fitted[name], means)
    raise AssertionError("the best candidate is among the candidates")
