"""How many classes sorted items have: by piles and features together, or by the piles alone.

Piles say little of one item, and a search by them alone errs about the classes before it errs about
their number. Features mend that: groups are merged one by one, and after each merge EM places the
items anew by both. Numbers are compared by rows of sorts that were left out; of the best fit those
classes count that the judgements tell apart, so that one too many does no harm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.inference.em import State
from likewise.inference.heads.gaussian import GaussianHead
from likewise.inference.partition.arrays import FloatArray, IndexArray
from likewise.inference.partition.jackknife import jackknife_error
from likewise.inference.partition.piles import fit_piles, unseen_log_chances
from likewise.inference.partition.sort_number import (
    HELD_OUT,
    best_number,
    count_groups,
    hold_out,
    number_to_begin_with,
)
from likewise.inference.partition.sort_search import Placed, merge_path, merge_two, most_groups
from likewise.inference.partition.sorts import Sorts
from likewise.inference.partition.told_apart import merge_untold
from likewise.inference.problem import MAX_GAUSSIAN_ITEMS, JointProblem, make_brief_problem
from likewise.inference.propagation.sort_graph import SortGraph
from likewise.inference.selection.start_selection import em_from
from likewise.noise.channels import RateChannel
from likewise.pairs import Pairs
from likewise.pairs.counting import Evidence

STIFFNESS = 0.5
ENOUGH_ROWS, MOST_SPLITS = 400, 4  # left out, and times that some are
CLEARLY = 2.0  # standard errors: among many numbers one foretells better than it should
HARDLY = 0.5  # too few classes are worse than too many, of which some are not told apart


def count_sorted(
    pairs: Pairs, sorts: Sorts, items: NDArray[Any] | None, rng: np.random.Generator
) -> tuple[int, Evidence]:
    """``(number of classes, evidence)`` of judgements that were made from ``sorts``."""
    rule: Evidence = {"rule": "held-out items of sorts"}
    problem = None if items is None else _problem(items, pairs, rng)
    if problem is None:
        return max(count_groups(sorts, rng), 2), rule
    splits = [hold_out(sorts, rng) for _ in range(_n_splits(sorts))]
    left_out = np.concatenate([unseen.item for _, unseen in splits])
    paths = [_by_piles(seen, rng) for seen, _ in splits]
    alone = {
        number: np.concatenate(
            [unseen_log_chances(*split, *path[number]) for split, path in zip(splits, paths)]
        )
        for number in paths[0]
    }
    about = best_number(alone)
    begun = min(number for number in alone if number >= number_to_begin_with(sorts, about))
    fits = [
        _with_features(problem, seen, path[begun][0], about // 2)
        for (seen, _), path in zip(splits, paths)
    ]
    scores = {
        number: np.concatenate([_foretold(fit[number], *split) for split, fit in zip(splits, fits)])
        for number in fits[0]
    }
    best = fewest_close(scores, left_out)
    lead = scores[best] - alone[about]
    if lead.mean() <= CLEARLY * jackknife_error(lead, left_out):
        return max(count_groups(sorts, rng, about), 2), rule
    told = {number: _told([fit[number] for fit in fits], pairs) for number in scores}
    return max(told[best], 2), {
        "rule": "held-out items of sorts, with features",
        "told_apart": {str(number): told[number] for number in sorted(told)},
        "held_out_log_likelihood": {
            str(number): round(float(scores[number].mean()), 4) for number in sorted(scores)
        }
        | {"judgements alone": round(float(alone[about].mean()), 4)},
    }


def fewest_close(scores: dict[int, FloatArray], items: IndexArray) -> int:
    """The fewest classes whose scores (e,) of ``items`` (e,) are hardly behind the best number's:
    as in the one-standard-error rule (Breiman et al. 1984)."""
    best = scores[best_number(scores)]

    def is_close(number: int) -> bool:
        behind = best - scores[number]
        return float(behind.mean()) <= HARDLY * jackknife_error(behind, items)

    return min(filter(is_close, scores))


def _n_splits(sorts: Sorts) -> int:
    """One where many rows are left out; of few, other ones are left out again."""
    return int(np.clip(ENOUGH_ROWS / (HELD_OUT * len(sorts.item)), 1, MOST_SPLITS))


def _by_piles(seen: Sorts, rng: np.random.Generator) -> dict[int, Placed]:
    """Fits by the piles alone, by their number of groups."""
    path = merge_path(seen, most_groups(seen), 2, rng)
    return {belief.shape[1]: (belief, model) for belief, model in path}


def _problem(items: NDArray[Any], pairs: Pairs, rng: np.random.Generator) -> JointProblem | None:
    """With features for Gaussian heads; None where items have none, or are too many."""
    if items.ndim != 2 or len(items) > MAX_GAUSSIAN_ITEMS:
        return None
    return make_brief_problem(items, pairs, rng)


def _with_features(
    problem: JointProblem, sorts: Sorts, belief: FloatArray, least: int
) -> dict[int, State]:
    """Fits of fewer and fewer classes, by their number, each begun from the one before with two
    classes merged."""
    assert problem.features is not None
    head = GaussianHead(problem.features, STIFFNESS)
    problem = replace(problem, graph=SortGraph.of(sorts, "cpu"))
    found: dict[int, State] = {}
    while True:
        number = belief.shape[1]
        start = torch.from_numpy(belief).float(), RateChannel()
        found[number] = em_from(replace(problem, n_classes=number), head, start)
        if number <= max(least, 2):
            return found
        belief = found[number].targets.perceived.double().numpy()
        model = fit_piles(sorts, belief)
        for _ in range(min(max(number // 12, 1), number - 2)):
            belief, model = merge_two(sorts, belief, model)


def _foretold(state: State, seen: Sorts, unseen: Sorts) -> FloatArray:
    """(e,) log P(pile) of the unseen rows."""
    belief = state.targets.perceived.double().numpy()
    return unseen_log_chances(seen, unseen, belief, fit_piles(seen, belief))


def _told(states: list[State], pairs: Pairs) -> int:
    """How many of the classes the judgements tell apart, in the median of some fits."""
    labels = (state.targets.perceived.argmax(dim=1).numpy() for state in states)
    asked = pairs.left, pairs.right, pairs.same
    return int(np.median([merge_untold(one, *asked).max() + 1 for one in labels]))
