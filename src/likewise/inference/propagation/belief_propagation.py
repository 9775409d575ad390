"""Inference of the perceived classes z on the judgement graph.

Given log f (N, C), a channel and judgements: the posterior of every z_i, and the evidence
log P(judgements | f, channel).

- *exact* channel: items joined by "same" are merged, which is exact; "different" between merged
  nodes goes by messages.
- *belief propagation* (``bp``), damped: exact on trees; its evidence is Bethe's. A message needs
  O(C) where the channel has two rates, O(C²) otherwise; memory 2 M C floats.
- *mean field* (``mean_field``): memory N C floats and one sparse product an iteration, for graphs
  so large that messages do not fit, or so dense that they no longer matter.

Contradictory or repeated judgements and isolated items need no special case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from likewise.inference.propagation.fields import BLOCK, MessageSums, field_operator
from likewise.inference.propagation.graph import (
    Contraction,
    EdgeLikelihoods,
    Graph,
    contract,
    edge_width,
)
from likewise.inference.propagation.posterior import Posterior, guess
from likewise.nn.cpu_kernels import softmax
from likewise.noise.channels import Channel, ExactChannel, RateChannel
from likewise.pairs.edges import chunks

Method = Literal["auto", "bp", "mean_field"]

MAX_MESSAGE_FLOATS = 60_000_000  # beyond 3 million judgements of 10 classes: mean field
DENSE_DEGREE = 250  # judgements an item beyond which leaving one out changes nothing
TINY = 1e-30


@dataclass(frozen=True)
class _Schedule:
    """How long and how boldly to iterate, and from where."""

    iterations: int
    damping: float
    tolerance: float
    start: Posterior | None


def infer(
    log_prior: Tensor,
    graph: Graph,
    channel: Channel,
    *,
    method: Method = "auto",
    iterations: int = 50,
    damping: float = 0.3,
    tolerance: float = 1e-4,
    start: Posterior | None = None,
) -> Posterior:
    """Posterior of z under ``log_prior`` (N, C), the judgements and the channel.

    Stops when beliefs change by less than ``tolerance`` on average. ``start`` warm-starts from an
    earlier posterior of the same graph, or from beliefs alone (`guess`).
    """
    schedule = _Schedule(iterations, damping, tolerance, start)
    if isinstance(channel, ExactChannel):
        return _infer_contracted(log_prior, contract(graph), channel, schedule)
    if method == "auto":
        method = choose_method(graph, log_prior.shape[1])
    return _solve(log_prior, graph, channel, method, schedule)


def _solve(
    log_prior: Tensor, graph: Graph, channel: Channel, method: Method, schedule: _Schedule
) -> Posterior:
    solve = _belief_propagation if method == "bp" else _mean_field
    return solve(log_prior, graph, channel, schedule)


def choose_method(graph: Graph, n_classes: int) -> Method:
    """Messages where they fit in memory and leaving one edge out can matter."""
    fits = 2 * len(graph) * n_classes <= MAX_MESSAGE_FLOATS
    sparse_enough = 2 * len(graph) <= DENSE_DEGREE * max(graph.n_items, 1)
    return "bp" if fits and sparse_enough else "mean_field"


# -- belief propagation -------------------------------------------------------------------------


def _belief_propagation(
    log_prior: Tensor, graph: Graph, channel: Channel, schedule: _Schedule
) -> Posterior:
    start = schedule.start
    likelihood = graph.edge_likelihoods(channel, log_prior)
    shape, width = (len(graph), log_prior.shape[1]), edge_width(channel, log_prior)
    if start is not None and start.to_left is not None and start.to_left.shape == shape:
        assert start.to_right is not None
        to_left, to_right = start.to_left.clone(), start.to_right.clone()
    elif start is not None:
        belief = softmax(start.log_belief.to(log_prior))
        to_left, to_right = _first_messages(belief, graph, likelihood, width)
    else:
        to_left, to_right = log_prior.new_zeros(shape), log_prior.new_zeros(shape)
    add_up = MessageSums(graph)
    total = add_up(to_left, to_right, log_prior)
    belief = softmax(total)
    converged, done = False, 0
    for done in range(1, schedule.iterations + 1):
        keep = 0.0 if done == 1 and start is None else schedule.damping
        for part in graph.chunks(width):
            rows = likelihood[part]
            from_left, from_right = cavities(total, graph, to_left, to_right, part)
            to_right[part].lerp_(_message(from_left, rows), 1 - keep)
            rows = rows if channel.two_rate else rows.mT
            to_left[part].lerp_(_message(from_right, rows), 1 - keep)
        total = add_up(to_left, to_right, log_prior)
        updated = softmax(total)
        change = float((updated - belief).abs().sum(1).mean()) if len(belief) else 0.0
        belief = updated
        if change < schedule.tolerance:
            converged = True
            break
    evidence = _bethe(total, graph, to_left, to_right)
    log_belief = torch.log_softmax(total, dim=1)
    return Posterior(log_belief, evidence, done, converged, to_left, to_right)


def _first_messages(
    belief: Tensor, graph: Graph, likelihood: EdgeLikelihoods, width: int
) -> tuple[Tensor, Tensor]:
    """What each end would tell the other, if beliefs (N, C) were all there is: two (M, C)."""
    shape = (len(graph), belief.shape[1])
    to_left, to_right = belief.new_empty(shape), belief.new_empty(shape)
    for part in graph.chunks(width):
        rows = likelihood[part]
        to_right[part] = _message(belief.index_select(0, graph.left[part]), rows)
        rows = rows if rows.ndim == 2 else rows.mT
        to_left[part] = _message(belief.index_select(0, graph.right[part]), rows)
    return to_left, to_right


def cavities(
    total: Tensor, graph: Graph, to_left: Tensor, to_right: Tensor, part: slice
) -> tuple[Tensor, Tensor]:
    """What each end of an edge believes without that edge: two (m, C) probabilities."""
    from_left = softmax(total.index_select(0, graph.left[part]).sub_(to_left[part]))
    from_right = softmax(total.index_select(0, graph.right[part]).sub_(to_right[part]))
    return from_left, from_right


def _message(cavity: Tensor, likelihood: Tensor) -> Tensor:
    """log sum_a cavity(a) P(answer | a, b): (m, C) from (m, C) and (m, 2) or (m, C, C)."""
    if likelihood.ndim == 2:
        equal, different = likelihood[:, :1], likelihood[:, 1:]
        expected = torch.addcmul(different, equal - different, cavity)
    else:
        expected = torch.bmm(cavity.unsqueeze(1), likelihood).squeeze(1)
    return expected.clamp_min_(TINY).log_()


def _bethe(total: Tensor, graph: Graph, to_left: Tensor, to_right: Tensor) -> float:
    """Bethe's log evidence: sum of log Z_i less sum of log Z_ij (exact on trees)."""
    evidence = float(torch.logsumexp(total, dim=1).double().sum())
    for part in graph.chunks(total.shape[1]):
        from_left, _ = cavities(total, graph, to_left, to_right, part)
        overlap = (from_left * to_left[part].exp()).sum(1)
        evidence -= float(torch.log(overlap.clamp_min(TINY)).double().sum())
    return evidence


