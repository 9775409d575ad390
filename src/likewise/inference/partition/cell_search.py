"""The search for groups that have cells of their own: moves of items, merges and splits of groups.

What two rates find is often too coarse a start: kinds that people often take for each other are one
group there. Moves of single items never divide it, since an item that leaves alone has no cells
yet. So whole sides of a group leave together: those that the leading singular vector of what its
members were answered, less what the cells say, tells apart (as in bisection by eigenvectors, Newman
2006). What does not raise the evidence is undone. Which pairs were asked counts as it does under
two rates (`asking`): kinds that were compared because they look alike are not one for that.
"""

from __future__ import annotations

import numpy as np

from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray
from likewise.inference.partition.blocks import Blocks, fit_cells
from likewise.inference.partition.model import Problem, size_log_prior
from likewise.inference.partition.search import canonical, leading_vector

ANNEAL_FROM, ANNEAL_SWEEPS = 2.0, 20
MAX_VISITS = 12_000  # of items, by one annealing or one chain
FEW_ITEMS = 200  # beyond, a partition is not heated again after every cut
SMALLEST = 4  # items of a group that is worth cutting
LOPSIDED = 0.05  # of the items on one side: then the median is the border
MAX_TURNS = 6
MAX_CUT = 20_000  # items to be visited after a cut, over all cuts that are tried
TOLERANCE = 1e-3  # nats


class CellSearch:
    """Partitions under cells of their own; ``counts`` (2, N, N) of "same" and "different"."""

    def __init__(self, problem: Problem, counts: FloatArray) -> None:
        self.problem, self.counts = problem, counts
        self._asked = np.zeros(counts.shape[1:])  # 1 where a pair was asked
        answers = problem.answers
        self._asked[answers.left, answers.right] = self._asked[answers.right, answers.left] = 1

    def blocks(self, labels: IndexArray) -> tuple[float, Blocks]:
        """A partition with the cells that fit it, and its evidence."""
        labels = canonical(labels)
        size_prior, total = size_log_prior(labels, self.problem.n_groups)
        links = None
        if (ratios := self.problem.asked(labels)) is not None:
            size_prior = size_prior + ratios.by_size
            total += float(ratios.by_size[np.bincount(labels)].sum()) + ratios.baseline
            links = self._asked * (ratios.asked - ratios.usual)
        blocks = Blocks(self.counts, labels, size_prior, self.problem.fixed, links)
        blocks.prior = fit_cells(blocks)
        return blocks.score() + total, blocks

    def anneal(self, labels: IndexArray, heated: int = 2) -> tuple[float, Blocks]:
        """Moves, merges and cell priors in turn, the first turns ``heated``; the highest evidence
        and its partition."""
        rng, found = self.problem.rng, [self.blocks(labels)]
        sweeps = max(min(ANNEAL_SWEEPS, MAX_VISITS // len(labels)), 2)
        for turn in range(heated + 2):
            _, blocks = self.blocks(labels)
            blocks.anneal(rng, ANNEAL_FROM, sweeps if turn < heated else 0)
            while not self.problem.fixed and blocks.merge():
                blocks.settle(rng)
            labels = canonical(blocks.labels)
            found.append(self.blocks(labels))
        return max(found, key=lambda one: one[0])

    def with_splits(self, best: tuple[float, Blocks]) -> tuple[float, Blocks]:
        """Groups cut where that raises the evidence, and all of it annealed again, in turn."""
        left = MAX_CUT // len(best[1].labels) + 1
        for _ in range(MAX_TURNS):
            labels = self._split(best, left)
            left -= int(best[1].labels.max()) + 1
            if labels is None:
                break
            other = self.anneal(labels, 2 if len(labels) <= FEW_ITEMS else 0)
            if other[0] <= best[0] + TOLERANCE:
                break
            best = other
        return best

    def _split(self, best: tuple[float, Blocks], most: int) -> IntArray | None:
        """(N,) the partition after all cuts that gain, one after the other, of the ``most`` that
        are tried, large groups first; None without any."""
        value, labels, found = best[0], canonical(best[1].labels), None
        for group in np.argsort(-np.bincount(labels), kind="stable")[: max(most, 0)]:
            members = np.flatnonzero(labels == group)
            if len(members) < SMALLEST:
                continue
            trial = labels.copy()
            trial[members[_side(self.counts, labels, members)]] = labels.max() + 1
            trial = self._settled(trial)
            evidence = self.blocks(trial)[0]
            if evidence > value + TOLERANCE:
                value, labels, found = evidence, trial, trial
        return found

    def _settled(self, labels: IntArray) -> IntArray:
        """(N,) after moves of items; with a given number of groups two others are joined first."""
        if self.problem.fixed:
            _, open_number = CellSearch(self.problem.of_any_number(), self.counts).blocks(labels)
            open_number.merge(at_a_loss=True)
            labels = canonical(open_number.labels)
        _, blocks = self.blocks(labels)
        blocks.settle(self.problem.rng, max(MAX_VISITS // len(labels), 3))
        return canonical(blocks.labels)


def _side(counts: FloatArray, labels: IntArray, members: IntArray) -> BoolArray:
    """(m,) one side of a group's ``members`` (m,), by their answers about all items."""
    same, total = counts[0][members], counts[:, members].sum(0)  # (m, N)
    groups = np.eye(int(labels.max()) + 1)[labels]  # (N, K)
    yes, asked = (same @ groups).sum(0), (total @ groups).sum(0)
    rate = ((yes + 1) / (asked + 2))[labels]  # (N,) of the cell with each item's group
    surplus = (same - rate * total) / np.sqrt(rate * (1 - rate))
    leading = leading_vector(surplus @ surplus.T)
    side = leading > 0
    if not LOPSIDED <= side.mean() <= 1 - LOPSIDED:
        side = leading > np.median(leading)
    return np.asarray(side)
