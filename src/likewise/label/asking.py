"""Which questions are asked: any pair, or listed ones; how many of each person; which are known."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

MAX_HELD = 10_000


class Questions:
    """The terms of asking, in codes of pairs (`likewise.label.pairing`)."""

    def __init__(
        self,
        per_person: int | None = None,
        listed: Sequence[int] | None = None,
        gold: Mapping[int, bool] | None = None,
        gold_every: int = 10,
    ) -> None:
        self.per_person, self.gold, self._gold_every = per_person, dict(gold or {}), gold_every
        self._gold_codes = list(self.gold)
        self.listed = None if listed is None else Listed(listed)

    def next_gold(
        self, annotator: str, number: int, seed: bytes, is_open: Callable[[int], bool]
    ) -> int | None:
        """The gold pair that is the person's question ``number``; None where another is due.

        One question of each block of ``gold_every`` is one, at a place that nobody can foresee.
        """
        if not self._gold_codes:
            return None
        block, place = divmod(number, self._gold_every)
        rng = random.Random(b"%s|gold %d|%s" % (seed, block, annotator.encode()))
        if rng.randrange(self._gold_every) != place:
            return None
        order = random.Random(b"%s|gold|%s" % (seed, annotator.encode()))
        codes = order.sample(self._gold_codes, len(self._gold_codes))
        return next((code for code in codes if is_open(code)), None)


class Listed:
    """Pairs to ask, so that each gets as many answers as the others.

    A pair that somebody is looking at counts as answered; who looked away, and comes again, meets
    the same one.
    """

    def __init__(self, codes: Sequence[int]) -> None:
        self._codes = list(dict.fromkeys(codes))
        self._place = {code: k for k, code in enumerate(self._codes)}
        self._answers = np.zeros(len(self._codes), np.int64)
        self._held: OrderedDict[str, int] = OrderedDict()

    def note(self, code: int, answers: int) -> None:
        """So many more answers about a pair (fewer, where one was taken back)."""
        if code in self._place:
            self._answers[self._place[code]] += answers

    def choose(self, annotator: str, taken: Sequence[int], *, hold: bool) -> int | None:
        """A pair with the fewest answers that is not ``taken``; None where all are."""
        closed = [self._place[code] for code in taken if code in self._place]
        held = self._held.get(annotator)
        if hold and held is not None and held not in closed:
            return self._codes[held]
        load = self._answers.copy()
        others = [place for name, place in self._held.items() if name != annotator]
        np.add.at(load, others, 1)
        load[closed] = np.iinfo(np.int64).max
        # People start at different places of the list, so that they share the work.
        start = random.Random(annotator).randrange(len(load))
        place = int((np.argmin(np.roll(load, -start)) + start) % len(load))
        if load[place] == np.iinfo(np.int64).max:
            self._held.pop(annotator, None)
            return None
        if hold:
            self._held[annotator] = place
            self._held.move_to_end(annotator)
            if len(self._held) > MAX_HELD:
                self._held.popitem(last=False)
        return self._codes[place]
