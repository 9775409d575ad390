"""Judgements as tensors on a device: what inference of the perceived classes runs on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.noise.channels import Channel
from likewise.pairs import Pairs
from likewise.pairs.columns import for_torch
from likewise.pairs.edges import chunks
from likewise.pairs.graph import JudgementGraph

# Numbers handled at once: temporaries that stay in the cache. On a GPU edges, some tens of MB.
CHUNK, GPU_CHUNK = 1 << 18, 1 << 19
FEWEST_EDGES, MOST_EDGES = 1 << 8, 1 << 16  # at once, however many numbers an edge takes
# Likelihood tables of single edges are kept between iterations up to this many floats.
MAX_CACHED_FLOATS = 60_000_000


@dataclass(frozen=True)
class Graph:
    """Judgements (M,) between ``n_items`` items."""

    left: Tensor
    """(M,) index of one item of each judgement."""
    right: Tensor
    """(M,) index of the other."""
    same: Tensor
    """(M,) the answers."""
    n_items: int
    """Items there are, judged or not."""
    annotator: Tensor | None = None
    """(M,) code of whoever gave each judgement, None where nobody says."""
    weight: Tensor | None = None
    """(M,) how much each judgement counts; None is 1 for all."""
    known: Tensor | None = None
    """(N, C) 1 where an item's class is certain beforehand (`inference.propagation.known`)."""

    @classmethod
    def from_pairs(cls, pairs: Pairs, device: torch.device | str = "cpu") -> Graph:
        """The judgements of ``pairs``; on the CPU they share its memory."""
        listed = pairs.explicit()

        def tensor(column: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(for_torch(column)).to(device)

        return cls(
            left=tensor(listed.left),
            right=tensor(listed.right),
            same=tensor(listed.same),
            n_items=listed.n_items,
            annotator=None if listed.annotator is None else tensor(listed.annotator),
            weight=None if listed.weight is None else tensor(listed.weight),
        )

    def __len__(self) -> int:
        return len(self.left)

    @property
    def device(self) -> torch.device:
        return self.left.device

    def chunks(self, width: int = 1) -> Iterator[slice]:
        """Slices that cover the judgements, each of which takes ``width`` numbers at work."""
        edges = min(max(CHUNK // width, FEWEST_EDGES), MOST_EDGES)
        return chunks(len(self), edges if self.device.type == "cpu" else GPU_CHUNK)

    def select(self, keep: Tensor) -> Graph:
        """The judgements at ``keep``: a mask or positions (M',)."""
        return Graph(
            self.left[keep],
            self.right[keep],
            self.same[keep],
            self.n_items,
            None if self.annotator is None else self.annotator[keep],
            None if self.weight is None else self.weight[keep],
            self.known,
        )

    def edge_likelihoods(self, channel: Channel, like: Tensor) -> EdgeLikelihoods:
        """P(answer | z_i, z_j) of every judgement, chunk by chunk, in the dtype of ``like``."""
        return EdgeLikelihoods(self, channel, channel.log_table().to(like))

    def edge_log_table(self, channel: Channel, part: slice, table: Tensor) -> Tensor:
        """(m, 2) or (m, C, C) log likelihood of the answers in ``part``, weights included."""
        annotator = None if self.annotator is None else self.annotator[part]
        rows = table.index_select(0, channel.groups(self.same[part], annotator))
        if self.weight is None:
            return rows
        return rows * self.weight[part].view(-1, *(1,) * (rows.ndim - 1))


def edge_width(channel: Channel, like: Tensor) -> int:
    """How many numbers a judgement takes: a class each, or a pair of classes each."""
    n_classes = like.shape[1]
    return n_classes if channel.two_rate else n_classes**2


class EdgeLikelihoods:
    """P(answer | z_i, z_j) by chunk: (m, 2) or (m, C, C); kept where small, else made anew."""

    def __init__(self, graph: Graph, channel: Channel, table: Tensor) -> None:
        self._graph, self._channel, self._table = graph, channel, table
        size = len(graph) * table[:1].numel()
        self._kept: dict[int, Tensor] | None = {} if size <= MAX_CACHED_FLOATS else None

    def __getitem__(self, part: slice) -> Tensor:
        if self._kept is not None and part.start in self._kept:
            return self._kept[part.start]
        rows = self._graph.edge_log_table(self._channel, part, self._table).exp()
        if self._kept is not None:
            self._kept[part.start] = rows
        return rows


@dataclass(frozen=True)
class Contraction:
    """Items joined by "same" as one node, on the device: exact inference under an exact channel."""

    component: Tensor
    """(N,) the node of each item."""
    graph: Graph
    """The distinct "different" judgements between nodes."""
    contradictions: int
    """"different" judgements that fell inside a node."""
    redundant: int
    """"same" judgements that join what others join already: each is a test of consistency."""

    @property
    def sizes(self) -> Tensor:
        """(nodes,) number of items of each node."""
        return torch.bincount(self.component, minlength=self.graph.n_items)


def contract(graph: Graph) -> Contraction:
    """Merge what "same" joins; see `likewise.pairs.graph`, which says what weights mean here."""
    merged = JudgementGraph.from_arrays(
        left=graph.left.cpu().numpy(),
        right=graph.right.cpu().numpy(),
        same=graph.same.cpu().numpy(),
        weight=None if graph.weight is None else graph.weight.cpu().numpy(),
        n_items=graph.n_items,
    ).contract()
    device = graph.device
    apart = Graph(
        left=torch.from_numpy(merged.left).to(device),
        right=torch.from_numpy(merged.right).to(device),
        same=torch.zeros(len(merged.left), dtype=torch.bool, device=device),
        n_items=len(merged.sizes),
    )
    return Contraction(
        component=torch.from_numpy(merged.component.astype(np.int64)).to(device),
        graph=apart,
        contradictions=merged.contradictions,
        redundant=merged.redundant,
    )
