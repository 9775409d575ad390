"""What its judgements tell each item: the sums that an iteration of inference is made of.

In belief propagation an item adds up the messages of its judgements. In mean field, with beliefs
q (N, C), its field is the sum over its judgements of the expected log likelihood of the answer
under the other item's belief; for two rates, of gain * q_other up to a constant, gain being
log P(answer | equal) - log P(answer | different).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from likewise.inference.propagation.graph import Graph
from likewise.nn.cpu_kernels import Bags, compressed
from likewise.noise.channels import Channel
from likewise.pairs.edges import chunks

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
        gain = _gains(graph, channel, like).numpy()
        table = channel.log_table().to(like)[:, 1:]
        self.if_different = 0.0  # what the judgements would cost were all pairs different
        for part in graph.chunks():
            self.if_different += float(graph.edge_log_table(channel, part, table).double().sum())
        ends = graph.left.numpy(), graph.right.numpy()
        self._rights = _bags(*ends, gain, graph.n_items)
        self._lefts = _bags(*ends[::-1], gain, graph.n_items)

    def blocks(self, belief: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """The field under ``belief`` (N, C): items as a slice, and theirs (n, C)."""
        blocks = chunks(len(belief), BLOCK)
        for items, rights, lefts in zip(blocks, self._rights, self._lefts, strict=True):
            yield items, rights.sums(belief).add_(lefts.sums(belief))

    def expected_log_likelihood(self, belief: Tensor) -> float:
        """Of all judgements, under independent beliefs: a judgement counts once."""
        total = self.if_different
        for items, rights in zip(chunks(len(belief), BLOCK), self._rights, strict=True):
            gains = (belief[items] * rights.sums(belief)).sum(1)
            total += float(gains.double().sum())
        return total


class MessageSums:
    """(N, C) sums of messages to the items: on the CPU as bags, since adding one by one is slow."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._bags: tuple[list[Bags], list[Bags]] | None = None
        if graph.device.type == "cpu":
            edges = np.arange(len(graph), dtype=graph.left.numpy().dtype)
            ends = graph.left.numpy(), graph.right.numpy()
            left, right = (_bags(end, edges, None, graph.n_items) for end in ends)
            self._bags = left, right

    def __call__(self, to_left: Tensor, to_right: Tensor, start: Tensor) -> Tensor:
        """``start`` (N, C) plus all messages (M, C) to either end of each judgement."""
        total = start.clone()
        if self._bags is None:
            total.index_add_(0, self._graph.left, to_left)
            return total.index_add_(0, self._graph.right, to_right)
        for items, left, right in zip(chunks(len(total), BLOCK), *self._bags, strict=True):
            total[items] += left.sums(to_left).add_(right.sums(to_right))
        return total


def _bags(
    owner: NDArray[np.integer],
    member: NDArray[np.integer],
    gain: NDArray[np.floating] | None,
    n_items: int,
) -> list[Bags]:
    """Members by owner, a block of items at a time, from members in any order.

    First by block, then by item within each: both times what is written to stays in the cache,
    which sorting by item at once would leave at every step.
    """
    block, n_blocks = owner // BLOCK, -(-n_items // BLOCK)
    nothing = np.empty(len(owner), np.int8)
    by_block = compressed(block, member, nothing if gain is None else gain, n_blocks)
    owners = compressed(block, owner, nothing, n_blocks).indices
    found = []
    for k, items in enumerate(chunks(n_items, BLOCK)):
        part = slice(by_block.indptr[k], by_block.indptr[k + 1])
        weight = None if gain is None else by_block.data[part]
        local = owners[part] - items.start
        found.append(Bags.of(local, by_block.indices[part], weight, items.stop - items.start))
    return found


def _gains(graph: Graph, channel: Channel, like: Tensor) -> Tensor:
    """(M,) what each answer tells for equal classes against different ones, weights included."""
    table = channel.log_table().to(like)
    by_group = table[:, :1] - table[:, 1:]
    gain = torch.empty(len(graph), dtype=like.dtype)
    for part in graph.chunks():
        gain[part] = graph.edge_log_table(channel, part, by_group)[:, 0]
    return gain


def add_field(field: Tensor, graph: Graph, channel: Channel, belief: Tensor) -> None:
    """Add to ``field`` (N, C) what the judgements tell under ``belief`` (N, C), once.

    A field that is asked for once is not worth the sorting of `SparseField`.
    """
    if not (channel.two_rate and graph.device.type == "cpu"):
        for items, told in ScatterField(graph, channel, belief).blocks(belief):
            field[items] += told
        return
    ends, shape = (graph.left.numpy(), graph.right.numpy()), (graph.n_items, graph.n_items)
    gains = sparse.coo_array((_gains(graph, channel, belief).numpy(), ends), shape=shape)
    with ThreadPoolExecutor(2) as pool:
        for told in pool.map(lambda one_way: one_way @ belief.numpy(), (gains, gains.T)):
            field += torch.from_numpy(told)


def field_operator(graph: Graph, channel: Channel, like: Tensor) -> ScatterField | SparseField:
    """The fastest that can do it."""
    if channel.two_rate and graph.device.type == "cpu":
        return SparseField(graph, channel, like)
    return ScatterField(graph, channel, like)
