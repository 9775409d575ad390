"""Pairs that something suggested: more of them are the same than of all pairs; a tenth wrong.

A share of the asked pairs is drawn inside a group that is drawn first, so that small groups are
asked about as often as large ones, and the others anywhere. `informed` says what the answers can
tell about: it knows the rates of wrong answers and of asking and the number of groups and their
sizes' distribution, and begins at the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise import Pairs
from likewise.inference.partition.agreement import agreed_partition
from likewise.inference.partition.answers import Answers, log_likelihood, two_rates
from likewise.inference.partition.asking import Asking
from likewise.inference.partition.model import size_log_prior
from likewise.inference.partition.moves import Mover
from likewise.inference.partition.search import WeightedGraph, canonical

N_PAIRS, N_GROUPS, WRONG = 3000, 60, 0.1
SWEEPS, BURN_IN = 60, 15


@dataclass(frozen=True)
class Suggested:
    """How pairs are suggested, and about what."""

    share: float
    """Of the asked pairs, drawn inside a group."""
    n_items: int = 300
    """Items."""
    sizes: str = "by chance"
    """Of the groups: even, by chance, skewed, or by Zipf's law."""
    n_people: int = 1
    """Named people; one has no name."""
    repeated: bool = True
    """Whether a pair may be asked more than once."""


CASES = {
    "half the same": Suggested(0.5),
    "half the same, 30 people": Suggested(0.5, n_people=30),
    "half the same, equal groups": Suggested(0.5, sizes="even"),
    "half the same, 600 items": Suggested(0.5, n_items=600),
    "half the same, Zipf": Suggested(0.5, sizes="zipf"),
    "30% the same": Suggested(0.3),
    "30% the same, equal groups": Suggested(0.3, sizes="even"),
    "30% the same, 150 items": Suggested(0.3, n_items=150),
    "30% the same, skewed": Suggested(0.3, sizes="skewed"),
    "20% the same": Suggested(0.2),
    "20% the same, no pair twice": Suggested(0.2, repeated=False),
    "20% the same, equal groups": Suggested(0.2, sizes="even"),
    "random pairs": Suggested(0.0),
}


def simulate(case: Suggested, rng: np.random.Generator) -> tuple[Pairs, np.ndarray]:
    """Answers and true groups (N,)."""
    n = case.n_items
    chance = {
        "by chance": np.ones(N_GROUPS),
        "skewed": rng.gamma(1.0, size=N_GROUPS),
        "zipf": 1 / np.arange(1.0, N_GROUPS + 1),
    }
    if case.sizes == "even":
        truth = rng.permutation(np.arange(n) % N_GROUPS)
    else:
        weight = chance[case.sizes]
        truth = rng.choice(N_GROUPS, n, p=weight / weight.sum())
    members = [found for c in range(N_GROUPS) if len(found := np.flatnonzero(truth == c)) > 1]
    asked: list[tuple[int, int]] = []
    seen: set[tuple[int, int]] = set()
    while len(asked) < N_PAIRS:
        inside = rng.random() < case.share
        among = members[rng.integers(len(members))] if inside else np.arange(n)
        one, other = sorted(rng.choice(among, 2, replace=False).tolist())
        if case.repeated or (one, other) not in seen:
            asked.append((one, other))
            seen.add((one, other))
    left, right = np.array(asked).T
    same = (truth[left] == truth[right]) ^ (rng.random(N_PAIRS) < WRONG)
    who = None
    if case.n_people > 1:
        who = [f"w{k:02d}" for k in rng.integers(case.n_people, size=N_PAIRS)]
    return Pairs(left, right, same, who, n_items=n), truth


def informed(pairs: Pairs, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(N,) what draws around the truth agree on, where all rates and all group names are known."""
    n, truth = len(truth), canonical(truth)
    answers = Answers.build(pairs.left, pairs.right, pairs.same, n, None, None)
    likelihood = log_likelihood(answers, two_rates(answers, 1 - WRONG, WRONG))
    ratios = Asking.build(answers, rng).log_ratios(truth, 0.0)
    weight = likelihood[:, 0] - likelihood[:, 1] + ratios.asked - ratios.usual
    size = np.arange(n + 1.0)
    by_size = size_log_prior(truth, None)[0] + ratios.unasked * size * (size - 1) / 2
    graph = WeightedGraph.build(answers.left, answers.right, weight, n)
    mover = Mover(graph, truth, by_size, fixed=True)
    drawn = []
    for turn in range(SWEEPS):
        mover.sweep(rng.permutation(n), rng, 1.0)
        if turn >= BURN_IN:
            drawn.append(mover.labels)
    return agreed_partition(np.stack(drawn), False, rng)
