"""Which items come on a person's next screen to be sorted.

A pure function of the person and of what they have sorted, as `likewise.label.pairing` is for
pairs: after a reload, or a new start of the server, the same screen stands open.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence

MAX_SIZE = 35
"""Items on a screen: more do not fit a phone, nor a mind."""
# One item in so many of a later screen is one that the person has sorted before: such anchors say
# which pile of one screen is which of another.
ANCHOR_EVERY = 5


def next_screen(
    annotator: str,
    number: int,
    seen: Collection[int],
    groups: Sequence[Sequence[int]],
    n_items: int,
    size: int,
    seed: bytes,
) -> list[int]:
    """The items of the person's screen ``number``; empty once they have ``seen`` every item.

    Anchors are dealt from the ``groups`` that the person's piles make so far, one of each in turn.
    """
    if len(seen) >= n_items:
        return []
    rng = random.Random(b"%s|screen %d|%s" % (seed, number, annotator.encode()))
    anchors = _dealt(groups, size // ANCHOR_EVERY, rng)
    chosen = [*anchors, *_unseen(set(seen), n_items, size - len(anchors), rng)]
    rng.shuffle(chosen)
    return chosen


def joined(piles: Iterable[Iterable[int]]) -> list[list[int]]:
    """What piles put together, over several sorts: groups of items, the largest first."""
    groups: list[set[int]] = []
    for pile in piles:
        merged = set(pile)
        apart = []
        for group in groups:
            if group.isdisjoint(merged):
                apart.append(group)
            else:
                merged |= group
        groups = [*apart, merged]
    return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))


def _dealt(groups: Sequence[Sequence[int]], count: int, rng: random.Random) -> list[int]:
    """Up to ``count`` items, one of each group in turn."""
    shuffled = [rng.sample(group, len(group)) for group in rng.sample(groups, len(groups))]
    rounds = max((len(group) for group in shuffled), default=0)
    dealt = [group[k] for k in range(rounds) for group in shuffled if k < len(group)]
    return dealt[:count]


def _unseen(seen: set[int], n_items: int, count: int, rng: random.Random) -> list[int]:
    """Up to ``count`` items that are not in ``seen``, each equally likely."""
    if 2 * (len(seen) + count) > n_items:
        left = [k for k in range(n_items) if k not in seen]
        return rng.sample(left, min(count, len(left)))
    chosen: list[int] = []
    while len(chosen) < count:  # at least every second draw is one
        if (k := rng.randrange(n_items)) not in seen:
            seen.add(k)
            chosen.append(k)
    return chosen
