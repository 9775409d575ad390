"""Groups from judgements alone: a partition of the items, its number of groups known or not.

Answers become log-odds that two items belong together (`answers`), a partition is sought
that makes them most likely (`search`, `moves`, `model`) from several
starts (`starts`), and where groups are few enough, every two of them get their own
chance to be taken for each other (`blocks`). Where people sorted items into piles, groups are those
that explain the piles (`sorts`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from likewise.inference.partition.agreement import agreed_partition
from likewise.inference.partition.answers import Answers, Rates, fit_rates
from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray, Vectors
from likewise.inference.partition.asking import Asking
from likewise.inference.partition.model import Problem, State
from likewise.inference.partition.moves import sample_agreement
from likewise.inference.partition.pair_prior import logistic_log_odds, pair_similarities
from likewise.inference.partition.pairs import log_predictive, pair_beliefs
from likewise.inference.partition.refine import (
    CLOSE,
    MAX_ITEMS,
    Refined,
    blocks_apply,
    refine,
)
from likewise.inference.partition.search import canonical
from likewise.inference.partition.sort_search import is_telling, place_sorted
from likewise.inference.partition.sorts import Sorts, find_sorts
from likewise.inference.partition.starts import COUNTS, contractions, starts
from likewise.io.progress import stage, tracked

# Starts that are worked out, annealing of the best (temperature in nats, sweeps), and Gibbs sweeps
# for the probabilities of pairs.
N_KEPT = 3
ANNEAL_FROM, ANNEAL_SWEEPS = 2.0, 20
POLISH_SWEEPS = 20
GIBBS_SWEEPS, GIBBS_TURNS, BURN_IN = 5, 6, 3
MOST_ASKED = 0.5  # share of all pairs, beyond which it says little which of them were asked
# Annealing and Gibbs sweeps are shortened so that no more than so many visits of items are made.
MAX_VISITS = 200_000


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
    answer_same: FloatArray
    """(M,) the same for each judgement as given; NaN where its weight is 0."""
    p_same: FloatArray
    """(R, 2) each annotator's P("same" | one group) and P("same" | two groups)."""
    objective: float
    """How well each pair's answers are foretold by all others (`log_predictive`); compares results
    for the same answers."""

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.labels.max(initial=-1)) + 1


def infer_partition(
    left: IndexArray,
    right: IndexArray,
    same: BoolArray,
    *,
    n_items: int,
    annotator: IndexArray | None = None,
    weight: FloatArray | None = None,
    n_groups: int | None = None,
    prior_log_odds: FloatArray | None = None,
    items: Vectors | None = None,
    seed: int = 0,
) -> Partition:
    """Group ``n_items`` items by judgements ``same`` (M,) of the pairs ``left``, ``right`` (M,).

    Parameters
    ----------
    annotator : (M,) codes from 0 of who answered.
    weight : (M,) at least 0; answers of weight 0 are ignored.
    n_groups : how many groups there are; None finds out.
    prior_log_odds : (M,) of each judged pair before the answers, for instance from `pair_prior`.
    items : (N, D) vectors; a `pair_prior` is learned from them along with the beliefs.
    """
    answers = Answers.build(left, right, same, n_items, annotator, weight)
    if n_groups is not None and not 1 <= n_groups <= n_items:
        raise ValueError(f"n_groups must lie between 1 and n_items = {n_items}, but is {n_groups}.")
    if not answers.n_pairs:
        return _nothing_asked(answers, len(left), n_groups)
    rng = np.random.default_rng(seed)
    if weight is None and (sorts := find_sorts(left, right, same, annotator, n_items)) is not None:
        found = _by_piles(answers, sorts, n_groups, rng)
        if found is not None:
            return _result(answers, len(left), found)
    given = None if prior_log_odds is None else _by_pair(answers, prior_log_odds)
    with stage("finding groups", 0.6):
        problem, states, sampled = _by_moves(answers, given, items, n_groups, rng)
    refined = refine(problem, states) if blocks_apply(answers, states[0].labels) else None
    return _result(answers, len(left), sampled if refined is None else refined)


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
    _, _, sampled = _by_moves(answers, None, None, n_groups, np.random.default_rng(seed))
    return canonical(sampled.labels)


