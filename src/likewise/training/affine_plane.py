"""Affine planes: blocks of items such that any two blocks meet in exactly one group of blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IndexArray = NDArray[np.integer]

# Planes exist for primes; up to here a line's number fits in 16 bits.
_PRIMES = [p for p in range(2, 256) if all(p % d for d in range(2, p))]


class AffinePlane:
    """Items dealt at random to the points of an affine plane, and the line through two of them.

    A point is (x, y), both below the order q; it is coded x * 2q + y, so that the difference of
    two codes tells both differences. Lines y = slope x + t are numbered slope * q + t, the upright
    ones x = t q² + t. Two items of one point lie on all its lines: they are given one at random.
    """

    def __init__(self, order: int, n_items: int, rng: np.random.Generator) -> None:
        q = order
        self.n_lines = count_lines(q)
        points = np.arange(n_items) * q**2 // max(n_items, 1)  # as many items at each
        self._code = np.empty(n_items, np.int32)
        self._code[rng.permutation(n_items)] = points // q * (2 * q) + points % q
        self._offset = np.int32(2 * q * q + q)
        self._slope = _slopes(q, inside=int(rng.integers(q + 1)) if q > 1 else 0)
        self._line = _lines(q)

    def line(self, left: IndexArray, right: IndexArray) -> NDArray[np.uint16]:
        """(m,) line of each pair of items."""
        here, there = self._code.take(left), self._code.take(right)
        np.subtract(there, here, out=there)
        there += self._offset
        line: NDArray[np.uint16] = self._line.take(self._slope.take(there) + here)
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


def count_lines(q: int) -> int:
    """The lines of a plane of order q; without a plane, one."""
    return 1 if q == 1 else q * q + q


def plane_order(steps: float, n_items: int) -> int:
    """The prime q (or 1: no plane) whose number of lines is nearest, with items for each point."""
    fitting = [1, *(q for q in _PRIMES if q * q <= n_items)]
    lines = np.array([count_lines(q) for q in fitting])
    return fitting[int(np.argmin(np.abs(np.log(lines / max(steps, 1.0)))))]
