"""Simulated records for the tests of groups: pairs that were asked, answers, truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Records:
    """Answers about pairs of records, some of them wrong."""

    truth: NDArray[np.int64]
    """(N,) the entity that each record is about."""
    ids: NDArray[np.str_]
    """(N,) what the records are called."""
    left: NDArray[np.int64]
    """(M,) positions."""
    right: NDArray[np.int64]
    """(M,) positions."""
    same: NDArray[np.bool_]
    """(M,) the answers."""
    who: NDArray[np.str_]
    """(M,) the people."""

    def csv(self) -> str:
        rows = zip(self.ids[self.left], self.ids[self.right], self.same, self.who, strict=True)
        lines = [f"{a},{b},{'same' if said else 'different'},{w}" for a, b, said, w in rows]
        return "\n".join(["left,right,same,annotator", *lines]) + "\n"


def records(
    n_items: int = 300,
    n_groups: int = 60,
    n_pairs: int = 3000,
    wrong: float = 0.1,
    n_people: int = 10,
    swapped: int = 0,
    seed: int = 0,
) -> Records:
    """Every pair inside a group and as many others as make up ``n_pairs``, one answer each.

    Of ``n_people`` the first ``swapped`` say the opposite of what they see.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_items) % n_groups)
    left, right = np.triu_indices(n_items, 1)
    inside = np.flatnonzero(truth[left] == truth[right])
    across = np.flatnonzero(truth[left] != truth[right])
    asked = np.concatenate([inside, rng.choice(across, n_pairs - len(inside), replace=False)])
    asked = rng.permutation(asked)
    left, right = left[asked], right[asked]
    who = rng.integers(n_people, size=n_pairs)
    said = (truth[left] == truth[right]) ^ (rng.random(n_pairs) < wrong) ^ (who < swapped)
    ids = np.array([f"rec-{k:04d}/ä" for k in range(n_items)])
    return Records(truth, ids, left, right, said, np.array([f"person {w}" for w in who]))


def pairwise_f1(labels: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """F1 over all pairs of items: said to be of one group against being of one."""
    left, right = np.triu_indices(len(truth), 1)
    said, are = labels[left] == labels[right], truth[left] == truth[right]
    return float(2 * np.count_nonzero(said & are) / max(said.sum() + are.sum(), 1))


def partitions(n: int) -> Iterator[list[int]]:
    """Every partition of n items, as labels by first appearance."""
    if n == 0:
        yield []
        return
    for rest in partitions(n - 1):
        for group in range(max(rest, default=-1) + 2):
            yield [*rest, group]
