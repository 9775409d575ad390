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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.edges import chunks
from likewise.errors import InputError
from likewise.pairs import Pairs

IndexArray = NDArray[np.integer[Any]]

# Orders of planes: about as many judgements a step as asked for, whatever the number of them.
_PRIMES = [p for p in range(2, 256) if all(p % d for d in range(2, p))]


@dataclass(frozen=True)
class PairBatch:
    """One step: the items to forward and the judgements among them.

    Attributes
    ----------
    items : (n,) distinct items, each named by some judgement of the batch
    left, right : (b,) positions of the judged items within ``items``
    same : (b,) answers
    weight : (b,) or None
    rows : (b,) which judgements of the set these are
    """

    items: IndexArray
    left: IndexArray
    right: IndexArray
    same: NDArray[np.bool_]
    weight: NDArray[np.float32] | None
    rows: IndexArray


class PairSchedule:
    """An epoch over listed judgements: every judgement once, each batch sharing its items.

    Parameters
    ----------
    pairs : Pairs
    batch_judgements : int
        About how many judgements a step should take. Larger batches share forwards better: a step
        has N / q items, q about the root of M / ``batch_judgements``.

    Iterating over `epoch` needs 4 bytes a judgement beside the judgements themselves, and some
    arrays of the size of the items.
    """

    def __init__(self, pairs: Pairs, batch_judgements: int) -> None:
        if batch_judgements < 1:
            raise InputError(f"batch_judgements must be at least 1, but is {batch_judgements}.")
        self.pairs = pairs.explicit()
        self.batch_judgements = batch_judgements
        self.order = _plane_order(len(pairs) / batch_judgements, pairs.n_items)

    def epoch(self, rng: np.random.Generator) -> Iterator[PairBatch]:
        """The batches of one epoch, dealt and ordered afresh."""
        n_items = self.pairs.n_items
        rows, starts = self._rows_by_line(Plane(self.order, n_items, rng))
        used = np.zeros(n_items, bool)
        position = np.empty(n_items, np.int32)
        for line in rng.permutation(_n_lines(self.order)):
            chosen = np.concatenate(
                [rows[start[line] : start[line + 1]] for start in starts] or [rows]
            )
            for part in self._parts(chosen, rng):
                yield self._batch(part, used, position)

    def _parts(self, rows: IndexArray, rng: np.random.Generator) -> list[IndexArray]:
        """A line with many more judgements than asked for, as when the items are few, in parts."""
        number = round(len(rows) / self.batch_judgements)
        if number < 2:
            return [rows] if len(rows) else []
        return np.array_split(rng.permutation(rows), number)

    def _rows_by_line(self, plane: Plane) -> tuple[NDArray[np.int32], list[NDArray[np.int64]]]:
        """Judgements sorted by line chunk by chunk: of each chunk, where every line starts."""
        left, right = self.pairs.left, self.pairs.right
        rows = np.empty(len(left), np.int32)
        starts = []
        for part in chunks(len(left)):
            line = plane.line(left[part], right[part])
            rows[part] = np.argsort(line, kind="stable")  # 16-bit keys: a radix sort
            rows[part] += part.start
            number = np.bincount(line, minlength=_n_lines(self.order))
            starts.append(part.start + np.concatenate([[0], np.cumsum(number)]))
        return rows, starts

    def _batch(
        self, rows: IndexArray, used: NDArray[np.bool_], position: NDArray[np.int32]
    ) -> PairBatch:
        left, right = self.pairs.left[rows], self.pairs.right[rows]
        used[left] = True
        used[right] = True
        items = np.flatnonzero(used)
        position[items] = np.arange(len(items), dtype=np.int32)
        used[items] = False
        weight = None if self.pairs.weight is None else self.pairs.weight[rows]
        same = self.pairs.same[rows]
        return PairBatch(items, position[left], position[right], same, weight, rows)


def forward_in_pieces(network: nn.Module, x: Tensor, items: Tensor, size: int = 4096) -> Tensor:
    """(n, C) outputs for ``x[items]``, in pieces whose activations stay in a core's cache.

    On a CPU nearly twice as fast as one large forward, backward included. Not for networks in
    which the items of a batch see each other (batch normalisation).
    """
    return torch.cat([network(x[part]) for part in torch.split(items, size)])


class Plane:
    """Items dealt at random to the points of an affine plane, and the line through two of them.

    A point is (x, y), both below the order q; it is coded x * 2q + y, so that the difference of
    two codes tells both differences. Lines y = slope x + t are numbered slope * q + t, the upright
    ones x = t q² + t. Two items of one point lie on all its lines: they are given one at random.
    """

    def __init__(self, order: int, n_items: int, rng: np.random.Generator) -> None:
        q = order
        points = np.arange(n_items) * q**2 // max(n_items, 1)  # as many items at each
        self._code = np.empty(n_items, np.int32)
        self._code[rng.permutation(n_items)] = points // q * (2 * q) + points % q
        self._offset = np.int32(2 * q * q + q)
        self._slope = _slopes(q, inside=int(rng.integers(q + 1)) if q > 1 else 0)
        self._line = _lines(q)

    def line(self, left: IndexArray, right: IndexArray) -> NDArray[np.uint16]:
        """(m,) line of each pair of items."""
        here, there = self._code[left], self._code[right]
        np.subtract(there, here, out=there)
        there += self._offset
        line: NDArray[np.uint16] = self._line[self._slope[there] + here]
        return line


def _slopes(q: int, inside: int) -> NDArray[np.int32]:
    """By difference of codes (offset to start at 0): the start of the slope's row in `_lines`."""
    run, rise = np.meshgrid(np.arange(-q, q), np.arange(-q, q), indexing="ij")
    inverse = np.array([pow(d, -1, q) if d else 0 for d in range(q)])
    slope = np.where(run % q == 0, q, rise * inverse[run % q] % q)
    slope[q, q] = inside  # no difference at all
    return (slope * 2 * q * q).astype(np.int32).ravel()


def _lines(q: int) -> NDArray[np.uint16]:
    """By slope (q: upright) and code of a point: the line through it."""
    slope = np.arange(q)[:, None]
    x, y = np.divmod(np.arange(2 * q * q), 2 * q)
    sloped = slope * q + (y - slope * x) % q
    upright = q * q + x
    return np.concatenate([sloped.ravel(), upright]).astype(np.uint16)


def _n_lines(q: int) -> int:
    return 1 if q == 1 else q * q + q


def _plane_order(steps: float, n_items: int) -> int:
    """The prime q (or 1: no plane) whose number of lines is nearest, with items for each point."""
    fitting = [1, *(q for q in _PRIMES if q * q <= n_items)]
    lines = np.array([_n_lines(q) for q in fitting])
    return fitting[int(np.argmin(np.abs(np.log(lines / max(steps, 1.0)))))]
