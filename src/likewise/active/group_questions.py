"""What to ask next about groups: items whose group is open, each against one that may settle it.

Every item has a belief over the known groups and one not seen yet. An answer about two items is
worth what it tells of the group of each, H(answer) - H(answer | group), summed over both: most
where an open item meets a sure one of a group that it belongs to with even odds, nothing where both
are open. So questions go through items that are placed already, and different ones each time.

Before there are groups there is nothing to compare with. First all pairs of a few items are asked,
then of a few more, until it is settled which groups these are of.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from likewise.active.information import class_entropy, entropy
from likewise.active.pool import REPEATED
from likewise.inference.partition.answers import Answers
from likewise.inference.partition.continued import dense_core, recall_groups, settled
from likewise.inference.partition.growing import Grown
from likewise.methods.groups import Groups, known_before
from likewise.noise.channels import RateChannel
from likewise.pairs import Pairs

FloatArray = NDArray[np.float64]
Positions = NDArray[np.int64]
MAX_ITEMS = 1500  # all pairs of so many are looked at; beyond it, of open ones and some others
NOISE = 0.02  # relative: among pairs that tell as much, chance decides, and partners change
PARTNERS = 64  # best ones of each item that are looked through


def group_questions(
    groups: Groups | None,
    items: FloatArray | None,
    pairs: Pairs,
    n: int,
    rng: np.random.Generator,
) -> Positions:
    """(n, 2) pairs of items that were not judged yet; ``groups`` None before there are any."""
    answers = _answers(pairs)
    core = dense_core(answers)
    belief: FloatArray | None = None
    if groups is not None and answers.n_pairs:
        grown = recall_groups(answers, *known_before(groups, pairs.n_items), items)
        if settled(grown.belief, core):
            belief = grown.belief
    if belief is None:
        return _among_few(answers, core, n, rng)
    rates = _usual_rates(answers, grown)
    table = membership_table(rates, belief.shape[1], grown.meeting)
    looked_at = _looked_at(belief, n, rng)
    value = told_by_answers(belief[looked_at], table)
    value *= 1 + NOISE * rng.random(value.shape)
    place = np.full(answers.n_items, -1)
    place[looked_at] = np.arange(len(looked_at))
    left, right = place[answers.left], place[answers.right]
    known = (left >= 0) & (right >= 0)
    value[left[known], right[known]] = value[right[known], left[known]] = -np.inf
    chosen = spread_out(value, class_entropy(belief[looked_at]), n)
    return np.asarray(np.sort(looked_at[chosen], axis=1), np.int64)


def belief_in_groups(
    groups: Groups, items: FloatArray | None, pairs: Pairs
) -> tuple[FloatArray, RateChannel]:
    """(N, K) beliefs over the known groups and one not seen yet, and how people answer."""
    answers = _answers(pairs)
    grown = recall_groups(answers, *known_before(groups, pairs.n_items), items)
    return grown.belief, RateChannel(*_usual_rates(answers, grown))


def _usual_rates(answers: Answers, grown: Grown) -> tuple[float, float]:
    """P("same" | one group) and P("same" | two) of whoever may answer next."""
    rates = answers.weight @ grown.rates.p_same[answers.annotator] / answers.weight.sum()
    return float(rates[0]), float(rates[1])


def membership_table(rates: tuple[float, float], n_columns: int, meeting: float) -> FloatArray:
    """(K, K) P("same") of two items by their groups; the last is one not seen yet, not always the
    same one for both."""
    table = np.full((n_columns, n_columns), rates[1])
    np.fill_diagonal(table, rates[0])
    table[-1, -1] = meeting * rates[0] + (1 - meeting) * rates[1]
    return table


def told_by_answers(belief: FloatArray, p_same: FloatArray) -> FloatArray:
    """(N, N) nats that an answer about each pair tells of the two items' groups, summed over both.

    ``belief`` (N, K), ``p_same`` (K, K) symmetric. What an answer would only tell about the two
    together, as where both are open, does not count.
    """
    given = belief @ p_same  # (N, K) P(same) about an item of each group
    noise = belief @ entropy(given).T  # row: whose group is taken as known
    value = 2 * entropy(belief @ given.T) - noise - noise.T
    np.fill_diagonal(value, -np.inf)
    return np.asarray(value)


def spread_out(value: FloatArray, doubt: FloatArray, n: int) -> Positions:
    """(n, 2) pairs of most value (N, N), spread over the items.

    Whichever of two is in more ``doubt`` (N,) is asked about. A second question about it in one
    batch is worth half as much as the first, since the answer to that is not known yet; and nobody
    is compared with too often.
    """
    n_items = len(value)
    rank = np.empty(n_items, np.int64)
    rank[np.argsort(-doubt, kind="stable")] = np.arange(n_items)
    worth = np.where(rank[:, None] < rank, value, -np.inf)  # row: the item that is asked about
    width = min(PARTNERS, n_items)
    best = np.argpartition(-worth, width - 1, axis=1)[:, :width]
    order = np.argsort(-np.take_along_axis(worth, best, axis=1), axis=1, kind="stable")
    partners = np.take_along_axis(best, order, axis=1)
    limit = max(3, -(-6 * n // n_items))
    seen = np.zeros(n_items, np.int64)
    place = np.zeros(n_items, np.int64)
    heap = [(-float(worth[i, partners[i, 0]]), i, 1.0) for i in range(n_items)]
    heapq.heapify(heap)
    chosen: list[tuple[int, int]] = []
    while heap and len(chosen) < n:
        _, item, share = heapq.heappop(heap)
        while place[item] < width and seen[partners[item, place[item]]] >= limit:
            place[item] += 1
        if place[item] == width or worth[item, partners[item, place[item]]] == -np.inf:
            continue
        partner = int(partners[item, place[item]])
        place[item] += 1
        seen[partner] += 1
        chosen.append((item, partner))
        if place[item] < width:
            next_worth = float(worth[item, partners[item, place[item]]])
            heapq.heappush(heap, (-share * REPEATED * next_worth, item, share * REPEATED))
    return _filled(np.array(chosen, np.int64).reshape(-1, 2), worth, n)


def _filled(chosen: Positions, worth: FloatArray, n: int) -> Positions:
    """``chosen`` and, where those are too few, the best of the other pairs."""
    if len(chosen) == n:
        return chosen
    rest = worth.copy()
    rest[chosen[:, 0], chosen[:, 1]] = -np.inf
    order = np.argsort(-rest, axis=None, kind="stable")[: n - len(chosen)]
    order = order[np.isfinite(rest.ravel()[order])]
    return np.concatenate([chosen, np.stack(np.unravel_index(order, rest.shape), axis=1)])


def _looked_at(belief: FloatArray, n: int, rng: np.random.Generator) -> Positions:
    """Items whose pairs are looked at: all, or the most open ones and some of the others."""
    if len(belief) <= MAX_ITEMS:
        return np.arange(len(belief))
    order = np.argsort(-class_entropy(belief), kind="stable")
    n_open = min(2 * n, MAX_ITEMS // 2)
    others = rng.permutation(order[n_open:])[: MAX_ITEMS - n_open]
    return np.concatenate([order[:n_open], others])


def _among_few(answers: Answers, core: Positions, n: int, rng: np.random.Generator) -> Positions:
    """(n, 2) pairs of the densely judged items, and of a few more, that were not judged yet."""
    n_items = answers.n_items
    degree = np.bincount(np.concatenate([answers.left, answers.right]), minlength=n_items)
    others = rng.permutation(np.setdiff1d(np.arange(n_items), core))
    others = others[np.argsort(-degree[others], kind="stable")]
    line = np.concatenate([core, others])
    judged = answers.left * n_items + answers.right  # sorted
    found: list[Positions] = []
    count, size = 0, 1
    while count < n and size < n_items:
        new, before = line[size], line[:size]
        code = np.minimum(new, before) * n_items + np.maximum(new, before)
        code = code[~np.isin(code, judged)]
        found.append(np.stack([code // n_items, code % n_items], axis=1))
        count, size = count + len(code), size + 1
    return np.concatenate(found)[:n] if found else np.zeros((0, 2), np.int64)


def _answers(pairs: Pairs) -> Answers:
    return Answers.build(
        pairs.left,
        pairs.right,
        pairs.same,
        pairs.n_items,
        pairs.annotator,
        None if pairs.weight is None else pairs.weight.astype(np.float64),
    )