def _by_moves(
    answers: Answers,
    given: FloatArray | None,
    items: Vectors | None,
    n_groups: int | None,
    rng: np.random.Generator,
) -> tuple[Problem, list[State], Refined]:
    """The best partitions, and draws around them; which pairs were asked counts where that
    foretells answers better."""
    pair_odds, prior, rates = _pairs_alone(answers, given, items)
    problem = Problem(answers, prior, n_groups, rng)
    states = _search(problem, starts(problem, pair_odds), rates)
    if not problem.fixed and (few := _of_given_numbers(problem, pair_odds, rates)):
        # Of two that are about as likely the finer stays: cells may join its groups, never cut.
        large = _search(problem, few, rates)
        if large[0].evidence > states[0].evidence + CLOSE:
            states = large
    sampled = _by_sampling(problem, states[0])
    if 2 * answers.n_pairs < MOST_ASKED * answers.n_items * (answers.n_items - 1):
        asked = Problem(answers, prior, n_groups, rng, Asking.build(answers, rng))
        begin = [state.labels for state in states[:2]]
        other = _search(asked, begin + contractions(asked, pair_odds), rates)
        drawn = _by_sampling(asked, other[0])
        if _foretold(answers, drawn) > _foretold(answers, sampled):
            return asked, other, drawn
    return problem, states, sampled


def _pairs_alone(
    answers: Answers, given: FloatArray | None, items: Vectors | None
) -> tuple[FloatArray, FloatArray | None, Rates]:
    """Log-odds of each pair from its own answers, the part that was known before, and rates.

    The known part is relative to a usual pair: how common "same" is among asked pairs is left to
    the partition.
    """
    design = None if items is None else pair_similarities(items, answers.left, answers.right)
    if given is not None:
        design = given[:, None] if design is None else np.column_stack([given, design])
    known = np.zeros(answers.n_pairs)

    def update_prior(belief: FloatArray) -> FloatArray:
        base = float(logit(np.clip(belief.mean(), 1e-4, 1 - 1e-4)))
        if design is not None:
            known[:] = logistic_log_odds(design, belief) - base
        return known + base

    _, odds, rates = pair_beliefs(answers, update_prior)
    return odds, None if design is None else known, rates


def _search(problem: Problem, first: list[IntArray], rates: Rates) -> list[State]:
    """The best states that partitions (N,) lead to, best first."""
    states = [problem.alternate(problem.fit(labels, rates), 1) for labels in first]
    states.sort(key=lambda state: -state.evidence)
    best = states[:N_KEPT]
    states = [problem.alternate(state, 8) for state in tracked(best, of=len(best))]
    sweeps = _affordable(problem.answers.n_items, ANNEAL_SWEEPS)
    labels = problem.improve(max(states, key=lambda s: s.evidence), ANNEAL_FROM, sweeps)
    states.append(problem.alternate(problem.fit(labels, rates), 8))
    return sorted(states, key=lambda state: -state.evidence)


def _of_given_numbers(problem: Problem, pair_odds: FloatArray, rates: Rates) -> list[IntArray]:
    """Partitions (N,) into a few large groups, a number of them after the other until two in a row
    explain less than one before.

    Were the number left open meanwhile, rough groups would be cut to pieces before they are found.
    """
    answers, found, values = problem.answers, [], []
    for k in COUNTS:
        if k >= answers.n_items / 4 or answers.n_items > MAX_ITEMS:
            break
        so_many = Problem(answers, problem.prior, k, problem.rng)
        best = _search(so_many, starts(so_many, pair_odds), rates)[0]
        found.append(best.labels)
        values.append(problem.fit(best.labels, best.rates).evidence)
        if len(values) > 2 and max(values[-2:]) < max(values[:-2]):
            break
    return found


