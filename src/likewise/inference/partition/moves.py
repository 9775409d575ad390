"""Moves of single items between groups: greedy, annealed, or Gibbs sweeps that count agreement."""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.arrays import FloatArray, IndexArray, IntArray
from likewise.inference.partition.search import (
    MAX_DENSE_GROUPS,
    TOLERANCE,
    WeightedGraph,
    canonical,
)


class Mover:
    """A partition whose items move one at a time.

    Parameters
    ----------
    labels : (N,) groups at first.
    size_prior : (N + 1,) F, see `search`.
    fixed : keep the number of groups: none is emptied, none is opened.
    """

    def __init__(
        self, graph: WeightedGraph, labels: IndexArray, size_prior: FloatArray, fixed: bool
    ) -> None:
        self.graph = graph
        self._prior = size_prior
        self._step = np.append(np.diff(size_prior), -np.inf)  # F(n + 1) - F(n)
        self._fixed = fixed
        self._bounds = graph.start.tolist()
        self._reset(labels)

    @property
    def labels(self) -> IntArray:
        """(N,) the groups now, numbered by first appearance."""
        return canonical(self._labels)

    def _reset(self, labels: IndexArray) -> None:
        """Number the groups anew and leave room for others."""
        self._labels = canonical(labels)
        n_groups = int(self._labels.max(initial=-1)) + 1
        room = n_groups if self._fixed else n_groups + max(32, n_groups // 2)
        self._size = np.bincount(self._labels, minlength=room)
        # What an item that joins gains; one empty group stands open, the others are closed.
        self._join = np.where(self._size > 0, self._step[self._size], -np.inf)
        self._free = list(range(room - 1, n_groups - 1, -1))
        self._dense = room <= MAX_DENSE_GROUPS
        self._open()

    def _open(self) -> None:
        self._spare = -1
        if not self._fixed and self._free:
            self._spare = self._free.pop()
            self._join[self._spare] = self._step[0]

    def gains(self, item: int) -> tuple[IntArray | None, FloatArray]:
        """Groups (or None: all) and the objective that the item adds in each of them."""
        rows = slice(self._bounds[item], self._bounds[item + 1])
        near = self._labels[self.graph.neighbour[rows]]
        weight = self.graph.weight[rows]
        own = int(self._labels[item])
        if self._dense:
            total = np.bincount(near, weight, len(self._join)).astype(np.float64)
            gain = total + self._join
            if not self._fixed:  # groups that the item was compared with, its own and an empty one
                far = np.bincount(near, minlength=len(gain)) == 0
                if self._spare >= 0:
                    far[self._spare] = False
                gain[far] = -np.inf
            gain[own] = total[own] + self._step[self._size[own] - 1]
            if self._size[own] == 1 and self._spare >= 0:  # it is alone already
                gain[self._spare] = -np.inf
            return None, gain
        alone = self._spare < 0 or self._size[own] == 1
        extra = [own] if alone else [own, self._spare]
        groups, inverse = np.unique(np.append(near, extra), return_inverse=True)
        total = np.bincount(inverse[: len(near)], weight, len(groups)).astype(np.float64)
        gain = total + self._join[groups]
        here = int(inverse[len(near)])
        gain[here] = total[here] + self._step[self._size[own] - 1]
        return groups, gain

    def _chances(self, groups: IntArray | None, gain: FloatArray, others: IndexArray) -> FloatArray:
        """(n,) P(an item of these gains is in the group of each of the others)."""
        place = self._labels[others]
        if groups is not None:
            place = np.searchsorted(groups, place)
        return softmax(gain)[place]

    def own_chance(self, item: int) -> float:
        """P(the item is in its group), all else as it is."""
        return float(self._chances(*self.gains(item), np.array([item]))[0])

    def sweep(
        self,
        order: IndexArray,
        rng: np.random.Generator,
        temperature: float,
        agreement: FloatArray | None = None,
    ) -> IntArray:
        """Visit the items of ``order``; the ones that moved. Temperature 0 takes the best.

        To ``agreement`` (E,) is added, for each item visited, the chance of being in the group of
        the other end of its edges.
        """
        if len(self._free) < 8 and not self._fixed:
            self._reset(self._labels)
        moved = []
        for item in order.tolist():
            own = int(self._labels[item])
            stays = self._fixed and self._size[own] == 1
            if stays and agreement is None:
                continue
            groups, gain = self.gains(item)
            if agreement is not None:
                rows = slice(self._bounds[item], self._bounds[item + 1])
                near = self.graph.neighbour[rows]
                agreement[self.graph.edge[rows]] += self._chances(groups, gain, near)
            if stays:
                continue
            if temperature > 0:
                # Gumbel noise: the largest is a draw from softmax(gain / temperature).
                best = int(np.argmax(gain + temperature * rng.gumbel(size=len(gain))))
            else:
                best = int(np.argmax(gain))
                here = own if groups is None else int(np.searchsorted(groups, own))
                if gain[best] <= gain[here] + TOLERANCE:
                    continue
            target = best if groups is None else int(groups[best])
            if target != own:
                self._move(item, own, target)
                moved.append(item)
        return np.array(moved, np.int64)

    def _move(self, item: int, own: int, target: int) -> None:
        self._labels[item] = target
        self._size[own] -= 1
        self._size[target] += 1
        self._join[target] = self._step[self._size[target]]
        if self._size[own]:
            self._join[own] = self._step[self._size[own]]
        else:
            self._join[own] = -np.inf
            self._free.append(own)
        if target == self._spare:
            self._open()

    def settle(self, rng: np.random.Generator, max_sweeps: int = 30) -> None:
        """Greedy sweeps; after the first only items whose neighbours moved are visited again."""
        order = rng.permutation(self.graph.n_items)
        for _ in range(max_sweeps):
            moved = self.sweep(order, rng, 0.0)
            if not len(moved):
                return
            near = [
                self.graph.neighbour[self._bounds[i] : self._bounds[i + 1]] for i in moved.tolist()
            ]
            order = rng.permutation(np.unique(np.concatenate([moved, *near])))

    def anneal(self, rng: np.random.Generator, start: float, n_sweeps: int) -> None:
        """Sweeps at temperatures that fall from ``start`` to 0 in equal steps."""
        for temperature in np.linspace(start, 0.0, n_sweeps, endpoint=False):
            self.sweep(rng.permutation(self.graph.n_items), rng, float(temperature))
        self.settle(rng)


def sample_agreement(
    mover: Mover, rng: np.random.Generator, n_sweeps: int
) -> tuple[FloatArray, IntArray]:
    """(E,) P(the ends of each edge share a group), Rao-Blackwellised at each end, and (S, N) draws.

    By Gibbs sweeps from where the mover is.
    """
    graph = mover.graph
    total = np.zeros(len(graph.edge_weight))
    drawn = np.empty((n_sweeps, graph.n_items), np.int64)
    for turn in range(n_sweeps):
        mover.sweep(rng.permutation(graph.n_items), rng, 1.0, total)
        drawn[turn] = mover.labels
    return total / (2 * n_sweeps), drawn


def softmax(values: FloatArray) -> FloatArray:
    """(K,) probabilities of log weights (K,)."""
    shifted = np.exp(values - values.max())
    chances: FloatArray = shifted / shifted.sum()
    return chances
