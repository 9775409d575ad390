"""Groups from judgements alone: a partition of the items, its number of groups known or not.

Answers become log-odds that two items belong together (`answers`), a partition is sought that makes
them most likely (`search`, `moves`, `model`, `fitting`) from several starts (`starts`), and where
groups are few enough, every two of them get their own chance to be taken for each other (`blocks`,
`refine`). Held-out answers decide on the number of groups and on that (`number`). Where people
sorted items into piles, groups are those that explain the piles (`sorts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likewise.inference.partition.answers import Answers, fit_rates
from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray, Vectors
from likewise.inference.partition.fitting import fit_partition, foretold, with_cells
from likewise.inference.partition.number import Choice, choose_number
from likewise.inference.partition.one_thread import on_one_thread
from likewise.inference.partition.refine import Refined
from likewise.inference.partition.search import canonical
from likewise.inference.partition.sort_number import count_groups
from likewise.inference.partition.sort_search import (
    MAX_GROUPS,
    is_telling,
    most_groups,
    place_sorted,
)
from likewise.inference.partition.sorts import Sorts, find_sorts
from likewise.io.progress import stage
from likewise.pairs.edges import components


@dataclass(frozen=True)
class Partition:
    """Groups of items inferred from judgements."""

    labels: IntArray
    """(N,) group of each item, 0 … n_groups - 1, by first appearance."""
    probability: FloatArray
    """(N,) P(own group) with all other items where they are."""
    pairs: IntArray
    """(P, 2) the distinct judged pairs, smaller item first."""
    pair_same: FloatArray
    """(P,) P(the two are of one group)."""
    p_same: FloatArray
    """(R, 2) each annotator's P("same" | one group) and P("same" | two groups)."""
    objective: float
    """How well each pair's answers are foretold by all others (`log_predictive`); compares results
    for the same answers."""

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.labels.max(initial=-1)) + 1


@on_one_thread
def infer_partition(
    left: IndexArray,
    right: IndexArray,
    same: BoolArray,
    *,
    n_items: int,
    annotator: IndexArray | None = None,
    weight: FloatArray | None = None,
    n_groups: int | None = None,
    items: Vectors | None = None,
    seed: int = 0,
    quick: bool = False,
    begin: IntArray | None = None,
) -> Partition:
    """Group ``n_items`` items by judgements ``same`` (M,) of the pairs ``left``, ``right`` (M,).

    Parameters
    ----------
    annotator : (M,) codes from 0 of who answered.
    weight : (M,) at least 0; answers of weight 0 are ignored.
    n_groups : how many groups there are; None finds out.
    items : (N, D) vectors; what they say of a pair (`pair_prior`) is learned with the beliefs.
    quick : whether the number of groups is left to the search, not to held-out answers, and items
        of which little is known are left alone: where more answers are to come.
    begin : (N,) groups that the search begins from as well.
    """
    answers = Answers.build(left, right, same, n_items, annotator, weight)
    if n_groups is not None and not 1 <= n_groups <= n_items:
        raise ValueError(f"n_groups must lie between 1 and n_items = {n_items}, but is {n_groups}.")
    if not answers.n_pairs:
        return _nothing_asked(answers, n_groups)
    rng = np.random.default_rng(seed)
    if weight is None and (sorts := find_sorts(left, right, same, annotator, n_items)) is not None:
        found = _by_piles(answers, sorts, n_groups, rng)
        if found is not None:
            return _result(answers, found)
    choice = Choice(n_groups, cells=True)
    with stage("finding groups", 0.6):
        fit = fit_partition(answers, items, n_groups, rng, place=not quick, begin=begin)
        refined = with_cells(fit, place=not quick)
        if n_groups is None and not quick:
            choice = choose_number(answers, items, fit, refined, rng)
        if choice.n_groups != n_groups:
            fit = fit_partition(answers, items, choice.n_groups, rng, told=False)
            refined = with_cells(fit, merge=True) if choice.cells else None
    if refined is None or not choice.cells:
        refined = fit.sampled
    if n_groups is None:
        refined = replace(refined, labels=_linked(answers, refined.labels))
    return _result(answers, refined)


def _linked(answers: Answers, labels: IntArray) -> IntArray:
    """(N,) groups without items that no chain of answers leads to: nothing is known of them."""
    linked = components(answers.left, answers.right, answers.n_items)
    return np.unique(linked * (labels.max() + 1) + labels, return_inverse=True)[1]


@on_one_thread
def draw_partitions(answers: Answers, rng: np.random.Generator) -> Refined:
    """Draws of partitions of any number of groups, by one search: what foretells other answers."""
    fit = fit_partition(answers, None, None, rng)
    return with_cells(fit, quick=True) or fit.sampled


@on_one_thread
def find_labels(
    left: IndexArray,
    right: IndexArray,
    same: BoolArray,
    *,
    n_items: int,
    annotator: IndexArray | None = None,
    weight: FloatArray | None = None,
    n_groups: int,
    seed: int = 0,
) -> IntArray:
    """(N,) groups by the moves of `infer_partition` alone: a start for what refines it itself."""
    answers = Answers.build(left, right, same, n_items, annotator, weight)
    if not answers.n_pairs:
        return np.arange(n_items) % n_groups
    fit = fit_partition(answers, None, n_groups, np.random.default_rng(seed))
    return canonical(fit.sampled.labels)


def _by_piles(
    answers: Answers, sorts: Sorts, n_groups: int | None, rng: np.random.Generator
) -> Refined | None:
    """Groups that explain the piles of sorts; None where the piles alone tell too little, or there
    may be more groups than the model of piles can take."""
    number = n_groups or count_groups(sorts, rng)
    if number > MAX_GROUPS or (n_groups is None and number == most_groups(sorts)):
        return None
    belief, _ = place_sorted(sorts, number, rng)
    if not is_telling(sorts, belief):
        return None
    together = np.einsum("pc,pc->p", belief[answers.left], belief[answers.right])
    rates = fit_rates(answers, together)
    labels = belief.argmax(1)
    return Refined(labels, belief.max(1), together, rates, labels[None], labels[None])


def _result(answers: Answers, refined: Refined) -> Partition:
    return Partition(
        labels=canonical(refined.labels),
        probability=refined.probability,
        pairs=np.stack([answers.left, answers.right], axis=1),
        pair_same=refined.belief,
        p_same=refined.rates.p_same,
        objective=foretold(answers, refined),
    )


def _nothing_asked(answers: Answers, n_groups: int | None) -> Partition:
    n = answers.n_items
    labels = np.arange(n) if n_groups is None else np.arange(n) % n_groups
    rates = np.tile([0.8, 0.2], (answers.n_annotators, 1))
    pairs = np.empty((0, 2), np.int64)
    return Partition(labels, np.zeros(n), pairs, np.empty(0), rates, 0.0)
