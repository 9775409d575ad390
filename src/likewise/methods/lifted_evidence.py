"""Evidence where judgements are too few for their graph to decide: the items carry them.

Lifting (`inference.lifting.lifted_start`) is cheap and finds classes that the items show as
clusters. Whether a network and the graph together know better is asked of judgements that neither
has seen; only then EM goes on from there. Where lifting explains unseen judgements no better than
their mere share of "same" does, the items show nothing: then EM looks for starts of its own. Where
judgements are too few even for that, and lifting tells no items apart, these are clustered by
themselves: an answer that k-means would have given too, but an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from likewise.inference.em import Options, State, first_targets, run_em
from likewise.inference.lifting.lifted_start import (
    Begin,
    Forest,
    embeddings,
    is_sparse,
    lifted_start,
    plant,
)
from likewise.inference.lifting.neighbours import NEIGHBOURS
from likewise.inference.problem import JointProblem, make_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.selection.ranking import answer_scores, held_out, jackknife_error
from likewise.methods.problem import Problem
from likewise.noise.channels import Channel, ExactChannel, RateChannel

TRIAL_ROUNDS = 2  # of EM, to be compared
CLEARLY = 2.0  # standard errors by which lifting must beat the share of "same"
FEWEST_UNSEEN = 30  # judgements, to compare by
CLUSTERED = 10_000  # items from which clusters of the items alone are found
NOTHING = 0.05  # nats that an item tells of its class, below which none was found


@dataclass(frozen=True)
class Lifting:
    """What lifting, or EM from there, has found."""

    rows: Tensor
    """(N, C) evidence of the items' classes."""
    channel: Channel
    """How answers come from two classes."""
    transition: NDArray[np.float64] | None
    """T, where EM went on."""
    why: str
    """What was compared, in a few words."""
    log_g: Tensor | None = None
    """(N, C) log posterior of the class from the item alone, out of fold, where EM went on."""


def lift_judgements(
    problem: Problem,
    transition: NDArray[np.float64] | str | None,
    known: Tensor | None = None,
) -> Lifting | None:
    """Lifting, or EM from there, whichever unseen judgements prefer; None where neither helps."""
    if len(problem.items) < 4 * NEIGHBOURS or problem.n_classes * 5 > len(problem.items):
        return None
    rng = np.random.default_rng([problem.seed, 4])
    joint = make_problem(
        problem.items,
        problem.pairs,
        problem.n_classes,
        network=problem.network,
        transition=transition,
        rng=rng,
        device=torch.device("cpu"),
        options=Options(rounds=TRIAL_ROUNDS),
        known=known,
    )
    points = embeddings(problem.items, problem.n_classes, problem.seed)
    forest = plant(points, problem.seed, thorough=is_sparse(joint.graph))
    return _compared(joint, forest, points[0], problem.seed)


def _compared(
    joint: JointProblem, forest: Forest, points: NDArray[np.float32], seed: int
) -> Lifting | None:
    graph = joint.graph
    held = held_out(graph, joint.generator)
    if int(held.sum()) < FEWEST_UNSEEN:
        return _lifted(lifted_start(graph, forest, joint.n_classes, seed), "too few to compare by")
    seen, unseen = graph.select(~held), graph.select(held)
    trial = lifted_start(seen, forest, joint.n_classes, seed)
    score = answer_scores(trial.belief, seen, unseen)
    flat = answer_scores(torch.full_like(trial.belief, 1 / joint.n_classes), seen, unseen)
    gain = float((score - flat).mean())
    error = jackknife_error(score - flat, unseen)
    told = f"lifting explains an unseen judgement by {gain:.3f} nats (error {error:.3f})"
    # Below that the graph falls apart, and EM would have nothing to begin from.
    holds_together = 2 * len(graph) >= joint.n_classes * graph.n_items
    if holds_together and gain < CLEARLY * error:
        return None
    if holds_together:
        state = _em(joint, seen, trial)
        # By what an item was taken for, its own judgements included: where whole items are
        # mistaken, that foretells answers which its class does not.
        further = answer_scores(state.targets.perceived, seen, unseen) - score
        error = jackknife_error(further, unseen)
        told += f", EM by {gain + float(further.mean()):.3f}"
        if float(further.mean()) > error:
            return _by_em(_go_on(joint, state), told)
    # Where judgements are sparse every one counts for the search: it is made anew with all.
    known = None if is_sparse(graph) else trial
    begin = lifted_start(graph, forest, joint.n_classes, seed, known=known)
    if _told_apart(begin.belief) < NOTHING:
        clusters = _by_items_alone(points, joint.n_classes, seed)
        told += ", which tells no items apart; clusters of the items alone instead"
        return Lifting(clusters, RateChannel(begin.a, begin.b), None, told)
    return _lifted(begin, told)


def _em(joint: JointProblem, graph: Graph, begin: Begin) -> State:
    """EM with the network's head from beliefs that lifting has found."""
    consistent = joint.pairs.is_consistent()
    channel: Channel = ExactChannel() if consistent else RateChannel(begin.a, begin.b)
    start = first_targets(begin.belief)
    return run_em(graph, joint.network_head(), channel, start, joint.options, joint.generator)


def _go_on(joint: JointProblem, state: State) -> State:
    """EM with all judgements, from what it has found with most of them: near its end, so that
    one round without a gain is enough."""
    options = replace(joint.options, rounds=Options().rounds, patience=1)
    return run_em(
        joint.graph,
        joint.network_head(),
        state.channel,
        first_targets(state.targets.perceived),
        options,
        joint.generator,
        state.transition,
    )


def _told_apart(belief: Tensor) -> float:
    """Mutual information of item and class in beliefs (N, C): 0 where all items are of one class,
    and where nothing is known of any."""
    mean = belief.mean(dim=0)
    share = belief / mean.clamp_min(1e-12)
    return float(torch.special.xlogy(belief, share).sum(dim=1).mean())


def _by_items_alone(points: NDArray[np.float32], n_classes: int, seed: int) -> Tensor:
    """(N, C) k-means clusters of embedded items (N, d)."""
    chosen = np.random.default_rng([seed, 5]).permutation(len(points))[:CLUSTERED]
    clusters = KMeans(n_classes, n_init=10, random_state=seed).fit(points[chosen])
    found = torch.from_numpy(clusters.predict(points)).long()
    return torch.nn.functional.one_hot(found, n_classes).float()


def _lifted(begin: Begin, told: str) -> Lifting:
    return Lifting(begin.belief.float(), RateChannel(begin.a, begin.b), None, told)


def _by_em(state: State, told: str) -> Lifting:
    rows = state.targets.judged.float()
    return Lifting(rows, state.channel, state.transition.cpu().numpy(), told, state.log_g.float())
