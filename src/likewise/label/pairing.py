"""Which pair comes next, for whom.

A pure function of the person, of what they have answered and of the suggestions: after a reload,
or a new start of the server, the same person meets the same open pair, and nothing had to be kept.

An unordered pair of items i < j is one number, its code j(j - 1)/2 + i, below N(N - 1)/2.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt

from likewise.label.asking import Questions

# One question in so many stays random where there are suggestions: a model that is wrong about
# some items would otherwise never be contradicted.
RANDOM_EVERY = 4
_TRIES = 64


def encode(left: int, right: int) -> int:
    """The code of an unordered pair of different items."""
    low, high = (left, right) if left < right else (right, left)
    return high * (high - 1) // 2 + low


def decode(code: int) -> tuple[int, int]:
    """The items (low, high) of a code."""
    high = (1 + isqrt(1 + 8 * code)) // 2
    return code - high * (high - 1) // 2, high


@dataclass
class Person:
    """What the choice needs to know of one person."""

    annotator: str
    """The person's name."""
    answered: dict[int, int] = field(default_factory=dict)
    """The id of the answer by the code of its pair, in the order in which answers were given."""
    reopened: list[int] = field(default_factory=list)
    """The codes of answers taken back, the last one last."""

    @property
    def last(self) -> int | None:
        """The id of the last standing answer."""
        return next(reversed(self.answered.values()), None)

    def note_answer(self, code: int, judgement: int) -> None:
        """Remember a stored answer."""
        self.answered[code] = judgement
        self.reopened = [other for other in self.reopened if other != code]

    def note_undo(self, judgement: int) -> int | None:
        """Remember that an answer was taken back: its pair, which is returned, is asked again."""
        for code, identity in reversed(self.answered.items()):
            if identity == judgement:
                del self.answered[code]
                self.reopened.append(code)
                return code
        return None


def next_pairs(
    person: Person,
    n_items: int,
    seed: bytes,
    suggestions: Sequence[int] = (),
    count: int = 1,
    questions: Questions | None = None,
) -> list[tuple[int, int]]:
    """Up to ``count`` coming pairs (left, right) of a person, fewer when all are answered.

    ``questions`` say which pairs there are to ask, and how many of a person.
    """
    chosen: dict[int, tuple[int, int]] = {}
    questions = questions or Questions()
    for _ in range(count):
        number = len(person.answered) + len(chosen)
        if questions.per_person is not None and number >= questions.per_person:
            break
        code = _choose_known(person, chosen, seed, number, questions)
        if code is None and questions.listed is not None:
            taken = [*person.answered, *chosen]
            code = questions.listed.choose(person.annotator, taken, hold=not chosen)
        elif code is None:
            rng = random.Random(_seed(seed, person.annotator, number))
            code = _choose(person, chosen, n_items, rng, suggestions)
        if code is None:
            break
        low, high = decode(code)
        # Which item stands on the left is chance too, so that no habit of the eye can favour one.
        swap = random.Random(_seed(seed, person.annotator, code)).random() < 0.5
        chosen[code] = (high, low) if swap else (low, high)
    return list(chosen.values())


def _choose_known(
    person: Person,
    chosen: dict[int, tuple[int, int]],
    seed: bytes,
    number: int,
    questions: Questions,
) -> int | None:
    """A pair whose answer was taken back, else a gold one where that is due."""

    def is_open(code: int) -> bool:
        return code not in person.answered and code not in chosen

    for code in reversed(person.reopened):
        if is_open(code):
            return code
    return questions.next_gold(person.annotator, number, seed, is_open)


def _choose(
    person: Person,
    chosen: dict[int, tuple[int, int]],
    n_items: int,
    rng: random.Random,
    suggestions: Sequence[int],
) -> int | None:
    def is_open(code: int) -> bool:
        return code not in person.answered and code not in chosen

    if suggestions and rng.randrange(RANDOM_EVERY) > 0:
        # People start at different places of the list, so that they share the work.
        start = random.Random(person.annotator).randrange(len(suggestions))
        for k in range(len(suggestions)):
            code = suggestions[(start + k) % len(suggestions)]
            if is_open(code):
                return code
    total = n_items * (n_items - 1) // 2
    for _ in range(_TRIES):
        if is_open(code := rng.randrange(total)):
            return code
    return _choose_among_open(sorted({*person.answered, *chosen}), total, rng)


def _choose_among_open(taken: list[int], total: int, rng: random.Random) -> int | None:
    """A code below ``total`` that is not in the sorted list ``taken``, each equally likely."""
    if len(taken) >= total:
        return None
    code = rng.randrange(total - len(taken))
    for other in taken:  # the rank among the open codes becomes the code itself
        if other > code:
            break
        code += 1
    return code


def _seed(seed: bytes, annotator: str, number: int) -> bytes:
    return b"%s|%d|%s" % (seed, number, annotator.encode())
