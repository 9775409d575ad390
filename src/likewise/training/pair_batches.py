"""Batches of listed judgements that share the forwarding of their items.

A judgement drawn at random brings two items of its own: at a million items, two forwards each.
Here the items of an epoch are dealt at random into q² blocks, seen as the points of an affine
plane of prime order q. Its q² + q lines have q points each, and any two points lie on exactly one
line. A step forwards the N / q items of one line and takes every judgement between its blocks:
over the epoch each judgement is met once, and a forwarded item serves M / (N q) judgements at a
time, which is the most that N / q items can serve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.edges import chunks
from likewise.training.affine_plane import AffinePlane, count_lines, plane_order

IndexArray = NDArray[np.integer]


PIECE = 2048  # items whose activations stay in a core's cache


@dataclass(frozen=True)
class PairBatch:
    """One step: the items to forward and the judgements among them."""

    # (n,) distinct items, each named by some judgement of the batch.
    items: IndexArray
    # (b,) positions of the judged items within ``items``.
    left: IndexArray
    right: IndexArray
    # (b,) answers.
    same: NDArray[np.bool_]
    # (b,) how much each counts; None: all alike.
    weight: NDArray[np.float32] | None
    # (b,) which judgements of the set these are.
    rows: IndexArray


class PairSchedule:
    """Epochs over listed judgements: every judgement once, each batch sharing its items.

    Parameters
    ----------
    pairs : Pairs
    batch_judgements : int
        About how many judgements a step should take. Larger batches share forwards better: a step
        has N / q items, q about the root of M / ``batch_judgements``.

    An epoch needs 4 bytes a judgement beside the judgements themselves, and some arrays of the
    size of the items.
    """

    def __init__(self, pairs: Pairs, batch_judgements: int) -> None:
        if batch_judgements < 1:
            raise InputError(f"batch_judgements must be at least 1, but is {batch_judgements}.")
        self.pairs = pairs.explicit()
        self.batch_judgements = batch_judgements
        self.order = plane_order(len(pairs) / batch_judgements, pairs.n_items)

    def assignment(self, rng: np.random.Generator) -> BlockAssignment:
        """Deal the items afresh: the judgements by line, in no order."""
        return BlockAssignment(self.pairs, AffinePlane(self.order, self.pairs.n_items, rng))

    def epoch(self, rng: np.random.Generator) -> Iterator[PairBatch]:
        """The batches of one epoch, dealt and ordered afresh."""
        assignment = self.assignment(rng)
        for line in rng.permutation(count_lines(self.order)):
            for rows in self._parts(assignment.rows(line), rng):
                yield assignment.batch(rows)

    def _parts(self, rows: IndexArray, rng: np.random.Generator) -> list[IndexArray]:
        """A line with many more judgements than asked for, as when the items are few, in parts."""
        number = round(len(rows) / self.batch_judgements)
        if number < 2:
            return [rows] if len(rows) else []
        return np.array_split(rng.permutation(rows), number)


class BlockAssignment:
    """The judgements of one epoch by the line of the plane that their items lie on."""

    def __init__(self, pairs: Pairs, plane: AffinePlane) -> None:
        self._pairs = pairs
        self._used = np.zeros(pairs.n_items, bool)
        self._position = np.empty(pairs.n_items, np.int32)
        self._rows = np.empty(len(pairs), np.int32)
        self._starts: list[NDArray[np.int64]] = []  # of each chunk, where every line starts
        for part in chunks(len(pairs)):
            line = plane.line(pairs.left[part], pairs.right[part])
            self._rows[part] = np.argsort(line, kind="stable")  # 16-bit keys: a radix sort
            self._rows[part] += part.start
            number = np.bincount(line, minlength=plane.n_lines)
            self._starts.append(part.start + np.concatenate([[0], np.cumsum(number)]))

    def rows(self, line: int) -> NDArray[np.int32]:
        """(b,) the judgements on a line."""
        parts = [self._rows[start[line] : start[line + 1]] for start in self._starts]
        return np.concatenate(parts) if parts else self._rows

    def batch(self, rows: IndexArray) -> PairBatch:
        """These judgements, and the items that they name."""
        pairs, used = self._pairs, self._used
        left, right = pairs.left.take(rows), pairs.right.take(rows)  # far faster than indexing
        used[left] = True
        used[right] = True
        items = np.flatnonzero(used)
        self._position[items] = np.arange(len(items), dtype=np.int32)
        used[items] = False
        weight = None if pairs.weight is None else pairs.weight.take(rows)
        left, right = self._position.take(left), self._position.take(right)
        return PairBatch(items, left, right, pairs.same.take(rows), weight, rows)


def forward_in_pieces(network: nn.Module, x: Tensor, size: int = PIECE) -> Tensor:
    """(n, C) outputs for ``x`` (n, ...), in pieces whose activations stay in a core's cache.

    On a CPU nearly twice as fast as one large forward, backward included. At once where that
    gains nothing, or where the items of a batch see each other (batch normalisation).
    """
    if not goes_in_pieces(network, x, len(x), size):
        whole: Tensor = network(x)
        return whole
    return torch.cat([network(part) for part in torch.split(x, size)])


def forward_rows(network: nn.Module, x: Tensor, index: Tensor, size: int = PIECE) -> Tensor:
    """(n, C) outputs for the rows ``index`` (n,) of ``x``, each piece fetched when it is due."""
    if not goes_in_pieces(network, x, len(index), size):
        whole: Tensor = network(x[index])
        return whole
    return torch.cat([network(x.index_select(0, part)) for part in torch.split(index, size)])


def goes_in_pieces(network: nn.Module, x: Tensor, n: int, size: int = PIECE) -> bool:
    return n > size and x.device.type == "cpu" and not _mixes_items(network)


def _mixes_items(network: nn.Module) -> bool:
    return any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in network.modules())