# -- mean field ---------------------------------------------------------------------------------


def _mean_field(
    log_prior: Tensor, graph: Graph, channel: Channel, schedule: _Schedule
) -> Posterior:
    operator = field_operator(graph, channel, log_prior)
    start = log_prior if schedule.start is None else schedule.start.log_belief
    belief, updated = torch.empty_like(log_prior), torch.empty_like(log_prior)
    for items in chunks(len(belief), BLOCK):
        belief[items] = softmax(start[items])
    converged, done = False, 0
    while done < schedule.iterations and not converged:
        done += 1
        change = 0.0
        for items, field in operator.blocks(belief):
            updated[items] = softmax(field.add_(log_prior[items]))
            change += float((updated[items] - belief[items]).abs().sum())
        converged = change < schedule.tolerance * max(len(belief), 1)
        if converged:
            belief = updated
        else:
            belief.mul_(schedule.damping).add_(updated, alpha=1 - schedule.damping)
    log_belief = torch.empty_like(belief)
    # The mean-field lower bound of the log evidence.
    evidence = operator.expected_log_likelihood(belief)
    for items in chunks(len(belief), BLOCK):
        q, log_q = belief[items], log_belief[items]
        torch.log(q.clamp_min(TINY), out=log_q)
        evidence += float((q * (log_prior[items] - log_q)).sum(1).double().sum())
    return Posterior(log_belief, evidence, done, converged)


# -- the exact channel --------------------------------------------------------------------------


def _infer_contracted(
    log_prior: Tensor,
    merged: Contraction,
    channel: ExactChannel,
    schedule: _Schedule,
) -> Posterior:
    nodes = log_prior.new_zeros(merged.graph.n_items, log_prior.shape[1])
    nodes.index_add_(0, merged.component, log_prior)
    apart = RateChannel(1 - channel.slip, channel.slip)
    start = None
    if schedule.start is not None:  # a node believes what its items do on average
        total = torch.zeros_like(nodes).index_add_(0, merged.component, schedule.start.belief)
        start = guess(total / merged.sizes[:, None].to(total))
    method = choose_method(merged.graph, nodes.shape[1])
    found = _solve(nodes, merged.graph, apart, method, replace(schedule, start=start))
    evidence = found.evidence + merged.contradictions * float(np.log(channel.slip))
    log_belief = found.log_belief[merged.component]
    return Posterior(log_belief, evidence, found.iterations, found.converged)
