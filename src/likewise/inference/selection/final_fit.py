"""The fit that was chosen, with all judgements.

It was chosen by most of them, and begins from the classes that these led to. Where judgements are
few, those that were held out may be what some class is found by; so starts are made anew of all of
them, and the fit under which they are likeliest is kept. Which head, and whether features have a
say, stays as held-out judgements chose: a flexible head explains people's mistakes as well.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.inference.em import State
from likewise.inference.heads.silent_heads import AsFoundHead
from likewise.inference.lifting.neighbours import Neighbours
from likewise.inference.problem import JointProblem
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import in_known_order
from likewise.inference.selection.start_selection import (
    Start,
    StartFunction,
    distinct,
    from_partition,
    promising_starts,
    select_starts,
)
from likewise.inference.selection.trials import Trial, fit_with, n_used
from likewise.noise.channels import Channel


def fit_chosen(problem: JointProblem, channel: Channel, chosen: Trial) -> State:
    """The chosen fit, gone on with."""
    if isinstance(chosen.head, AsFoundHead):
        start = _found_again(problem, channel, promising_starts(problem)[chosen.number])
    else:
        start = chosen.state.targets.classes.float(), chosen.state.channel
    return fit_with(problem, chosen.head, start)


def begun_anew(
    problem: JointProblem, channel: Channel, chosen: Trial, state: State, near: Neighbours
) -> State:
    """``state``, or a fit with the same head from a start of all judgements under which these are
    likelier; none that tells neighbours apart which the other does not (`Neighbours.prefers`)."""
    confusions = not chosen.state.channel.two_rate
    for start in distinct(select_starts(problem, channel, confusions)):
        other = fit_with(problem, chosen.head, start)
        one, two = state.targets, other.targets
        likelier = criterion(other, problem.graph) > criterion(state, problem.graph)
        mistakes = near.prefers(one.classes, two.classes, two.perceived)
        if likelier and n_used(other) >= n_used(state) and not mistakes:
            state = other
    return state


def _found_again(problem: JointProblem, channel: Channel, find: StartFunction) -> Start:
    """A start of all judgements, by the longest search: it is the result."""
    if find is from_partition:
        belief, channel = from_partition(problem, channel, thorough=True)
    else:
        belief, channel = find(problem, channel)
    return in_known_order(belief, problem.graph.known), channel


def criterion(state: State, graph: Graph) -> float:
    """Log evidence of the judgements that a state was fitted to, less what its rates of "same"
    could explain by chance (BIC, Schwarz 1978).

    Not the density of features, which would outvote people.
    """
    labels = state.targets.perceived.argmax(dim=1)
    return state.posterior.evidence - cost_of_rates(labels, graph, not state.channel.two_rate)


def cost_of_rates(labels: Tensor, graph: Graph, cells: bool) -> float:
    """What rates of "same" inside and across classes (N,) could explain by chance, in nats: half
    the logarithm of the answers that each is read from, by their weights, as the evidence is.
    ``cells``: every two classes have theirs.
    """
    left, right = labels[graph.left.long()], labels[graph.right.long()]
    k = int(labels.max()) + 1
    cell = torch.minimum(left, right) * k + torch.maximum(left, right)
    answers = torch.bincount(cell if cells else (left == right).long(), graph.weight)
    return 0.5 * float(torch.log1p(answers.double()).sum())
