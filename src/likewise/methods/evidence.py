"""The E-step of a joint fit: what the judgements say of each item's perceived class.

Cost grows with what is uncertain. Consistent judgements are a partition: its parts *are* the
perceived classes. Where the graph of judgements decides by itself, slips and contradictions in it
included, no network is needed. What is left, sparse or very noisy, takes the items: lifting, EM.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.inference.fit import JointResult, fit_joint
from likewise.inference.problem import has_rich_features
from likewise.inference.propagation.cell_rates import cells_differ
from likewise.inference.propagation.crowd_beliefs import crowd_beliefs
from likewise.inference.propagation.graph_beliefs import graph_beliefs, thinned
from likewise.inference.propagation.known import certain, in_known_order
from likewise.inference.propagation.sort_graph import sorts_of
from likewise.methods.alignment import align_transition, is_order_free
from likewise.methods.lifted_evidence import lift_judgements
from likewise.methods.problem import Problem, is_exact
from likewise.noise.channels import Channel
from likewise.noise.estimation import one_hot_evidence
from likewise.pairs.shards import PairShard, total_of, whole
from likewise.training.checkpoints import Checkpoints
from likewise.training.replay_cache import ReplayCache

DECIDED = 0.95  # share of the items that the graph must decide, to do without EM
# Noise models that two rates and a transition matrix can tell.
PLAIN = ("auto", "judgement", "both")
PEOPLE = ("auto", "annotator")  # those that tell people apart
FEW_JUDGEMENTS = 200_000  # of several people, for EM; a million take minutes and a gigabyte
MOST_JUDGEMENTS = 1_000_000  # for EM, where people confuse classes


@dataclass(frozen=True)
class Evidence:
    """What was found out about the perceived classes, and how."""

    rows: Tensor
    """(N, C) likelihood of each item's judgements for each class; zeros where there are none."""
    why: str
    """How, in a few words."""
    of_classes: bool = False
    """Whether the rows speak of the classes themselves, so that no T stands in between."""
    channel: Channel | None = None
    """How an answer comes from two perceived classes; None where it is exact."""
    transition: NDArray[np.float64] | None = None
    """T as EM has estimated it; None where that is left to training."""
    annotators: dict[str, list[object]] | None = None
    """A table of people by columns, most reliable first."""
    log_g: Tensor | None = None
    """(N, C) log posterior of the class from the item alone, out of fold, where EM with the same
    network has found it."""
    posterior: NDArray[np.float32] | None = None
    """(N, C) P(y | item, judgements), where EM has found it."""
    model: nn.Module | None = None
    """The classifier itself, where EM ends in one that no network would improve."""
    history: list[dict[str, object]] = field(default_factory=list)
    """A row for each round of EM."""


def find_evidence(
    problem: Problem,
    transition: NDArray[np.float64] | str | None,
    noise: str,
    checkpoints: Checkpoints | None = None,
    known: Tensor | None = None,
) -> Evidence:
    """Components, else the graph alone, else EM: the first that decides.

    ``known`` (N, C) are classes that are certain beforehand (`inference.propagation.known`).
    """
    found = _first_that_decides(problem, transition, noise, checkpoints, known)
    rows = found.rows
    if found.transition is None:  # else T and the rows have one order, begun from what is known
        rows = in_known_order(rows, known)
    return replace(found, rows=certain(rows, known))


def _first_that_decides(
    problem: Problem,
    transition: NDArray[np.float64] | str | None,
    noise: str,
    checkpoints: Checkpoints | None,
    known: Tensor | None,
) -> Evidence:
    exact, why = is_exact(problem)
    if exact and noise in ("auto", "class"):
        ids = torch.from_numpy(problem.components).long()
        return Evidence(one_hot_evidence(ids, problem.n_classes, torch.float32), why)
    whole_problem = problem
    problem = _thinned(problem)
    names = problem.pairs.annotator_names
    people = names is not None and len(names) > 1
    if noise in PLAIN and not people and not has_rich_features(problem.items, problem.network):
        found = graph_beliefs(problem.pairs.explicit(), problem.n_classes, problem.seed)
        if found is not None and found.decided >= DECIDED:
            a, b = found.channel.a, found.channel.b
            if noise == "auto" and _are_confused(problem, found.evidence, np.array([[a, b]])):
                problem = _in_one_place(whole_problem, problem)
                return _by_em(problem, transition, noise, why, checkpoints, known)
            told = (
                f"{why}; the graph decides {found.decided:.0%} of the items at "
                f"P(same | same) {a:.3f} and P(same | different) {b:.3f}"
            )
            return Evidence(torch.from_numpy(found.evidence), told, channel=found.channel)
        problem = _in_one_place(whole_problem, problem)
        if (lifted := lift_judgements(problem, transition, known)) is not None:
            return Evidence(
                rows=lifted.rows,
                why=f"{why}; {lifted.why}",
                of_classes=lifted.transition is None,
                channel=lifted.channel,
                transition=lifted.transition,
                log_g=lifted.log_g,
            )
    elif noise in PEOPLE and people and (crowd := _by_crowd(problem, noise)) is not None:
        return replace(crowd, why=f"{why}; {crowd.why}")
    problem = _in_one_place(whole_problem, problem)
    return _by_em(problem, transition, noise, why, checkpoints, known)