def _by_piles(
    answers: Answers, sorts: Sorts, n_groups: int | None, rng: np.random.Generator
) -> Refined | None:
    """Groups that explain the piles of sorts; None where the piles alone tell too little."""
    belief, concentration, _ = place_sorted(sorts, n_groups, rng)
    if not is_telling(sorts, belief, concentration):
        return None
    together = np.einsum("pc,pc->p", belief[answers.left], belief[answers.right])
    rates = fit_rates(answers, together)
    return Refined(belief.argmax(1), belief.max(1), together, rates)


def _by_sampling(problem: Problem, state: State) -> Refined:
    """Draws of partitions around a state, rates fitted to them, and what the draws agree on.

    Monte Carlo EM (Wei & Tanner 1990): rates that fit the one best partition would be too good.
    Draws go on from one another, and what they agree on is the result, where the number of groups
    is given (the likeliest partition puts items of which little is known where they fit best by
    chance) and where asking is modelled; else they stay around the state.
    """
    answers = problem.answers
    sweeps = _affordable(answers.n_items, GIBBS_SWEEPS)
    polishing = _affordable(answers.n_items, POLISH_SWEEPS)
    goes_on = problem.fixed or problem.asking is not None
    if not goes_on:
        for temperature in (0.0, 1.0, 1.0, 0.0):
            state = problem.polish(state, temperature, polishing if temperature else 0)
    beliefs, draws = [], [state.labels[None]]
    soft = state
    for turn in tracked(range(BURN_IN + GIBBS_TURNS), of=BURN_IN + GIBBS_TURNS):
        belief, drawn = sample_agreement(problem.mover(soft), problem.rng, sweeps)
        around = drawn[-1] if goes_on else state.labels
        soft = problem.read(around, fit_rates(answers, belief, soft.rates))
        if turn >= BURN_IN:
            beliefs.append(belief)
            draws.append(drawn)
    belief = np.mean(beliefs, axis=0)
    labels = state.labels
    if goes_on:
        labels = agreed_partition(np.concatenate(draws), problem.fixed, problem.rng)
    mover = problem.mover(soft, labels)
    chance = np.array([mover.own_chance(i) for i in range(answers.n_items)])
    return Refined(labels, chance, belief, soft.rates)


def _foretold(answers: Answers, refined: Refined) -> float:
    """How well each pair's answers are foretold by all others: models are compared by it."""
    return log_predictive(answers, refined.rates, refined.belief)


def _affordable(n_items: int, n_sweeps: int) -> int:
    return max(min(n_sweeps, MAX_VISITS // max(n_items, 1)), 2)


def _by_pair(answers: Answers, values: FloatArray) -> FloatArray:
    """(P,) mean over the answers of each pair of values (M,) in the order given."""
    count = np.diff(np.append(answers.first, len(answers.same)))
    ordered = np.asarray(values, np.float64)[answers.order]
    return np.asarray(np.add.reduceat(ordered, answers.first) / count)


def _result(answers: Answers, n_given: int, refined: Refined) -> Partition:
    answer_same = np.full(n_given, np.nan)
    answer_same[answers.order] = refined.belief[answers.pair]
    return Partition(
        labels=canonical(refined.labels),
        probability=refined.probability,
        pairs=np.stack([answers.left, answers.right], axis=1),
        pair_same=refined.belief,
        answer_same=answer_same,
        p_same=refined.rates.p_same,
        objective=_foretold(answers, refined),
    )


def _nothing_asked(answers: Answers, n_given: int, n_groups: int | None) -> Partition:
    n = answers.n_items
    labels = np.arange(n) if n_groups is None else np.arange(n) % n_groups
    rates = np.tile([0.8, 0.2], (answers.n_annotators, 1))
    unknown = np.full(n_given, np.nan)
    pairs = np.empty((0, 2), np.int64)
    return Partition(labels, np.zeros(n), pairs, np.empty(0), unknown, rates, 0.0)
