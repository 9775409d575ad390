"""How many groups, and whether cells of their own suit them: by answers that were held out.

Evidence compares partitions of one kind. Where groups are uncertain it misleads about their number:
the likeliest partition leaves items alone that belong somewhere, and cells cut groups along
whatever else people see. So other numbers are tried on most pairs, and draws of partitions foretell
the answers about the rest (cross-validation of the number of blocks, Chen & Lei 2018). The best is
taken where it foretells better than the search with the number left open by more than a standard
error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likewise.inference.partition.answers import Answers
from likewise.inference.partition.arrays import FloatArray, IntArray, Vectors
from likewise.inference.partition.fitting import Fit, fit_partition
from likewise.inference.partition.jackknife import jackknife_error
from likewise.inference.partition.refine import MAX_ITEMS, blocks_apply, refine
from likewise.inference.partition.starts import COUNTS
from likewise.io.progress import tracked

HELD_OUT = 0.15  # of the judged pairs
FEWEST_UNSEEN = 30  # pairs, to compare by
PAIRS_AN_ITEM = 10  # below, a graph without those that are held out is another one
STRENGTH = 10.0  # answers that a cell's rate counts as, before it has any of its own


@dataclass(frozen=True)
class Choice:
    """How to look for groups."""

    n_groups: int | None
    """Their number; None where it is better left open."""
    cells: bool = True
    """Whether every two groups may have their own chance to be taken for each other."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What a choice has led to on the pairs that are not held out."""

    choice: Choice
    scores: FloatArray
    """(p,) mean log P(answer) of each held-out pair."""
    fit: Fit
    """Under two rates."""

    @property
    def mean(self) -> float:
        return float(self.scores.mean())


def choose_number(
    answers: Answers,
    given: FloatArray | None,
    items: Vectors | None,
    found: Fit,
    rng: np.random.Generator,
) -> Choice:
    """What foretells held-out answers best, ``found`` by a search with the number left open.

    ``given`` (P,) and ``items`` (N, D): what is known of pairs before the answers.
    """
    held = rng.random(answers.n_pairs) < HELD_OUT
    too_sparse = 2 * answers.n_pairs < PAIRS_AN_ITEM * answers.n_items
    if too_sparse or held.sum() < FEWEST_UNSEEN or answers.n_items > MAX_ITEMS:
        return Choice(None)
    n_found = int(found.states[0].labels.max()) + 1
    fewer = [k for k in found.likely_numbers if k <= n_found]
    more = [k for k in COUNTS if n_found < k < answers.n_items / 4]  # cells may tell them apart
    seen, unseen = answers.select(~held), answers.select(held)
    known = None if given is None else given[~held]
    asking = found.problem.asking is not None

    def tried(k: int | None) -> Trial:
        fit = fit_partition(seen, known, items, k, rng, asking)
        drawn = fit.sampled.drawn
        return Trial(Choice(k, cells=False), foretelling(drawn, seen, unseen), fit)

    def with_cells(plain: Trial) -> list[Trial]:
        """None where they do not differ."""
        fit, refined = plain.fit, None
        if blocks_apply(seen, fit.states[0].labels):
            refined = refine(fit.problem, fit.states, quick=True)
        if refined is None:
            return []
        scores = foretelling(refined.drawn, seen, unseen)
        return [Trial(Choice(plain.choice.n_groups), scores, fit)]

    left_open = tried(None)
    *others, kept = [left_open, *with_cells(left_open)]
    if fewer or more:
        trials = _over_numbers(fewer, more, tried)
        best = max(range(len(trials)), key=lambda i: trials[i].mean)
        # Cells take longer, so that they are tried where two rates do best.
        for plain in trials[max(best - 1, 0) : best + 2]:
            others += with_cells(plain)
        others += trials
    chosen = _chosen(kept, others, unseen)
    return Choice(None) if chosen is kept else chosen.choice


def _over_numbers(fewer: list[int], more: list[int], tried: Callable[[int], Trial]) -> list[Trial]:
    """Trials of numbers of groups, ascending: all of ``fewer`` than were found, then ``more`` until
    two in a row are behind, with some half-way beside the best."""
    trials = {k: tried(k) for k in tracked(fewer, of=len(fewer))}
    for k in more:
        trials[k] = tried(k)
        means = [trial.mean for trial in trials.values()]
        if len(means) > 2 and max(means[-2:]) < max(means):
            break
    counts = list(trials)
    best = counts.index(max(counts, key=lambda k: trials[k].mean))
    for a, b in pairwise(counts[max(best - 1, 0) : best + 2]):
        middle = round(np.sqrt(a * b))
        if middle not in trials:
            trials[middle] = tried(middle)
    return [trials[k] for k in sorted(trials)]


def _chosen(kept: Trial, others: list[Trial], unseen: Answers) -> Trial:
    """What is kept, unless the best of the others is ahead by more than a standard error."""
    best = max(others, key=lambda trial: trial.mean, default=kept)
    ahead = best.scores - kept.scores
    error = jackknife_error(ahead, unseen.left, unseen.right)
    return best if float(ahead.mean()) > error else kept


def foretelling(drawn: IntArray, seen: Answers, unseen: Answers) -> FloatArray:
    """(p,) mean log P(answer) of each unseen pair, by draws of partitions (S, N).

    Each two groups have their own rate of "same", drawn towards the rate of all pairs inside
    groups, or across, where it has few answers.
    """
    p_same = np.zeros(unseen.n_pairs)
    for labels in drawn:
        k = int(labels.max()) + 1
        own, other = labels[seen.left][seen.pair], labels[seen.right][seen.pair]
        counts = np.stack(
            [
                np.bincount(own * k + other, seen.weight * (seen.same == said), k * k)
                for said in (False, True)
            ]
        ).reshape(2, k, k)
        counts = counts + counts.transpose(0, 2, 1)
        inside = np.eye(k, dtype=bool)
        usual = np.empty((k, k))
        for part in (inside, ~inside):
            usual[part] = (counts[1][part].sum() + 1) / (counts[:, part].sum() + 2)
        rate = (counts[1] + STRENGTH * usual) / (counts.sum(0) + STRENGTH)
        p_same += rate[labels[unseen.left], labels[unseen.right]]
    p_same = (p_same / len(drawn))[unseen.pair]
    scores = unseen.weight * np.log(np.where(unseen.same, p_same, 1 - p_same))
    total, weight = (np.add.reduceat(v, unseen.first) for v in (scores, unseen.weight))
    return np.asarray(total / weight)
