"""Groups that are told apart more or less well: a stochastic block model of the answers.

Every pair of groups has its own P("same"), drawn from a Beta distribution for pairs across groups
and from another inside a group; both are integrated out, so that the evidence of a partition is a
sum of beta functions over the cells (Nowicki & Snijders 2001, collapsed as by McDaid et al. 2013).
Two kinds that are often taken for each other stay two groups: what lies between them is explained
by their cell, where two rates for all would call it "same".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray
from likewise.inference.partition.search import canonical
from likewise.inference.partition.visits import visit

MEANS = np.linspace(0.02, 0.98, 33)
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 1000.0)


@dataclass(frozen=True)
class CellPrior:
    """Beta(alpha, beta) of P("same") inside a group (index 0) and across two (index 1)."""

    alpha: tuple[float, float]
    """Pseudo-counts of "same"."""
    beta: tuple[float, float]
    """Pseudo-counts of "different"."""

    def score(self, counts: FloatArray, side: int) -> FloatArray:
        """(...) log marginal likelihood of cells with counts (2, ...) of "same", "different"."""
        same, different = counts
        a, b = self.alpha[side], self.beta[side]
        constant = gammaln(a + b) - gammaln(a) - gammaln(b)
        cells = gammaln(same + a) + gammaln(different + b) - gammaln(same + different + a + b)
        return np.asarray(cells + constant)


class Blocks:
    """A partition with its cells. ``same`` and ``different`` are (N, N) symmetric counts.

    ``links`` (N, N), symmetric: log-odds of one group beside the answers, of the pairs inside.
    """

    def __init__(
        self,
        same: FloatArray,
        different: FloatArray,
        labels: IndexArray,
        size_prior: FloatArray,
        fixed: bool,
        links: FloatArray | None = None,
    ) -> None:
        self.counts = np.stack([same, different])  # (2, N, N)
        self.links = links
        self.prior = CellPrior((4.0, 1.0), (1.0, 4.0))
        self._step = np.append(np.diff(size_prior), -np.inf)
        self.size_prior = size_prior
        self.fixed = fixed
        self.reset(labels)

    def reset(self, labels: IndexArray) -> None:
        """Take this partition; one group stays empty for items that leave theirs."""
        self.labels = canonical(labels)
        k = int(self.labels.max()) + 1
        room = k if self.fixed else k + 1
        one_hot = np.zeros((len(self.labels), room))
        one_hot[np.arange(len(self.labels)), self.labels] = 1
        self.size = one_hot.sum(0).astype(np.int64)
        self.near = self.counts @ one_hot  # (2, N, K) answers of an item to each group
        self.cells = np.einsum("nk,cnl->ckl", one_hot, self.near)  # inside ones counted twice
        if self.links is not None:
            self._linked = self.links @ one_hot  # (N, K) of an item to each group
        self._kept: tuple[CellPrior, FloatArray] | None = None  # `_scores` under a prior

    def score(self) -> float:
        """Evidence of the answers given the partition."""
        k = len(self.size)
        upper = np.triu_indices(k, 1)
        inside = self.cells[:, np.arange(k), np.arange(k)] / 2
        total = self.prior.score(inside, 0).sum()
        total += self.prior.score(self.cells[:, *upper], 1).sum()
        if self.links is not None:
            total += self._linked[np.arange(len(self.labels)), self.labels].sum() / 2
        return float(total)

    def gains_of(self, items: IndexArray) -> FloatArray:
        """(n, K) what the objective would gain with each item in each group, up to a constant."""
        score, own = self.prior.score, self.labels[items]
        row = self.near[:, items]  # (2, n, K)
        here = np.arange(len(items))
        home = self.cells[:, own]  # (2, n, K) cells of the item's own group, then without it
        left = score(home - row, 1)
        joined = self.cells[:, None] + row[:, :, None, :]  # (2, n, K, K)
        # Of the cells with its own group the item is taken out first.
        joined[:, here, :, own] = (home - row + row[:, here, own][:, :, None]).swapaxes(0, 1)
        base = self._scores()
        gain = score(joined, 1) - base  # (n, K, K)
        gain[here, :, own] += base[:, own].T - left
        gain[here, own] = base[own] - left
        groups = np.arange(gain.shape[1])
        gain[:, groups, groups] = 0.0
        inside = np.repeat(self.cells[:, None, groups, groups] / 2, len(items), axis=1)
        inside[:, here, own] -= row[:, here, own]
        total = gain.sum(2) + score(inside + row, 0) - score(inside, 0)
        if self.links is not None:
            total += self._linked[items]
        size = np.tile(self.size, (len(items), 1))
        size[here, own] -= 1
        total += self._step[size]
        if not self.fixed:  # one empty group stands open, to those who are not alone already
            empty = np.flatnonzero(self.size == 0)
            total[:, empty[1:]] = -np.inf
            total[self.size[own] == 1, empty[:1]] = -np.inf
        return np.asarray(total)

    def _scores(self) -> FloatArray:
        """(K, K) of the cells across groups; of two groups that changed they are made anew."""
        if self._kept is None or self._kept[0] is not self.prior:
            self._kept = self.prior, self.prior.score(self.cells, 1)
        return self._kept[1]

    def groups_of(self, items: IndexArray) -> IntArray:
        """(n,) where they are."""
        return self.labels[items]

    def may_leave(self, groups: IndexArray) -> BoolArray:
        """(n,) whether an item may leave these groups."""
        free: BoolArray = self.size[groups] > 1 if self.fixed else np.ones(len(groups), bool)
        return free

    def move(self, item: int, target: int) -> None:
        """Put an item into another group."""
        own = self.labels[item]
        row = self.near[:, item].copy()
        self.cells[:, own] -= row
        self.cells[:, :, own] -= row
        self.cells[:, target] += row
        self.cells[:, :, target] += row
        if self._kept is not None:
            changed, scores = [own, target], self._kept[1]
            scores[changed] = self._kept[0].score(self.cells[:, changed], 1)
            scores[:, changed] = scores[changed].T
        column = self.counts[:, :, item]
        self.near[:, :, own] -= column
        self.near[:, :, target] += column
        if self.links is not None:
            self._linked[:, own] -= self.links[:, item]
            self._linked[:, target] += self.links[:, item]
        self.size[own] -= 1
        self.size[target] += 1
        self.labels[item] = target
        if not self.fixed and not (self.size == 0).any():
            self.reset(self.labels)

    def sweep(self, rng: np.random.Generator, temperature: float) -> int:
        """Visit all items in random order; how many moved."""
        return len(visit(self, rng.permutation(len(self.labels)), rng, temperature))

    def settle(self, rng: np.random.Generator, most: int = 30) -> None:
        for _ in range(min(most, 30)):
            if not self.sweep(rng, 0.0):
                return

    def anneal(self, rng: np.random.Generator, start: float, n: int) -> None:
        for temperature in np.linspace(start, 0, n, endpoint=False):
            self.sweep(rng, float(temperature))
        self.settle(rng)

    def merge(self, at_a_loss: bool = False) -> bool:
        """The best merge of two groups, if it gains, or ``at_a_loss``; whether there was one."""
        used = np.flatnonzero(self.size)
        score = self.prior.score
        current = score(self.cells, 1)
        np.fill_diagonal(current, 0)
        inside = np.diagonal(self.cells, axis1=1, axis2=2) / 2
        within = score(inside, 0)
        linked = self._links_between()
        best, pair = -np.inf if at_a_loss else 1e-9, None
        for x, g in enumerate(used):
            others = used[x + 1 :]
            if not len(others):
                break
            joined = self.cells[:, others] + self.cells[:, g][:, None]  # (2, n, K)
            rows = score(joined, 1)
            rows[:, g] = 0
            rows[np.arange(len(others)), others] = 0
            centre = inside[:, others] + inside[:, [g]] + self.cells[:, g, others]
            gain = rows.sum(1) + score(centre, 0) - within[g] - within[others]
            gain -= current[g].sum() + current[others].sum(1) - current[g, others]
            gain += linked[g, others]
            gain += self.size_prior[self.size[g] + self.size[others]]
            gain -= self.size_prior[self.size[g]] + self.size_prior[self.size[others]]
            if gain.max() > best:
                best, pair = gain.max(), (g, others[int(gain.argmax())])
        if pair is None:
            return False
        self.reset(np.where(self.labels == pair[1], pair[0], self.labels))
        return True


    def _links_between(self) -> FloatArray:
        """(K, K) the links of all pairs of items across two groups."""
        between = np.zeros((len(self.size), len(self.size)))
        if self.links is not None:
            np.add.at(between, self.labels, self._linked)
        return between


def fit_cells(blocks: Blocks, least_inside: float = 0.5) -> CellPrior:
    """Beta priors that fit the cells best, the mean inside groups ``least_inside`` at least."""
    k = len(blocks.size)
    upper = np.triu_indices(k, 1)
    used = blocks.size > 0
    inside = blocks.cells[:, np.arange(k), np.arange(k)][:, used] / 2
    sides = (inside, blocks.cells[:, upper[0], upper[1]])
    alpha, beta = [], []
    for side, counts in enumerate(sides):
        best = (-np.inf, 1.0, 1.0)
        for mean in MEANS:
            if (side == 0 and mean < least_inside) or (side == 1 and mean > 0.5):
                continue
            for strength in STRENGTHS:
                a, b = mean * strength, (1 - mean) * strength
                trial = CellPrior((a, a), (b, b))
                value = float(trial.score(counts, 0).sum())
                if value > best[0]:
                    best = (value, a, b)
        alpha.append(best[1])
        beta.append(best[2])
    return CellPrior((alpha[0], alpha[1]), (beta[0], beta[1]))
