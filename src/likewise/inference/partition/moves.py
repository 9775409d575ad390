"""Moves of single items between groups: greedy, annealed, or Gibbs sweeps that count agreement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.inference.partition.answers import softmax_rows
from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray
from likewise.inference.partition.search import WeightedGraph, canonical
from likewise.inference.partition.visits import TOLERANCE, own_chances, visit

# Up to so many numbers the weights of all items into all groups are kept, beyond it those of one
# item are added up when it is visited.
MAX_TABLE = 8_000_000


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
        self._table: Table | None = None
        if self.graph.n_items * room <= MAX_TABLE:
            self._table = Table(self.graph, self._labels, room, counted=not self._fixed)
        self._open()

    def _open(self) -> None:
        self._spare = -1
        if not self._fixed and self._free:
            self._spare = self._free.pop()
            self._join[self._spare] = self._step[0]

    def gains(self, item: int) -> tuple[IntArray | None, FloatArray]:
        """Groups (or None: all) and the objective that the item adds in each of them."""
        if self._table is not None:
            return None, self.gains_of(np.array([item]))[0]
        rows = slice(self._bounds[item], self._bounds[item + 1])
        near, weight = self._labels[self.graph.neighbour[rows]], self.graph.weight[rows]
        own = int(self._labels[item])
        alone = self._spare < 0 or self._size[own] == 1
        extra = [own] if alone else [own, self._spare]
        groups, inverse = np.unique(np.append(near, extra), return_inverse=True)
        total = np.bincount(inverse[: len(near)], weight, len(groups)).astype(np.float64)
        gain = total + self._join[groups]
        here = int(inverse[len(near)])
        gain[here] = total[here] + self._step[self._size[own] - 1]
        return groups, gain

    def gains_of(self, items: IndexArray) -> FloatArray:
        """(n, K) the objective that each item adds in every group, where a table is kept."""
        table, own = self._table, self._labels[items]
        assert table is not None
        gain = table.total[items] + self._join
        if table.count is not None:  # groups that it was compared with, its own and an empty one
            far = table.count[items] == 0
            if self._spare >= 0:
                far[:, self._spare] = False
            gain[far] = -np.inf
        here = np.arange(len(items)), own
        gain[here] = table.total[items, own] + self._step[self._size[own] - 1]
        if self._spare >= 0:  # whoever is alone already
            gain[self._size[own] == 1, self._spare] = -np.inf
        return gain

    def groups_of(self, items: IndexArray) -> IntArray:
        """(n,) where they are, as the groups are numbered now."""
        return self._labels[items]

    def may_leave(self, groups: IndexArray) -> BoolArray:
        """(n,) whether an item may leave these groups."""
        free: BoolArray = self._size[groups] > 1 if self._fixed else np.ones(len(groups), bool)
        return free

    def own_chances(self) -> FloatArray:
        """(N,) P(each item is in its group), all others where they are."""
        n = self.graph.n_items
        if self._table is not None:
            return own_chances(self, n)
        return np.array([self._chances(*self.gains(i), np.array([i]))[0] for i in range(n)])

    def _chances(self, groups: IntArray | None, gain: FloatArray, others: IndexArray) -> FloatArray:
        """(n,) P(an item of these gains is in the group of each of the others)."""
        place = self._labels[others]
        if groups is not None:
            place = np.searchsorted(groups, place)
        return softmax(gain)[place]

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
        if self._table is None:
            return self._sweep_one_by_one(order, rng, temperature, agreement)
        if agreement is None:
            return visit(self, order, rng, temperature)

        def seen(items: IndexArray, gain: FloatArray) -> None:
            self._agree(items, softmax_rows(gain), agreement)

        return visit(self, order, rng, temperature, seen)

    def _agree(self, items: IndexArray, chances: FloatArray, agreement: FloatArray) -> None:
        """Add, for every edge of the items, the chance (n, K) of the other end's group."""
        begin = self.graph.start[items]
        length = self.graph.start[items + 1] - begin
        owner = np.repeat(np.arange(len(items)), length)
        rows = np.arange(len(owner)) + np.repeat(begin - np.cumsum(length) + length, length)
        near = self._labels[self.graph.neighbour[rows]]
        np.add.at(agreement, self.graph.edge[rows], chances[owner, near])

    def _sweep_one_by_one(
        self,
        order: IndexArray,
        rng: np.random.Generator,
        temperature: float,
        agreement: FloatArray | None,
    ) -> IntArray:
        moved = []
        for item in order.tolist():
            own = int(self._labels[item])
            stays = self._fixed and self._size[own] == 1
            groups, gain = self.gains(item)
            assert groups is not None
            if agreement is not None:
                rows = slice(self._bounds[item], self._bounds[item + 1])
                near = self.graph.neighbour[rows]
                agreement[self.graph.edge[rows]] += self._chances(groups, gain, near)
            if temperature > 0:
                best = int(np.argmax(gain + temperature * rng.gumbel(size=len(gain))))
            else:
                best, here = int(np.argmax(gain)), int(np.searchsorted(groups, own))
                stays = stays or gain[best] <= gain[here] + TOLERANCE
            if not stays and groups[best] != own:
                self.move(item, int(groups[best]))
                moved.append(item)
        return np.array(moved, np.int64)

    def move(self, item: int, target: int) -> None:
        """Put an item into another group."""
        own = int(self._labels[item])
        self._labels[item] = target
        self._size[own] -= 1
        self._size[target] += 1
        self._join[target] = self._step[self._size[target]]
        if self._size[own]:
            self._join[own] = self._step[self._size[own]]
        else:
            self._join[own] = -np.inf
            self._free.append(own)
        if self._table is not None:
            rows = slice(self._bounds[item], self._bounds[item + 1])
            self._table.move(self.graph.neighbour[rows], self.graph.weight[rows], own, target)
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


class Table:
    """What every item's edges into every group add up to, kept up while items move."""

    def __init__(self, graph: WeightedGraph, labels: IntArray, room: int, counted: bool) -> None:
        owner = np.repeat(np.arange(graph.n_items), np.diff(graph.start))
        cell = owner * room + labels[graph.neighbour]
        shape, size = (graph.n_items, room), graph.n_items * room
        total = np.bincount(cell, graph.weight, size).astype(np.float64)
        self.total: FloatArray = total.reshape(shape)
        """(N, K) weights."""
        self.count: NDArray[np.int32] | None = None
        """(N, K) numbers of edges, where they are wanted."""
        if counted:
            self.count = np.bincount(cell, minlength=size).astype(np.int32).reshape(shape)

    def move(self, near: IndexArray, weight: FloatArray, own: int, target: int) -> None:
        """An item with edges of ``weight`` to ``near`` leaves its own group for another."""
        self.total[near, own] -= weight
        self.total[near, target] += weight
        if self.count is not None:
            self.count[near, own] -= 1
            self.count[near, target] += 1


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
