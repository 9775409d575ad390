"""From the best partitions under two rates to cells, samples, and the partition they agree on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.inference.partition.agreement import agreed_partition
from likewise.inference.partition.answers import Answers, Rates, fit_rates
from likewise.inference.partition.arrays import FloatArray, IntArray
from likewise.inference.partition.blocks import STRENGTHS, Blocks
from likewise.inference.partition.cell_search import FEW_ITEMS, MAX_VISITS, CellSearch
from likewise.inference.partition.leftovers import place_leftovers
from likewise.inference.partition.looks import merge_looks
from likewise.inference.partition.model import Problem, State
from likewise.inference.partition.pairs import effective_counts
from likewise.inference.partition.starts import voted
from likewise.inference.partition.visits import own_chances

# Cells are worth having where there are few groups; a visit of an item costs K² beta functions.
MAX_GROUPS, MAX_ITEMS = 40, 1500
N_ROUNDS = 4
CLOSE = 10.0  # nats: partitions within it are sampled around too
GIBBS_SWEEPS = 50


@dataclass(frozen=True)
class Refined:
    """A partition with what is believed around it."""

    labels: IntArray
    """(N,) groups."""
    probability: FloatArray
    """(N,) P(own group), all other items where they are."""
    belief: FloatArray
    """(P,) P(one group) of each judged pair."""
    rates: Rates
    """How people answer."""
    drawn: IntArray
    """(S, N) draws of partitions."""
    looks: IntArray
    """(S, N) the same before looks of one class were merged (`looks`)."""


def blocks_apply(answers: Answers, labels: IntArray) -> bool:
    """Whether items and groups are few, and a usual cell has twenty answers or more."""
    k = int(labels.max()) + 1
    return len(labels) <= MAX_ITEMS and 1 < k <= MAX_GROUPS and len(answers.same) >= 10 * k * k


def refine(
    problem: Problem,
    states: list[State],
    quick: bool = False,
    place: bool = True,
    merge: bool | None = None,
) -> Refined | None:
    """From the best states under two rates: cells, samples of partitions, and what they share.

    Groups at which people's votes hint are tried as well: people see finer ones, at times, than two
    rates explain, and then cells differ only there. ``quick``: from fewer, once. ``place``:
    whether items that are alone because draws disagree are placed. ``merge``: whether looks of
    one class are; None where the number of groups is not given. None is returned where all cells
    across groups are alike, so that two rates say all there is to say.
    """
    answers, n = problem.answers, problem.answers.n_items
    merge = not problem.fixed if merge is None else merge
    each = 1 if quick or n > FEW_ITEMS else 2
    candidates = [state.labels for state in states[:each]]
    candidates += [labels for labels in voted(problem)[:each] if blocks_apply(answers, labels)]
    rates, belief = states[0].rates, problem.same(states[0].labels)
    rounds = N_ROUNDS if n <= FEW_ITEMS else 2
    if quick or (answers.n_annotators == 1 and answers.n_pairs == len(answers.same)):
        rounds = 1  # all answers count alike, whatever the beliefs
    for turn in range(rounds):
        counts = square_counts(answers, rates, belief)
        search = CellSearch(problem, counts)
        if turn == 0 and not any(_cells_differ(search, labels) for labels in candidates):
            return None
        fits = [search.with_splits(search.anneal(labels)) for labels in candidates]
        fits.sort(key=lambda fit: -fit[0])
        blocks = fits[0][1]
        if turn == 0 and not _cells_differ(search, blocks.labels):
            return None
        likely = [own for evidence, own in fits if evidence > fits[0][0] - CLOSE]
        candidates = [own.labels.copy() for own in likely]
        looks = np.concatenate([sample_partitions(own, problem.rng) for own in likely])
        belief = (looks[:, answers.left] == looks[:, answers.right]).mean(0)
        rates = fit_rates(answers, belief, rates)
    drawn = merge_looks(looks, counts, blocks.prior) if merge else looks
    labels = agreed_partition(drawn, not merge, problem.rng)
    search = CellSearch(problem.of_any_number() if merge else problem, counts)
    if place and merge:
        labels = place_leftovers(labels, drawn, lambda placed: search.blocks(placed)[0])
    belief = (drawn[:, answers.left] == drawn[:, answers.right]).mean(0)
    return Refined(
        labels=labels,
        probability=own_chances(search.blocks(labels)[1], n),
        belief=belief,
        rates=fit_rates(answers, belief, rates),
        drawn=drawn,
        looks=looks,
    )


def square_counts(answers: Answers, rates: Rates, belief: FloatArray) -> FloatArray:
    """(2, N, N) symmetric "same" and "different" counts."""
    counts = np.zeros((2, answers.n_items, answers.n_items))
    for k, values in enumerate(effective_counts(answers, rates, belief)):
        counts[k, answers.left, answers.right] = values
        counts[k, answers.right, answers.left] = values
    return counts


def _cells_differ(search: CellSearch, labels: IntArray) -> bool:
    """Whether the cells across groups spread more than one rate for all would let them."""
    prior = search.blocks(labels)[1].prior
    return prior.alpha[1] + prior.beta[1] < STRENGTHS[-1] / 2


def sample_partitions(blocks: Blocks, rng: np.random.Generator) -> IntArray:
    """(S, N) draws from Gibbs sweeps that begin at the partition, which is the first."""
    start = blocks.labels.copy()
    sweeps = max(min(GIBBS_SWEEPS, MAX_VISITS // len(start)), 4)
    drawn = [start]
    for turn in range(sweeps):
        blocks.sweep(rng, 1.0)
        if turn >= sweeps // 4:
            drawn.append(blocks.labels.copy())
    blocks.reset(start)
    return np.stack(drawn)
