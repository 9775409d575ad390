"""Mean field over judgements that stay on disk: a pass reads them once and holds the items only."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.inference.propagation.fields import BLOCK, add_field
from likewise.inference.propagation.graph import Graph
from likewise.nn.cpu_kernels import softmax
from likewise.noise.channels import Channel
from likewise.pairs.edges import chunks
from likewise.pairs.stream import JudgementStream


def mean_field_pass(
    log_prior: Tensor, stream: JudgementStream, channel: Channel, belief: Tensor | None = None
) -> Tensor:
    """Beliefs (N, C) after one pass of mean field from ``belief``, by default from the prior.

    Every item is told what its judgements say under the others' beliefs, all at once, as in an
    undamped iteration of `belief_propagation.infer`. Memory: three (N, C)
    tables and one piece of the judgements.
    """
    if belief is None:
        belief = torch.empty_like(log_prior)
        for items in chunks(len(belief), BLOCK):
            belief[items] = softmax(log_prior[items])
    field = torch.zeros_like(log_prior)
    for piece in stream.pieces():
        graph = Graph(
            left=torch.from_numpy(piece.left),
            right=torch.from_numpy(piece.right),
            same=torch.from_numpy(piece.same),
            n_items=len(log_prior),
            annotator=None if piece.annotator is None else torch.from_numpy(piece.annotator),
        )
        del piece
        add_field(field, graph, channel, belief)
    for items in chunks(len(field), BLOCK):
        field[items] = softmax(field[items].add_(log_prior[items]))
    return field
