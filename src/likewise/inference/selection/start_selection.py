"""Which start to try, and EM from the one, and the head, of the highest evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from likewise.inference.em import Options, State, first_targets, run_em
from likewise.inference.heads.cross_fitting import Head
from likewise.inference.partition import find_labels, infer_partition
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.mixture import find_mixture
from likewise.inference.partition.supervised_components import supervised_components
from likewise.inference.problem import JointProblem
from likewise.inference.propagation.belief_propagation import infer
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph, contract
from likewise.inference.propagation.known import in_known_order
from likewise.inference.propagation.posterior import Posterior, guess
from likewise.inference.selection.channel_selection import confusable, with_confusions
from likewise.inference.selection.starts import (
    HINT,
    MAX_SPECTRAL_ITEMS,
    component_start,
    pairwise_start,
    spectral_embedding,
    spectral_start,
)
from likewise.io.progress import tracked
from likewise.metrics import matched_accuracy
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel, ExactChannel, RateChannel
from likewise.pairs.rates import moment_rates

TRIAL_ROUNDS = 2
FEW_JUDGEMENTS = 200_000
ALIKE = 0.99
MOST_SPECTRAL_CLASSES = 40  # beyond, classes are small, and eigenvectors show none of them


class Asked(TypedDict):
    """Judgements as searches over partitions take them."""

    left: NDArray[np.integer]
    right: NDArray[np.integer]
    same: NDArray[np.bool_]
    n_items: int
    annotator: NDArray[np.integer] | None
    weight: NDArray[np.float64] | None


StartFunction = Callable[[JointProblem, Channel], tuple[Tensor, Channel]]
Start = tuple[Tensor, Channel]


def fit_exact(problem: JointProblem) -> tuple[State, Head]:
    """EM under an exact channel, from the largest groups that "different" holds apart."""
    label = component_start(contract(problem.graph), problem.n_classes)
    named = label >= 0
    shape = (problem.graph.n_items, problem.n_classes)
    belief = torch.full(shape, 1 / problem.n_classes, device=label.device)
    belief[named] = torch.eye(problem.n_classes, device=label.device)[label[named]]
    belief = in_known_order(belief, problem.graph.known)
    start = first_targets(belief, named.float())
    # A network, always: Gaussians would have to know the classes that no group names yet.
    head = problem.network_head()
    state = run_em(problem.graph, head, ExactChannel(), start, problem.options, problem.generator)
    return state, head


def select_starts(problem: JointProblem, channel: Channel, confusions: bool = True) -> list[Start]:
    """First posteriors of z (N, C), each with the channel refitted to it, worth going on from.

    With Gaussian heads two rates are widened by particular confusions where these are wanted and
    worth it; a channel that knows them by itself keeps them.
    """
    found = [start(problem, channel) for start in promising_starts(problem)]
    starts = [(in_known_order(belief, problem.graph.known), own) for belief, own in found]
    if problem.features is not None:  # rounds are cheap: judge the starts by where they lead
        as_found = [as_start(problem, *one, confusions) for one in starts]
        return [*as_found, *(_settle(problem, *one) for one in as_found)]
    if len(starts) > 1:
        trial = replace(problem.options, rounds=TRIAL_ROUNDS)
        states = [em_from(problem, problem.network_head(), one, trial) for one in starts]
        best = max(states, key=lambda state: state.evidence)
        starts = [(best.targets.perceived, best.channel)]
    return starts


def distinct(starts: list[Start]) -> list[Start]:
    """Without those that put all but a few items where an earlier one does: they lead there too."""
    kept: list[Start] = []
    for start in starts:
        labels = start[0].argmax(dim=1).cpu().numpy()
        others = (other[0].argmax(dim=1).cpu().numpy() for other in kept)
        if all(matched_accuracy(labels, other) < ALIKE for other in others):
            kept.append(start)
    return kept


def fit_from_starts(problem: JointProblem, starts: list[Start]) -> tuple[State, Head]:
    """EM with a network from each first guess; the one of highest evidence."""
    head = problem.network_head()
    states = [em_from(problem, head, one) for one in tracked(starts, of=len(starts))]
    return max(states, key=lambda state: state.evidence), head


def as_start(problem: JointProblem, belief: Tensor, channel: Channel, confusions: bool) -> Start:
    """A guess with the channel refitted to it; people may confuse some classes more than others."""
    if confusions and confusable(problem.graph, problem.n_classes):
        channel = with_confusions(channel, problem.n_classes)
    return belief, channel.update(edge_statistics(guess(belief), problem.graph, channel))


def _settle(problem: JointProblem, belief: Tensor, channel: Channel) -> Start:
    """What becomes of a guess once the judgements speak alone.

    Clusters of the features that nobody sees fade; where judgements are few, everything does.
    """
    flat = torch.zeros_like(belief)
    hint = HINT * guess(belief).log_belief
    posterior = infer(hint, problem.graph, channel, iterations=20)
    for _ in range(10):
        posterior = infer(flat, problem.graph, channel, iterations=10, start=posterior)
        channel = channel.update(edge_statistics(posterior, problem.graph, channel))
    return posterior.belief, channel


def promising_starts(problem: JointProblem) -> list[StartFunction]:
    """The graph alone where its spectrum stands out, the features where it does not, or both."""
    graph, wanted = problem.graph, problem.n_classes - 1
    by_features = from_network if problem.features is None else from_clusters
    if graph.n_items > MAX_SPECTRAL_ITEMS or graph.n_items < 3 * problem.n_classes:
        return [by_features]
    if problem.features is not None and problem.n_classes > MOST_SPECTRAL_CLASSES:
        return [from_partition, *BY_POINTS]
    if problem.features is not None:
        every: list[StartFunction] = [from_graph, from_partition, *BY_POINTS]
        return every if problem.rich else [*every, from_network]
    share = problem.pairs.n_same / len(problem.pairs)
    edge = 2 * np.sqrt(2 * len(graph) / graph.n_items * share * (1 - share))
    values, _ = spectral_embedding(graph, wanted)
    if values[-1] > 1.2 * edge:
        return [from_graph]
    if (values > edge).sum() < wanted / 2:
        return [by_features]
    return [from_graph, by_features]


def from_graph(problem: JointProblem, channel: Channel) -> Start:
    """The judgements alone."""
    seed = int(problem.rng.integers(2**31))
    rounds = 25 if len(problem.graph) <= FEW_JUDGEMENTS and problem.features is not None else 5
    posterior, found = spectral_start(
        problem.graph, _without_cells(channel), problem.n_classes, seed, rounds=rounds
    )
    return posterior.belief, _as_wide(found, channel, problem)


def from_partition(problem: JointProblem, channel: Channel, thorough: bool = False) -> Start:
    """Correlation clustering of the judgements: also where classes are many and degrees unequal.

    A ``thorough`` search takes tens of times as long.
    """
    n_groups, seed = problem.n_classes, int(problem.rng.integers(2**31))
    answers = asked(problem.graph)
    if thorough:
        labels = infer_partition(**answers, n_groups=n_groups, seed=seed).labels
    else:
        labels = find_labels(**answers, n_groups=n_groups, seed=seed)
    return _as_belief(labels, problem), channel


def from_network(problem: JointProblem, channel: Channel) -> Start:
    """A network trained on single judgements."""
    log_g, found = pairwise_start(
        problem.graph,
        problem.items,
        problem.build,
        _without_cells(channel),
        problem.generator,
        problem.options.start_steps,
    )
    belief = infer(log_g, problem.graph, found, iterations=30).belief
    return belief, _as_wide(found, channel, problem)


def from_clusters(problem: JointProblem, channel: Channel) -> Start:
    """k-means of rich features: the last resort, where the judgements are too few."""
    labels = cluster_items(problem)
    eye = torch.eye(problem.n_classes, device=problem.graph.device)
    log_f = torch.log(0.8 * eye + 0.2 / problem.n_classes)[torch.from_numpy(labels).long()]
    posterior = Posterior(log_f, 0.0, 0, False)
    for _ in range(5):
        channel = channel.update(edge_statistics(posterior, problem.graph, channel))
        posterior = infer(log_f, problem.graph, channel, iterations=10)
    return posterior.belief, channel


def from_mixture(problem: JointProblem, channel: Channel, supervised: bool = False) -> Start:
    """A Gaussian mixture of rich features and the judgements: where classes are many, k-means of
    the features gets stuck, and judgements alone are too few.

    Of the components in which features vary most, or (``supervised``) in which judgements tell
    items apart.
    """
    assert problem.features is not None
    moments = moment_rates(problem.pairs.explicit(), problem.n_classes, problem.rng)
    answers = Answers.build(**asked(problem.graph))
    points = problem.features.points.cpu().numpy()
    if supervised:
        points = supervised_components(answers, points, problem.n_classes - 1, problem.rng)
    rates = moments.a, moments.b
    labels = find_mixture(answers, points, problem.n_classes, rates, problem.rng)
    return _as_belief(labels, problem), channel


def from_supervised(problem: JointProblem, channel: Channel) -> Start:
    """The same where what people tell apart is not what varies most."""
    return from_mixture(problem, channel, supervised=True)


BY_POINTS: tuple[StartFunction, ...] = (from_clusters, from_mixture, from_supervised)


def asked(graph: Graph) -> Asked:
    """The judgements of a graph, as arrays."""
    return Asked(
        left=graph.left.cpu().numpy(),
        right=graph.right.cpu().numpy(),
        same=graph.same.cpu().numpy(),
        n_items=graph.n_items,
        annotator=None if graph.annotator is None else graph.annotator.cpu().numpy(),
        weight=None if graph.weight is None else graph.weight.cpu().double().numpy(),
    )


def as_rates(channel: Channel) -> RateChannel:
    """The two overall rates of any channel."""
    if isinstance(channel, RateChannel):
        return channel
    if isinstance(channel, AnnotatorChannel):
        return RateChannel(*channel.rates().mean(0).tolist())
    if isinstance(channel, ConfusionChannel):
        p, diagonal = channel.p_same, channel.p_same.diagonal()
        different = (p.sum() - diagonal.sum()) / (p.numel() - len(p))
        return RateChannel(float(diagonal.mean()), float(different))
    return RateChannel()


def _without_cells(channel: Channel) -> Channel:
    """Which classes are confused is known only once there are classes: two rates until then."""
    return as_rates(channel) if isinstance(channel, ConfusionChannel) else channel


def _as_wide(found: Channel, asked_for: Channel, problem: JointProblem) -> Channel:
    """The channel found, by classes where that was asked for."""
    return found if asked_for.two_rate else with_confusions(found, problem.n_classes)


def _as_belief(labels: NDArray[np.integer], problem: JointProblem) -> Tensor:
    """(N, C) groups (N,) as beliefs that leave some doubt."""
    eye = torch.eye(problem.n_classes, device=problem.graph.device)
    return (0.9 * eye + 0.1 / problem.n_classes)[torch.from_numpy(labels)]


def cluster_items(problem: JointProblem) -> NDArray[np.integer]:
    """(N,) k-means of rich features."""
    assert problem.features is not None
    seed = int(problem.rng.integers(2**31))
    points = problem.features.points.cpu().numpy()
    return np.asarray(KMeans(problem.n_classes, n_init=10, random_state=seed).fit(points).labels_)


def em_from(
    problem: JointProblem, head: Head, start: Start, options: Options | None = None
) -> State:
    """EM with a head from a first guess."""
    perceived, channel = start
    return run_em(
        problem.graph,
        head,
        channel,
        first_targets(perceived),
        options or problem.options,
        problem.generator,
    )
