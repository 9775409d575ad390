"""What the choice of the asked pairs says about groups, before any answer.

Pairs are asked at random, all of them, or because something suggests them: a search, a blocking
rule, a sort. Where suggested pairs lie inside groups more often than others do, that a pair was
asked is evidence for one group, and that it was not is evidence against. The evidence is counted
where it can be trusted: an item's *first* contact with a group says that its group is one of those
that it was compared with, not one of all; for every further pair the rates are compared among
*near* pairs only, those with a common neighbour in the graph of asked pairs. Where the neighbours
in some similarity were asked, near pairs are asked often whether they are of one group or not, and
say accordingly less; where pairs were asked at random, all of it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from likewise.inference.partition.answers import Answers
from likewise.inference.partition.arrays import BoolArray, FloatArray, IntArray

MAX_WEDGES = 20_000_000  # paths of two asked pairs that are followed to find near pairs
MOST_UNASKED = 3.0  # nats against one group, for a pair that was never asked
PSEUDO_PAIRS = 5.0
# First contacts may say so many times what two rates explain: these fit badly where some items are
# asked about much more than others.
MOST_OVERSTATED = 2.0
POWERS = np.linspace(0.0, 2.0, 9)


@dataclass(frozen=True)
class AskingLogRatios:
    """Log-odds of one group from what was asked."""

    first: float
    """Of an item's first contact with a group."""
    asked: float
    """Of every further pair that was asked."""
    unasked: FloatArray
    """(N + 1,) of a pair of a group of n items that was not."""
    usual: float
    """The same whatever the size: what an asked pair is spared."""
    baseline: float
    """Log-likelihood of asking across groups, against one rate for all near pairs, and what first
    contacts would say too much; at most 0."""

    @property
    def by_size(self) -> FloatArray:
        """(N + 1,) what a group of n items adds, beside ``asked - usual`` an asked pair."""
        n = np.arange(len(self.unasked), dtype=np.float64)
        prior = (self.first - self.asked) * (n - 1) + self.unasked * n * (n - 1) / 2
        prior[0] = 0.0
        return prior


@dataclass(frozen=True)
class Asking:
    """Near pairs, and which of them were asked."""

    answers: Answers
    """The answers."""
    left: IntArray
    """(Q,) one end of each near pair."""
    right: IntArray
    """(Q,) its other end."""
    asked: BoolArray
    """(Q,) whether it was asked."""
    scale: float
    """Near pairs in all for each of these."""

    @classmethod
    def build(cls, answers: Answers, rng: np.random.Generator) -> Asking:
        """All near pairs, or where they are many those of some items."""
        n = answers.n_items
        ends = (
            np.concatenate([answers.left, answers.right]),
            np.concatenate([answers.right, answers.left]),
        )
        graph = sparse.coo_array((np.ones(len(ends[0]), np.float32), ends), shape=(n, n)).tocsr()
        degree = np.diff(graph.indptr)
        wedges = np.asarray(graph @ degree.astype(np.float64))
        order = rng.permutation(n)
        rows = order[: max(int(np.searchsorted(np.cumsum(wedges[order]), MAX_WEDGES)), 1)]
        near = (graph[rows] @ graph).tocoo()
        left, right = rows[near.row], near.col.astype(np.int64)
        apart = left != right
        left, right = left[apart], right[apart]
        code = np.minimum(left, right) * n + np.maximum(left, right)
        known = answers.left * n + answers.right
        place = np.minimum(np.searchsorted(known, code), max(len(known) - 1, 0))
        return cls(answers, left, right, known[place] == code, n / (2 * len(rows)))

    def log_ratios(self, labels: IntArray, contact: AskingLogRatios) -> AskingLogRatios:
        """What asking says under the rates that fit a partition (N,), beside first ``contact``
        (`asking_log_ratios`).

        The rate inside a group is a power of its size, so that large groups of which few pairs were
        asked are not cut up for that. Asked pairs count alike in all groups; what they count too
        much or too little in a group of n items is taken from its expected number of them.
        """
        inside = labels[self.left] == labels[self.right]
        share = float(self.asked.mean()) if len(inside) else 0.0
        share = float(np.clip(share, 1e-6, 1 - 1e-6))
        within, across = (
            (self.scale * float(self.asked[side].sum()) + PSEUDO_PAIRS * share)
            / (self.scale * float(side.sum()) + PSEUDO_PAIRS)
            for side in (inside, ~inside)
        )
        within = max(within, across)
        baseline = share * np.log(across / share)
        baseline += (1 - share) * np.log((1 - across) / (1 - share))
        rate = np.clip(within * self._relative_rates(labels, inside), across, 1 - 1e-6)
        usual, unasked = (
            np.maximum(np.log((1 - p) / (1 - across)), -MOST_UNASKED) for p in (within, rate)
        )
        correction = rate * (np.log(rate / within) - unasked + usual)
        return AskingLogRatios(
            first=contact.first,
            asked=float(np.log(within / across)),
            unasked=unasked + correction,
            usual=float(usual),
            baseline=float(self.scale * len(inside) * baseline) + contact.baseline,
        )

    def _relative_rates(self, labels: IntArray, inside: BoolArray) -> FloatArray:
        """(N + 1,) how often near pairs of a group of n items are asked, against all inside groups.

        n to the power that makes the asked pairs of all groups most likely (Poisson regression).
        """
        owner = labels[self.left[inside]]
        size = np.maximum(np.bincount(labels), 2.0)
        near = np.bincount(owner, minlength=len(size))
        asked = np.bincount(owner, self.asked[inside], len(size))
        if not asked.any():
            return np.ones(len(labels) + 1)
        total = size ** -POWERS[:, None] @ near  # expected of each power, but for a factor
        fit = -POWERS * (asked @ np.log(size)) - asked.sum() * np.log(total)
        best = int(np.argmax(fit))
        n = np.maximum(np.arange(len(labels) + 1.0), 2.0)
        return np.asarray(n ** -POWERS[best] * near.sum() / total[best])


