"""What its neighbours tell each item in mean field: the sums that an iteration is made of.

With beliefs q (N, C), an item's field is the sum over its judgements of the expected log
likelihood of the answer under the other item's belief; for two rates, of gain * q_other up to a
constant, gain being log P(answer | equal) - log P(answer | different).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from likewise.channels import Channel
from likewise.edges import chunks
from likewise.graph import Graph

# Items handled at once: their fields and what is made of them stay in the cache.
BLOCK = 1 << 16


class ScatterField:
    """Edge by edge: any channel, any device."""

    def __init__(self, graph: Graph, channel: Channel, like: Tensor) -> None:
        self.graph, self.channel = graph, channel
        self.table = channel.log_table().to(like)

    def blocks(self, belief: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """The field under ``belief`` (N, C): items as a slice, and theirs (n, C)."""
        graph, field = self.graph, torch.zeros_like(belief)
        for part in graph.chunks():
            rows = graph.edge_log_table(self.channel, part, self.table)
            left, right = graph.left[part], graph.right[part]
            if self.channel.two_rate:
                gain = rows[:, :1] - rows[:, 1:]
                field.index_add_(0, left, gain * belief[right])
                field.index_add_(0, right, gain * belief[left])
            else:
                field.index_add_(0, left, torch.einsum("mab,mb->ma", rows, belief[right]))
                field.index_add_(0, right, torch.einsum("mab,ma->mb", rows, belief[left]))
        for items in chunks(graph.n_items, BLOCK):
            yield items, field[items]

    def expected_log_likelihood(self, belief: Tensor) -> float:
        """Of all judgements, under independent beliefs."""
        graph, total = self.graph, 0.0
        for part in graph.chunks():
            left, right = belief[graph.left[part]], belief[graph.right[part]]
            rows = graph.edge_log_table(self.channel, part, self.table)
            if self.channel.two_rate:
                equal = (left * right).sum(1)
                value = equal * rows[:, 0] + (1 - equal) * rows[:, 1]
            else:
                value = torch.einsum("ma,mab,mb->m", left, rows, right)
            total += float(value.double().sum())
        return total


class SparseField:
    """The same for two rates on the CPU, many times faster: by item, a bag of weighted beliefs."""

    def __init__(self, graph: Graph, channel: Channel, like: Tensor) -> None:
        table = channel.log_table().to(like)
        gain = torch.empty(len(graph), dtype=like.dtype)
        self.if_different = 0.0  # what the judgements would cost were all pairs different
        for part in graph.chunks():
            rows = graph.edge_log_table(channel, part, table)
            torch.sub(rows[:, 0], rows[:, 1], out=gain[part])
            self.if_different += float(rows[:, 1].double().sum())
        ends = graph.left.numpy(), graph.right.numpy()
        self._rights = _bags(*ends, gain.numpy(), graph.n_items)
        self._lefts = _bags(*ends[::-1], gain.numpy(), graph.n_items)

    def blocks(self, belief: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """The field under ``belief`` (N, C): items as a slice, and theirs (n, C)."""
        for rights, lefts in zip(self._rights, self._lefts, strict=True):
            yield rights.items, rights.sums(belief).add_(lefts.sums(belief))

    def expected_log_likelihood(self, belief: Tensor) -> float:
        """Of all judgements, under independent beliefs: a judgement counts once."""
        total = self.if_different
        for rights in self._rights:
            gains = (belief[rights.items] * rights.sums(belief)).sum(1)
            total += float(gains.double().sum())
        return total


@dataclass(frozen=True)
class _Bags:
    """Of each item of a block its neighbours, as compressed rows."""

    items: slice
    starts: Tensor
    neighbours: Tensor
    gain: Tensor

    def sums(self, belief: Tensor) -> Tensor:
        """(n, C) sum of gain times the neighbours' ``belief`` (N, C)."""
        return F.embedding_bag(
            self.neighbours,
            belief,
            self.starts,
            mode="sum",
            per_sample_weights=self.gain,
            include_last_offset=True,
        )


def _bags(
    ends: NDArray[np.integer], others: NDArray[np.integer], gain: NDArray[np.floating], n: int
) -> list[_Bags]:
    """Neighbours by item, a block of items at a time, from judgements in any order.

    First by block, then by item within each: both times what is written to stays in the cache,
    which sorting by item at once would leave at every step.
    """
    found = []
    owner = ends // BLOCK
    n_blocks = -(-n // BLOCK)
    by_block = _rows(owner, others, gain, n_blocks, n)
    items_of = _rows(owner, ends, np.empty(len(ends), np.int8), n_blocks, n).indices
    for block, items in enumerate(chunks(n, BLOCK)):
        part = slice(by_block.indptr[block], by_block.indptr[block + 1])
        rows = _rows(
            items_of[part] - items.start,
            by_block.indices[part],
            by_block.data[part],
            items.stop - items.start,
            n,
        )
        found.append(_Bags(items, *map(torch.from_numpy, (rows.indptr, rows.indices, rows.data))))
    return found


def _rows(
    row: NDArray[np.integer],
    column: NDArray[np.integer],
    value: NDArray[np.generic],
    n_rows: int,
    n_columns: int,
) -> sparse.csr_array:
    """By row, in the order in which they came; repetitions stay."""
    entries = sparse.coo_array((value, (row, column)), shape=(n_rows, n_columns))
    entries.has_canonical_format = True  # or SciPy would sort each row, to add repetitions up
    return entries.tocsr()


def field_operator(graph: Graph, channel: Channel, like: Tensor) -> ScatterField | SparseField:
    """The fastest that can do it."""
    if channel.two_rate and graph.device.type == "cpu":
        return SparseField(graph, channel, like)
    return ScatterField(graph, channel, like)
