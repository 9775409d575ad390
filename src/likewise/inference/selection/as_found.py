"""A start as the result: its groups stand, and the judgements say how sure each item is of them."""

from __future__ import annotations

from dataclasses import replace

import torch

from likewise.inference.em import State, record
from likewise.inference.heads.cross_fitting import Targets
from likewise.inference.problem import JointProblem, nearly_identity
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.fields import field_operator
from likewise.inference.propagation.known import certain
from likewise.inference.propagation.posterior import Posterior, guess
from likewise.inference.selection.start_selection import Start

SURE = 0.95  # of a group before an item's own judgements are asked


def as_found(problem: JointProblem, start: Start) -> State:
    """EM's state after no round at all: each item of the likeliest group of a start (N, C).

    Where classes are many and small, EM may blur what a search over partitions has found.
    """
    belief, channel = start
    graph, n_classes = problem.graph, problem.n_classes
    eye = torch.eye(n_classes, device=belief.device, dtype=belief.dtype)
    hard = (SURE * eye + (1 - SURE) / n_classes)[belief.argmax(dim=1)]
    channel = channel.update(edge_statistics(guess(hard), graph, channel))
    judgements = field_operator(graph, channel, hard)
    field = torch.cat([part for _, part in judgements.blocks(hard)])
    log_belief = torch.log_softmax(hard.log() + field, dim=1)
    perceived = certain(log_belief.exp(), graph.known)
    judged = torch.softmax(field, dim=1)
    targets = Targets(perceived, judged, perceived, torch.ones_like(hard[:, 0]))
    evidence = judgements.expected_log_likelihood(hard)
    state = State(
        targets,
        nearly_identity(n_classes).to(belief.device),
        channel,
        torch.log_softmax(torch.zeros_like(hard), dim=1),
        Posterior(log_belief, evidence, 0, True),
        evidence,
    )
    return replace(state, history=[record(state, 1, 0.0)])
