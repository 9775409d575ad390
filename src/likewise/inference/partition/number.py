"""How many groups, and whether cells of their own suit them: by answers that were held out.

Evidence compares partitions of one kind. Where groups are uncertain it misleads about their number:
the likeliest partition leaves items alone that belong somewhere, and cells cut groups along
whatever else people see. So other numbers are tried on most pairs, and draws of partitions foretell
the answers about the rest (cross-validation of the number of blocks, Chen & Lei 2018). The best is
taken where it foretells clearly better than the search with the number left open, or as well with
fewer groups. That one is without cells where these foretell worse by more than a standard error, or
no better with more groups; with cells it stands, since these cut and merge groups themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from likewise.inference.partition.answers import Answers
from likewise.inference.partition.arrays import FloatArray, IntArray, Vectors
from likewise.inference.partition.cells import cell_counts, shrunken_rates
from likewise.inference.partition.fitting import Fit, fit_partition, with_cells
from likewise.inference.partition.jackknife import jackknife_error
from likewise.inference.partition.refine import MAX_ITEMS, Refined
from likewise.inference.partition.starts import COUNTS
from likewise.io.progress import tracked

# Of the judged pairs, so many times: few, since the fewer are left, the fewer groups they support.
HELD_OUT, N_SPLITS = 0.08, 5
MAX_ANSWERS = 50_000  # beyond, groups are hardly in doubt, and a dozen searches take minutes
FEWEST_UNSEEN = 30  # pairs, to compare by
# Judged pairs of a usual item, and those inside its group: with fewer, the graph that is left is
# another one, and small groups fall apart.
PAIRS_AN_ITEM, MATES = 10, 4
CLEARLY = 2.0  # standard errors: one of many numbers is ahead of the rest by chance
TINY = 1e-9
STRENGTH = 10.0  # answers that a cell's rate counts as, before it has any of its own


@dataclass(frozen=True)
class Choice:
    """How to look for groups."""

    n_groups: int | None
    """Their number; None where it is better left open."""
    cells: bool = True
    """Whether every two groups may have their own chance to be taken for each other."""


class Split:
    """Answers without some pairs, and what choices lead to by them."""

    def __init__(
        self,
        answers: Answers,
        items: Vectors | None,
        asking: bool,
        rng: np.random.Generator,
    ) -> None:
        held = rng.random(answers.n_pairs) < HELD_OUT
        self.seen, self.unseen = answers.select(~held), answers.select(held)
        self._items, self._asking, self._rng = items, asking, rng
        self._fits: dict[int | None, Fit] = {}
        self._scores: dict[Choice, FloatArray | None] = {}

    def scores(self, choice: Choice) -> FloatArray | None:
        """(p,) mean log P(answer) of each held-out pair; None where no cells differ."""
        if choice not in self._scores:
            self._scores[choice] = self._score(choice)
        return self._scores[choice]

    def _score(self, choice: Choice) -> FloatArray | None:
        k = choice.n_groups
        if k not in self._fits:
            self._fits[k] = fit_partition(self.seen, self._items, k, self._rng, asking=self._asking)
        fit = self._fits[k]
        found = with_cells(fit, quick=True) if choice.cells else fit.sampled
        if found is None:
            return None
        # Cells foretell by the looks; what classes make of them is another matter.
        return foretelling(found.looks, self.seen, self.unseen)

    def mean(self, choice: Choice) -> float:
        """The mean of the scores; the worst there is where cells do not differ."""
        scores = self.scores(choice)
        return -np.inf if scores is None else float(scores.mean())


def choose_number(
    answers: Answers,
    items: Vectors | None,
    found: Fit,
    refined: Refined | None,
    rng: np.random.Generator,
) -> Choice:
    """What foretells held-out answers best, ``found`` by a search with the number left open, and
    what it ends with where cells differ: ``refined``.

    ``items`` (N, D): what is known of pairs before the answers.
    """
    few = answers.n_pairs < max(PAIRS_AN_ITEM * answers.n_items / 2, FEWEST_UNSEEN / HELD_OUT)
    if few or answers.n_items > MAX_ITEMS or len(answers.same) > MAX_ANSWERS:
        return Choice(None)
    if 2 * found.problem.same(found.states[0].labels).sum() < MATES * answers.n_items:
        return Choice(None)
    asking = found.problem.asking is not None
    splits = [Split(answers, items, asking, rng) for _ in range(N_SPLITS)]
    ends_with = {False: found.sampled, True: refined or found.sampled}
    n_groups = {cells: int(end.labels.max()) + 1 for cells, end in ends_with.items()}
    kept = _with_cells_or_without(splits, n_groups)
    if refined is not None and kept.cells:
        return kept  # cells cut groups and merge them: a search with a given number would not
    n_found = int(found.states[0].labels.max()) + 1
    fewer = [k for k in found.likely_numbers if k <= n_found]
    more = [k for k in COUNTS if n_found < k < answers.n_items / 4]  # cells may tell them apart
    # One split is enough to look for a number, and too little to believe it.
    best = _best_number(fewer, more, splits[0])
    return _believed(best, kept, splits, n_groups[kept.cells])


def _best_number(fewer: list[int], more: list[int], split: Split) -> Choice | None:
    if not fewer and not more:
        return None
    means = _over_numbers(fewer, more, lambda k: split.mean(Choice(k, cells=False)))
    counts = sorted(means)
    best = counts.index(max(counts, key=lambda k: means[k]))
    # Cells take longer, so that they are tried where two rates do best.
    choices = {Choice(k, cells=False): means[k] for k in counts}
    for k in counts[max(best - 1, 0) : best + 2]:
        choices[Choice(k)] = split.mean(Choice(k))
    return max(choices, key=lambda choice: choices[choice])


def _with_cells_or_without(splits: list[Split], ends_with: dict[bool, int]) -> Choice:
    """The search with the number left open, without cells where these foretell worse by more than
    a standard error, or no better and it ``ends_with`` more groups."""
    cells, plain = Choice(None), Choice(None, cells=False)
    lead = _ahead(plain, cells, splits)
    worse = lead > 1 or (lead > 0 and ends_with[False] < ends_with[True])
    return plain if worse else cells


def _believed(number: Choice | None, kept: Choice, splits: list[Split], ends_with: int) -> Choice:
    """``kept``; or the ``number``, where that is clearly ahead, or fewer groups than the other
    ``ends_with`` and not behind."""
    if number is None or number.n_groups is None:
        return kept
    lead = _ahead(number, kept, splits)
    fewer = 0 < lead <= CLEARLY and number.n_groups < ends_with
    return number if fewer or lead > CLEARLY else kept


def _ahead(one: Choice, other: Choice, splits: list[Split]) -> float:
    """By how many standard errors one choice foretells unseen pairs better than another."""
    ends = [np.concatenate([getattr(s.unseen, end) for s in splits]) for end in ("left", "right")]
    gain = np.concatenate([_scores(one, s) - _scores(other, s) for s in splits])
    return float(gain.mean()) / max(jackknife_error(gain, *ends), TINY)


def _scores(choice: Choice, split: Split) -> FloatArray:
    """(p,) of the unseen pairs; without cells where these do not differ."""
    found = split.scores(choice) if choice.cells else None
    if found is None:
        found = split.scores(replace(choice, cells=False))
    assert found is not None
    return found


def _over_numbers(
    fewer: list[int], more: list[int], tried: Callable[[int], float]
) -> dict[int, float]:
    """Scores of numbers of groups, ascending: all of ``fewer`` than were found, then ``more`` until
    two in a row are behind; and of some half-way beside the best."""
    score = {k: tried(k) for k in tracked(fewer, of=len(fewer))}
    for k in more:
        score[k] = tried(k)
        if len(score) > 2 and max(list(score.values())[-2:]) < max(score.values()):
            break
    counts = list(score)
    best = counts.index(max(counts, key=lambda k: score[k]))
    for a, b in pairwise(counts[max(best - 1, 0) : best + 2]):
        middle = round(np.sqrt(a * b))
        if middle not in score:
            score[middle] = tried(middle)
    return score


def foretelling(drawn: IntArray, seen: Answers, unseen: Answers) -> FloatArray:
    """(p,) mean log P(answer) of each unseen pair, by draws of partitions (S, N).

    Each two groups have their own rate of "same", drawn towards the rate of all pairs inside
    groups, or across, where it has few answers.
    """
    p_same = np.zeros(unseen.n_pairs)
    for labels in drawn:
        k = int(labels.max()) + 1
        one, other = labels[seen.left][seen.pair], labels[seen.right][seen.pair]
        said = cell_counts(one, other, seen.weight * seen.same, k)
        rate = shrunken_rates(said, cell_counts(one, other, seen.weight, k), STRENGTH)
        p_same += rate[labels[unseen.left], labels[unseen.right]]
    p_same = (p_same / len(drawn))[unseen.pair]
    scores = unseen.weight * np.log(np.where(unseen.same, p_same, 1 - p_same))
    total, weight = (np.add.reduceat(v, unseen.first) for v in (scores, unseen.weight))
    return np.asarray(total / weight)
