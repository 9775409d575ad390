"""A partition under two rates: the search from several starts, and draws around what it finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from likewise.inference.partition.agreement import agreed_partition
from likewise.inference.partition.answers import Answers, Rates, fit_rates
from likewise.inference.partition.arrays import FloatArray, IntArray, Vectors
from likewise.inference.partition.asking import Asking
from likewise.inference.partition.leftovers import place_leftovers
from likewise.inference.partition.model import Problem, State
from likewise.inference.partition.moves import sample_agreement
from likewise.inference.partition.pair_prior import logistic_log_odds, pair_similarities
from likewise.inference.partition.pairs import log_predictive, pair_beliefs
from likewise.inference.partition.refine import MAX_ITEMS, Refined, blocks_apply, refine
from likewise.inference.partition.starts import COUNTS, contractions, starts
from likewise.io.progress import tracked

# Starts that are worked out, annealing of the best (temperature in nats, sweeps), and Gibbs sweeps
# for the probabilities of pairs.
N_KEPT, N_OF_OTHER_SIZES = 3, 2
ALIKE = 1.5  # times as many groups are about as many
ANNEAL_FROM, ANNEAL_SWEEPS = 2.0, 20
GIBBS_SWEEPS, GIBBS_TURNS, BURN_IN = 5, 6, 3
BY_CHANCE = 0.5  # nats an item: what a place that was found by chance may be worth
NEARLY = 1.0  # nats an item: how uncertain the places of items may be
MOST_ASKED = 0.5  # share of all pairs, beyond which it says little which of them were asked
# Annealing and Gibbs sweeps are shortened so that no more than so many visits of items are made.
MAX_VISITS = 200_000
# Gibbs sweeps of few items are lengthened until so many visits are made, or sweeps.
FEWEST_VISITS, MOST_SWEEPS = 500, 50


@dataclass(frozen=True)
class Fit:
    """The best partitions under two rates, and draws around the best."""

    problem: Problem
    """Under which they were found."""
    states: list[State]
    """The best first."""
    sampled: Refined
    """What draws around it agree on."""
    likely_numbers: tuple[int, ...] = ()
    """Numbers of groups that explain nearly as much, where none was given."""


def fit_partition(
    answers: Answers,
    items: Vectors | None,
    n_groups: int | None,
    rng: np.random.Generator,
    asking: bool | None = None,
    place: bool = True,
    told: bool = True,
    begin: IntArray | None = None,
) -> Fit:
    """Groups by the search from several starts.

    ``asking``: whether it counts which pairs were asked; None where that foretells answers better.
    ``place``: whether items that are alone because draws disagree are placed. ``told``: whether
    there are ``n_groups`` in the end, or only while they are looked for: a search with room for
    more groups than there are sets a few odd items aside in them. ``begin`` (N,): groups to begin
    from as well.
    """
    begun = [] if begin is None else [begin]
    pair_odds, prior, rates = pairs_alone(answers, items)
    few_asked = 2 * answers.n_pairs < MOST_ASKED * answers.n_items * (answers.n_items - 1)
    modelled = Asking.build(answers, rng) if few_asked and asking is not False else None
    asked = Problem(answers, prior, n_groups, rng, modelled)
    if asked.fixed and asking is not None:
        states = search_from(asked, begun + starts(asked, pair_odds), rates)
        return Fit(asked, states, draw_around(asked, states[0], place, told))
    problem = Problem(answers, prior, n_groups, rng)
    states = search_from(problem, begun + starts(problem, pair_odds), rates)
    likely: tuple[int, ...] = ()
    if not problem.fixed and answers.n_items <= MAX_ITEMS:
        states, likely = _with_given_numbers(problem, states, pair_odds, rates)
    if modelled is None:
        return Fit(problem, states, draw_around(problem, states[0], place, told), likely)
    # Whoever knows which pairs were asked needs no spectra: these lead there too.
    begun += [state.labels for state in states[:2]]
    other = search_from(asked, begun + contractions(asked, pair_odds), rates)
    drawn = draw_around(asked, other[0], place, told)
    if asking is None:
        sampled = draw_around(problem, states[0], place, told)
        if foretold(answers, drawn) <= foretold(answers, sampled):
            return Fit(problem, states, sampled, likely)
    return Fit(asked, other, drawn, likely)


def _with_given_numbers(
    problem: Problem, states: list[State], pair_odds: FloatArray, rates: Rates
) -> tuple[list[State], tuple[int, ...]]:
    """The best states, begun from given numbers of groups too, and the numbers that explain nearly
    as much.

    Were the number left open meanwhile, rough groups would be cut to pieces before they are found.
    """
    answers, found = problem.answers, dict[int, IntArray]()
    free = states[0]
    for k in reversed([k for k in COUNTS if k < answers.n_items / 4]):
        so_many = Problem(answers, problem.prior, k, problem.rng)
        best = search_from(so_many, starts(so_many, pair_odds), rates)[0]
        behind = free.evidence - problem.fit(best.labels, best.rates).evidence
        if behind < NEARLY * answers.n_items:
            found[k] = best.labels
        elif k <= free.labels.max():
            break  # still fewer groups explain still less
    if found:
        large = search_from(problem, list(found.values()), rates)
        # A given number puts every item somewhere, and those of which little is known where they
        # fit best by chance: such partitions look likelier than they are.
        if large[0].evidence > free.evidence + BY_CHANCE * answers.n_items:
            states = large
    return states, tuple(sorted(found))


def pairs_alone(
    answers: Answers, items: Vectors | None
) -> tuple[FloatArray, FloatArray | None, Rates]:
    """Log-odds of each pair from its own answers, the part that its items' vectors say, and rates.

    That part is relative to a usual pair: how common "same" is among asked pairs is left to the
    partition.
    """
    design = None if items is None else pair_similarities(items, answers.left, answers.right)
    known = np.zeros(answers.n_pairs)

    def update_prior(belief: FloatArray) -> FloatArray:
        base = float(logit(np.clip(belief.mean(), 1e-4, 1 - 1e-4)))
        if design is not None:
            known[:] = logistic_log_odds(design, belief) - base
        return known + base

    _, odds, rates = pair_beliefs(answers, update_prior)
    return odds, None if design is None else known, rates


def search_from(problem: Problem, first: list[IntArray], rates: Rates) -> list[State]:
    """The best states that partitions (N,) lead to, best first."""
    states = [problem.alternate(problem.fit(labels, rates), 1) for labels in first]
    best = _promising(states)
    states = [problem.alternate(state, 8) for state in tracked(best, of=len(best))]
    sweeps = _affordable(problem.answers.n_items, ANNEAL_SWEEPS)
    labels = problem.improve(max(states, key=lambda s: s.evidence), ANNEAL_FROM, sweeps)
    states.append(problem.alternate(problem.fit(labels, rates), 8))
    return sorted(states, key=lambda state: -state.evidence)


def _promising(states: list[State]) -> list[State]:
    """The likeliest, and of those with another number of groups some more: a few large groups may
    begin far ahead of many small ones, and end behind."""
    states = sorted(states, key=lambda state: -state.evidence)
    kept, others = states[:N_KEPT], states[N_KEPT:]
    for state in others:
        if len(kept) < N_KEPT + N_OF_OTHER_SIZES and not any(_alike(state, own) for own in kept):
            kept.append(state)
    return kept


def _alike(one: State, other: State) -> bool:
    fewer, more = sorted(int(state.labels.max()) + 1 for state in (one, other))
    return more <= ALIKE * fewer


def draw_around(problem: Problem, state: State, place: bool = True, told: bool = True) -> Refined:
    """Draws of partitions around a state, rates fitted to them, and what the draws agree on.

    Monte Carlo EM (Wei & Tanner 1990): rates that fit the one best partition would be too good.
    Draws go on from one another, and what they agree on is the result: the likeliest partition puts
    items of which little is known where they fit best by chance. ``told`` as in `fit_partition`.
    """
    answers = problem.answers
    sweeps = _affordable(answers.n_items, GIBBS_SWEEPS)
    sweeps = max(sweeps, min(FEWEST_VISITS // answers.n_items, MOST_SWEEPS))
    beliefs, draws = [], [state.labels[None]]
    soft = state
    for turn in tracked(range(BURN_IN + GIBBS_TURNS), of=BURN_IN + GIBBS_TURNS):
        belief, drawn = sample_agreement(problem.mover(soft), problem.rng, sweeps)
        soft = problem.read(drawn[-1], fit_rates(answers, belief, soft.rates))
        if turn >= BURN_IN:
            beliefs.append(belief)
            draws.append(drawn)
    belief = np.mean(beliefs, axis=0)
    drawn = np.concatenate(draws)
    labels = agreed_partition(drawn, problem.fixed and told, problem.rng)
    places = drawn
    if not told:  # with a given number, odd items keep to the groups that have room for them
        problem = problem.of_any_number()
        open_to_all = problem.mover(problem.read(labels, soft.rates))
        places = np.concatenate([drawn, sample_agreement(open_to_all, problem.rng, sweeps)[1]])
    if place and not problem.fixed:
        labels = place_leftovers(
            labels, places, lambda placed: problem.read(placed, soft.rates).evidence
        )
    chance = problem.mover(problem.read(labels, soft.rates)).own_chances()
    return Refined(labels, chance, belief, soft.rates, drawn, drawn)


def with_cells(
    fit: Fit, quick: bool = False, place: bool = True, merge: bool | None = None
) -> Refined | None:
    """The same with a rate of "same" for every two groups, where these differ and groups are few.

    ``quick``: by a shorter search; ``merge``: whether looks of one class are (both as in `refine`).
    ``place``: as in `fit_partition`.
    """
    if not blocks_apply(fit.problem.answers, fit.states[0].labels):
        return None
    return refine(fit.problem, fit.states, quick, place, merge)


def foretold(answers: Answers, refined: Refined) -> float:
    """How well each pair's answers are foretold by all others: models are compared by it."""
    return log_predictive(answers, refined.rates, refined.belief)


def _affordable(n_items: int, n_sweeps: int) -> int:
    return max(min(n_sweeps, MAX_VISITS // max(n_items, 1)), 2)
