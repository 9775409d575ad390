"""What inference says of single judgements: what is expected in each table.

Where messages tell, what the ends of a judgement believe is without that judgement, and the
judgement itself is then counted once; in mean field, beliefs stand for themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.inference.propagation.belief_propagation import TINY, cavities
from likewise.inference.propagation.graph import Graph, edge_width
from likewise.inference.propagation.posterior import Posterior
from likewise.noise.channels import Channel

ANSWERS_A_TABLE = 32  # at least, for tables of class pairs to be worked out one after the other


def edge_statistics(posterior: Posterior, graph: Graph, channel: Channel) -> Tensor:
    """Expected counts of (equal, different) (G, 2), or of class pairs (G, C, C), by group."""
    table = channel.log_table().to(posterior.log_belief)
    if not channel.two_rate and graph.weight is None and len(graph) >= ANSWERS_A_TABLE * len(table):
        return _cell_statistics(posterior, graph, channel, table)
    counts = torch.zeros_like(table)
    for part in graph.chunks(edge_width(channel, posterior.log_belief)):
        annotator = None if graph.annotator is None else graph.annotator[part]
        group = channel.groups(graph.same[part], annotator)
        joint = _edge_posterior(posterior, graph, channel, part, table)
        if graph.weight is not None:
            joint = joint * graph.weight[part].view(-1, *(1,) * (joint.ndim - 1))
        counts.index_add_(0, group, joint)
    return counts.double().cpu()


def _cell_statistics(posterior: Posterior, graph: Graph, channel: Channel, table: Tensor) -> Tensor:
    """(G, C, C) the same, table by table: joint posteriors of single judgements, C² numbers each,
    are never made, only their sum, P ⊙ (L / norm)' R with L and R what the ends believe."""
    counts = torch.zeros_like(table)
    likelihood = table.exp() if posterior.to_left is not None else torch.ones_like(table)
    for part in graph.chunks():
        annotator = None if graph.annotator is None else graph.annotator[part]
        group = channel.groups(graph.same[part], annotator)
        order = torch.argsort(group, stable=True)
        left, right = (end.index_select(0, order) for end in _ends(posterior, graph, part))
        sizes = torch.bincount(group, minlength=len(table)).tolist()
        rows = zip(torch.split(left, sizes), torch.split(right, sizes), strict=True)
        for number, (one, other) in enumerate(rows):
            if len(one):
                norm = (one @ likelihood[number] * other).sum(1, keepdim=True).clamp_min(TINY)
                counts[number] += likelihood[number] * ((one / norm).T @ other)
    return counts.double().cpu()


def _ends(posterior: Posterior, graph: Graph, part: slice) -> tuple[Tensor, Tensor]:
    """What each end of an edge believes, without that edge where messages tell: two (m, C)."""
    total, to_left, to_right = posterior.log_belief, posterior.to_left, posterior.to_right
    if to_left is None or to_right is None:
        return total[graph.left[part]].exp(), total[graph.right[part]].exp()
    return cavities(total, graph, to_left, to_right, part)


def _edge_posterior(
    posterior: Posterior, graph: Graph, channel: Channel, part: slice, table: Tensor
) -> Tensor:
    """(m, 2) P(equal), P(different), or (m, C, C) joint posterior, of the edges in ``part``."""
    left, right = _ends(posterior, graph, part)
    rows = left.new_ones(())
    if posterior.to_left is not None:
        rows = graph.edge_log_table(channel, part, table).exp()
    if channel.two_rate:
        equal = (left * right).sum(1).clamp(0, 1)
        joint = torch.stack([equal, 1 - equal], dim=1) * rows
    else:
        joint = left.unsqueeze(2) * right.unsqueeze(1) * rows
    norm = joint.flatten(1).sum(1).clamp_min(TINY)
    return joint / norm.view(-1, *(1,) * (joint.ndim - 1))