def _thinned(problem: Problem) -> Problem:
    if sorts_of(problem.pairs) is not None:  # of a sort, no pair may be missing
        return problem
    rng = np.random.default_rng([problem.seed, 3])
    return replace(problem, pairs=thinned(problem.pairs, rng))


def _in_one_place(given: Problem, thin: Problem) -> Problem:
    """The ``thin`` problem with all of its judgements: lifting and EM are not shared out."""
    if not isinstance(given.pairs, PairShard):
        return thin
    return _thinned(replace(given, pairs=whole(given.pairs)))


def _by_crowd(problem: Problem, noise: str) -> Evidence | None:
    """What the graph alone says where several people judged; None where it does not decide.

    Of fewer judgements, which EM is soon done with, it finds out a little more.
    """
    few = total_of(problem.pairs) <= FEW_JUDGEMENTS
    if few or has_rich_features(problem.items, problem.network):
        return None
    if sorts_of(problem.pairs) is not None:
        return None
    found = crowd_beliefs(problem.pairs.explicit(), problem.n_classes, problem.seed)
    if found is None or found.decided < DECIDED:
        return None
    rates = found.channel.rates()
    if noise == "auto" and _are_confused(problem, found.evidence, rates.double().numpy()):
        return None
    a, b = rates.mean(0).tolist()
    told = (
        f"the graph decides {found.decided:.0%} of the items, {found.channel.n_annotators} people "
        f"told apart, at P(same | same) {a:.3f} and P(same | different) {b:.3f} on average"
    )
    return Evidence(torch.from_numpy(found.evidence), told, channel=found.channel)


def _are_confused(
    problem: Problem, belief: NDArray[np.float32], p_same: NDArray[np.float64]
) -> bool:
    """Whether people take some classes for each other: EM has channels for that, the graph none.

    Of images, and of more judgements than that, EM would take too long.
    """
    if problem.items.ndim > 2 or total_of(problem.pairs) > MOST_JUDGEMENTS:
        return False
    return cells_differ(problem.pairs.explicit(), belief.argmax(axis=1), p_same)


def _by_em(
    problem: Problem,
    transition: NDArray[np.float64] | str | None,
    noise: str,
    why: str,
    checkpoints: Checkpoints | None,
    known: Tensor | None,
) -> Evidence:
    # EM numbers the classes as it finds them: a T that is given is brought to that order after.
    later = transition if isinstance(transition, np.ndarray) else None
    if later is not None and is_order_free(later):
        later = None
    result: JointResult = fit_joint(
        problem.items,
        problem.pairs,
        problem.n_classes,
        network=problem.network,
        noise=noise,
        transition=transition if later is None else "estimate",
        random_state=problem.seed,
        device=problem.device,
        replay_cache=None if checkpoints is None else ReplayCache(checkpoints),
        known=known,
    )
    learned = result.transition
    if later is not None:
        learned = align_transition(later, torch.from_numpy(learned)).numpy()
    # A network learns from what was judged, or, where that says little, from what EM believes.
    of_classes = result.module is None and result.features_say_more
    return Evidence(
        rows=torch.from_numpy(result.classes if of_classes else result.judged),
        why=f"{why}; {result.choice}",
        of_classes=of_classes,
        channel=result.channel,
        transition=learned,
        annotators=result.annotators or None,
        posterior=result.classes,
        model=result.module,
        history=[_row(row) for row in result.history],
    )


def _row(row: dict[str, object]) -> dict[str, object]:
    """A round as a row of the history, without the clock: the same seed gives the same model."""
    kept = {name: value for name, value in row.items() if name not in ("seconds", "round")}
    return {"method": "em", "epoch": int(str(row["round"])) - 1} | kept
