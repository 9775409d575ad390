"""Agreement between people: Krippendorff's alpha of the pairs that several of them judged.

Nominal alpha with missing data (Krippendorff, *Content Analysis*, 2004, chapter 11): 1 where all
agree, 0 where they agree as often as answers dealt out by chance would, below 0 where they disagree
more than that. A unit is a pair of items, an observer a person, a value "same" or "different".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.container import Pairs
from likewise.pairs.edges import chunks
from likewise.pairs.triangles import PairIndex


@dataclass(frozen=True)
class Agreement:
    """How far people agree about pairs that more than one of them judged."""

    alpha: float | None
    """Krippendorff's alpha; None where every such answer is the same, which tells nothing."""
    pairs: int
    """Pairs judged by two people or more."""
    answers: int
    """Answers about them, one a person."""


def agreement(pairs: Pairs, index: PairIndex) -> Agreement | None:
    """The agreement between people; None where nobody is named or no two judged one pair.

    ``index`` is that of the pairs' graph. Where a person judged one pair twice, the first counts.
    """
    if pairs.annotator is None:
        return None
    people = PeoplesAnswers()
    people.add(*_repeated(pairs, index))
    return people.agreement()


class PeoplesAnswers:
    """The sums that alpha is made of, from answers that come in pieces; a pair is in one of them.

    Units with n answers, of which s say "same", disagree by s (n - s) / (n - 1).
    """

    def __init__(self) -> None:
        self._pairs = self._answers = self._same = 0
        self._disagreeing = 0.0

    def add(
        self, code: NDArray[np.int64], person: NDArray[np.int32], same: NDArray[np.int64]
    ) -> None:
        """All answers (n,) about some pairs, in the order in which they were given."""
        order = np.lexsort((person, code))  # stable: a person's first answer comes first
        code, person, same = code[order], person[order], same[order]
        first = np.ones(len(code), bool)
        first[1:] = (code[1:] != code[:-1]) | (person[1:] != person[:-1])
        code, same = code[first], same[first]
        _, start, number = np.unique(code, return_index=True, return_counts=True)
        said_same = np.add.reduceat(same, start) if len(start) else np.empty(0, np.int64)
        number, said_same = number[number > 1], said_same[number > 1]
        self._pairs += len(number)
        self._answers += int(number.sum())
        self._same += int(said_same.sum())
        self._disagreeing += float(np.sum(said_same * (number - said_same) / (number - 1)))

    def agreement(self) -> Agreement | None:
        """Of all that was added; None where no two people judged one pair."""
        if not self._pairs:
            return None
        alpha = None
        if 0 < self._same < self._answers:
            apart = (self._answers - 1) * self._disagreeing
            alpha = 1 - apart / (self._same * (self._answers - self._same))
        return Agreement(alpha, self._pairs, self._answers)


def _repeated(
    pairs: Pairs, index: PairIndex
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """(pair, person, same) of the judgements that count, about pairs judged more than once."""
    assert pairs.annotator is not None
    codes, people, answers = [], [], []
    twice = index.repeated()
    for part in chunks(len(pairs)):
        code = index.code(pairs.left[part], pairs.right[part])
        place = np.searchsorted(twice, code)
        keep = np.zeros(len(code), bool)
        if len(twice):
            keep = twice[np.minimum(place, len(twice) - 1)] == code
        if pairs.weight is not None:
            keep &= pairs.weight[part] > 0
        codes.append(code[keep])
        people.append(pairs.annotator[part][keep])
        answers.append(pairs.same[part][keep].astype(np.int64))
    if not codes:
        return np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
    return np.concatenate(codes), np.concatenate(people), np.concatenate(answers)
