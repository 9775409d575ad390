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

from likewise.inference.partition.arrays import FloatArray, IndexArray
from likewise.inference.partition.search import canonical

MEANS = np.linspace(0.02, 0.98, 33)
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 1000.0)


@dataclass(frozen=True)
class CellPrior:
    """Beta(alpha, beta) of P("same") inside a group (index 0) and across two (index 1)."""

    alpha: tuple[float, float]
    """Pseudo-counts of "same"."""
    beta: tuple[float, float]
    """Pseudo-counts of "different"."""

    def score(self, same: FloatArray, different: FloatArray, side: int) -> FloatArray:
        """log marginal likelihood of cells with these counts, any shape."""
        a, b = self.alpha[side], self.beta[side]
        constant = gammaln(a + b) - gammaln(a) - gammaln(b)
        cells = gammaln(same + a) + gammaln(different + b) - gammaln(same + different + a + b)
        return np.asarray(cells + constant)


class Blocks:
    """A partition with its cells. ``same`` and ``different`` are (N, N) symmetric counts."""

    def __init__(
        self,
        same: FloatArray,
        different: FloatArray,
        labels: IndexArray,
        size_prior: FloatArray,
        fixed: bool,
    ) -> None:
        self.counts = np.stack([same, different])  # (2, N, N)
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

    def score(self) -> float:
        """Evidence of the answers given the partition."""
        k = len(self.size)
        upper = np.triu_indices(k, 1)
        inside = self.cells[:, np.arange(k), np.arange(k)] / 2
        total = self.prior.score(inside[0], inside[1], 0).sum()
        total += self.prior.score(self.cells[0][upper], self.cells[1][upper], 1).sum()
        return float(total)

    def gains(self, item: int) -> FloatArray:
        """(K,) what the objective would gain with the item in each group, up to a constant."""
        own = self.labels[item]
        row = self.near[:, item]  # (2, K)
        cells = self.cells.copy()
        cells[:, own] -= row
        cells[:, :, own] -= row
        score = self.prior.score
        grown = cells + row[:, None, :]
        gain = score(grown[0], grown[1], 1) - score(cells[0], cells[1], 1)  # (K, K)
        np.fill_diagonal(gain, 0.0)
        inside = np.diagonal(cells, axis1=1, axis2=2) / 2
        with_item = inside + row
        total = gain.sum(1) + score(with_item[0], with_item[1], 0) - score(inside[0], inside[1], 0)
        size = self.size.copy()
        size[own] -= 1
        total += self._step[size]
        if not self.fixed and size[own] == 0:
            total[np.flatnonzero(size == 0)[1:]] = -np.inf
        return np.asarray(total)

    def move(self, item: int, target: int) -> None:
        own = self.labels[item]
        row = self.near[:, item].copy()
        self.cells[:, own] -= row
        self.cells[:, :, own] -= row
        self.cells[:, target] += row
        self.cells[:, :, target] += row
        column = self.counts[:, :, item]
        self.near[:, :, own] -= column
        self.near[:, :, target] += column
        self.size[own] -= 1
        self.size[target] += 1
        self.labels[item] = target
        if not self.fixed and not (self.size == 0).any():
            self.reset(self.labels)

    def sweep(self, rng: np.random.Generator, temperature: float) -> int:
        moved = 0
        for item in rng.permutation(len(self.labels)).tolist():
            own = int(self.labels[item])
            if self.fixed and self.size[own] == 1:
                continue
            gain = self.gains(item)
            if temperature > 0:
                best = int(np.argmax(gain + temperature * rng.gumbel(size=len(gain))))
            else:
                best = int(np.argmax(gain))
                if gain[best] <= gain[own] + 1e-9:
                    continue
            if best != own:
                self.move(item, best)
                moved += 1
        return moved

    def settle(self, rng: np.random.Generator) -> None:
        for _ in range(30):
            if not self.sweep(rng, 0.0):
                return

    def anneal(self, rng: np.random.Generator, start: float, n: int) -> None:
        for temperature in np.linspace(start, 0, n, endpoint=False):
            self.sweep(rng, float(temperature))
        self.settle(rng)

    def merge(self) -> bool:
        """The best merge of two groups, if it gains."""
        used = np.flatnonzero(self.size)
        score = self.prior.score
        current = score(self.cells[0], self.cells[1], 1)
        np.fill_diagonal(current, 0)
        inside = np.diagonal(self.cells, axis1=1, axis2=2) / 2
        within = score(inside[0], inside[1], 0)
        best, pair = 1e-9, None
        for x, g in enumerate(used):
            others = used[x + 1 :]
            if not len(others):
                break
            joined = self.cells[:, others] + self.cells[:, g][:, None]  # (2, n, K)
            rows = score(joined[0], joined[1], 1)
            rows[:, g] = 0
            rows[np.arange(len(others)), others] = 0
            centre = inside[:, others] + inside[:, [g]] + self.cells[:, g, others]
            gain = rows.sum(1) + score(centre[0], centre[1], 0) - within[g] - within[others]
            gain -= current[g].sum() + current[others].sum(1) - current[g, others]
            gain += self.size_prior[self.size[g] + self.size[others]]
            gain -= self.size_prior[self.size[g]] + self.size_prior[self.size[others]]
            if gain.max() > best:
                best, pair = gain.max(), (g, others[int(gain.argmax())])
        if pair is None:
            return False
        self.reset(np.where(self.labels == pair[1], pair[0], self.labels))
        return True


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
                value = float(trial.score(counts[0], counts[1], 0).sum())
                if value > best[0]:
                    best = (value, a, b)
        alpha.append(best[1])
        beta.append(best[2])
    return CellPrior((alpha[0], alpha[1]), (beta[0], beta[1]))