def asking_log_ratios(answers: Answers, labels: IntArray) -> AskingLogRatios:
    """A first contact, and pairs that were not asked, by the rates among all pairs; no more.

    Both are 0 where pairs inside groups were asked as often as others: all pairs, random pairs.
    Where a similarity suggested the pairs, an item's group is one of the few that it was compared
    with, not one of all (a credit of at most log(N / its comparisons)); and most pairs of a group
    were asked, so that two groups with one asked pair between them are hardly one.
    """
    sizes = np.bincount(labels).astype(np.float64)
    n = float(answers.n_items)
    all_pairs = n * (n - 1) / 2
    inside_all = float((sizes * (sizes - 1)).sum() / 2)
    inside = float((labels[answers.left] == labels[answers.right]).sum())
    overall = min((answers.n_pairs + 0.5) / (all_pairs + 1), 1 - 1e-6)
    within = (inside + PSEUDO_PAIRS * overall) / (inside_all + PSEUDO_PAIRS)
    across = answers.n_pairs - inside + PSEUDO_PAIRS * overall
    across /= all_pairs - inside_all + PSEUDO_PAIRS
    compared = np.bincount(np.concatenate([answers.left, answers.right]), minlength=len(labels))
    known = max(float(np.log(n / compared[compared > 0]).mean()), 0.0)
    first = float(np.clip(np.log((within + 1e-12) / (across + 1e-12)), 0.0, known))
    unasked = np.log((1 - within + 1e-9) / (1 - across + 1e-9))
    usual = float(np.clip(unasked, -MOST_UNASKED, 0.0))
    # Where nearly all items are one group, the few pairs across say nothing of how often others
    # are asked: all that first contacts say is bounded by what two rates explain against one.
    by_two_rates = inside * np.log((within + 1e-12) / overall)
    by_two_rates += (answers.n_pairs - inside) * np.log((across + 1e-12) / overall)
    most = MOST_OVERSTATED * max(by_two_rates, 0.0)
    baseline = min(most - first * (n - len(sizes)), 0.0)
    return AskingLogRatios(first, 0.0, np.full(len(labels) + 1, usual), usual, baseline)
