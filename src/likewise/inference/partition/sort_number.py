"""How many groups there are of sorted items: as many as foretell best what was left out of sorts.

Evidence would merge what most people merge. A single search errs the more the more groups it is
asked for, which looks as if fewer groups foretold better; so what several searches foretell is
averaged (Bayesian model averaging, Hoeting et al. 1999) before numbers are compared.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from likewise.inference.partition.arrays import FloatArray
from likewise.inference.partition.piles import unseen_log_chances
from likewise.inference.partition.sort_search import merge_path, most_groups
from likewise.inference.partition.sorts import Sorts

HELD_OUT, N_SPLITS = 0.1, 4
N_SEARCHES = 3, 6  # of each split: at least, and at most
MAX_STEPS = 2e7  # rows times groups squared, which a search's time grows with: over all of a split
MORE, AND = 1.5, 10  # times as many groups as a first search finds, and so many: others begin there
STRONG = 3.0  # nats, odds of twenty to one (Kass & Raftery 1995)


def count_groups(sorts: Sorts, rng: np.random.Generator, about: int | None = None) -> int:
    """The fewest groups that foretell hardly worse than the best number does.

    ``about`` how many a first search has found, where there was one.
    """
    splits = [hold_out(sorts, rng) for _ in range(N_SPLITS)]
    if about is None:
        about = best_number(foretold_by_number(*splits[0], most_groups(sorts), rng))
    most = number_to_begin_with(sorts, about)
    n_searches = int(np.clip(MAX_STEPS / (most * most * len(sorts.item)), *N_SEARCHES))
    total: dict[int, float] = {}
    for seen, unseen in splits:
        searches = [foretold_by_number(seen, unseen, most, rng) for _ in range(n_searches)]
        for number in searches[0]:
            each = np.stack([scores[number] for scores in searches])
            together = logsumexp(each, axis=0) - np.log(len(each))
            total[number] = total.get(number, 0.0) + float(together.sum())
    best = max(total.values())
    return min(number for number, value in total.items() if value > best - STRONG)


def hold_out(sorts: Sorts, rng: np.random.Generator) -> tuple[Sorts, Sorts]:
    """Most rows of the sorts, and the rest."""
    held = rng.random(len(sorts.item)) < HELD_OUT
    return sorts.select(~held), sorts.select(held)


def foretold_by_number(
    seen: Sorts, unseen: Sorts, most: int, rng: np.random.Generator
) -> dict[int, FloatArray]:
    """(e,) log P(pile) of the unseen rows by one search for ``most`` groups and fewer."""
    return {
        belief.shape[1]: unseen_log_chances(seen, unseen, belief, model)
        for belief, model in merge_path(seen, most, 2, rng, n_starts=1)
    }


def best_number(foretold: dict[int, FloatArray]) -> int:
    """The number of groups whose unseen rows are likeliest."""
    return max(foretold, key=lambda number: float(foretold[number].sum()))


def number_to_begin_with(sorts: Sorts, about: int) -> int:
    """Too many groups for a search that merges them, where ``about`` so many are right."""
    return min(int(MORE * about) + AND, most_groups(sorts))
