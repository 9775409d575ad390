"""Groups continued from those found before, with the answers that came since; never begun anew.

What was found before is among what is compared, so that a few more answers cannot lose it. As long
as it is not settled which groups there are, the items that were judged most densely are partitioned
anew as well (`infer_partition`), and the better of the two is kept. So is all, where the groups
before foretell the answers better as they were than after they have grown.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from likewise.inference.partition.answers import Answers, Rates, fit_rates, two_rates
from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray, Vectors
from likewise.inference.partition.growing import MARGIN, Grower, Grown, ItemPrior
from likewise.inference.partition.infer import Partition, infer_partition
from likewise.inference.partition.one_thread import on_one_thread
from likewise.inference.partition.pairs import log_predictive
from likewise.inference.partition.search import WeightedGraph, canonical

SETTLED = 0.9  # mean belief of the densely judged items in their groups
FIRST_RATES = (0.8, 0.2)


def dense_core(answers: Answers) -> IntArray:
    """Items judged most densely among each other: the densest subgraph by peeling (Charikar 2000).

    Never more items than those of whom all pairs would be as many as were judged: of answers strewn
    over many items, no core has enough.
    """
    n = answers.n_items
    graph = WeightedGraph.build(answers.left, answers.right, np.ones(answers.n_pairs), n)
    degree = np.bincount(np.concatenate([answers.left, answers.right]), minlength=n)
    alive = degree > 0
    most = int(np.ceil(np.sqrt(2 * answers.n_pairs))) + 1
    left_over, n_edges = int(alive.sum()), answers.n_pairs
    queue = [(int(degree[item]), int(item)) for item in np.flatnonzero(alive)]
    heapq.heapify(queue)
    best, peeled, n_kept = -1.0, list[int](), left_over
    while left_over > 1:
        density = n_edges / left_over
        if left_over <= most and density > best:
            best, n_kept = density, left_over
        now, item = heapq.heappop(queue)
        if not alive[item] or now > degree[item]:  # gone, or in the queue again
            continue
        alive[item] = False
        peeled.append(item)
        near = graph.neighbour[graph.start[item] : graph.start[item + 1]]
        near = near[alive[near]]
        n_edges -= len(near)
        degree[near] -= 1
        for other in near.tolist():
            heapq.heappush(queue, (int(degree[other]), other))
        left_over -= 1
    alive[peeled[len(peeled) + left_over - n_kept :]] = True
    return np.flatnonzero(alive)


def settled(belief: FloatArray, core: IntArray) -> bool:
    """Whether the densely judged items are sure of their groups, of two at least."""
    known = belief[core, :-1]
    sure = known.max(1, initial=0.0)
    return known.shape[1] > 1 and len(core) > 2 and float(sure.mean()) > SETTLED


@on_one_thread
def continue_partition(
    left: IndexArray,
    right: IndexArray,
    same: BoolArray,
    labels: IntArray,
    probability: FloatArray,
    *,
    annotator: IndexArray | None = None,
    weight: FloatArray | None = None,
    n_groups: int | None = None,
    items: Vectors | None = None,
    seed: int = 0,
) -> Partition:
    """`infer_partition` from groups found before: ``labels`` (N,), -1 for items that had none.

    ``probability`` (N,) is how sure they were. ``items`` (N, D): items that were never judged are
    placed by what they look like; where they are not, they have no group, -1.
    """
    answers = Answers.build(left, right, same, len(labels), annotator, weight)
    grown = continue_groups(answers, labels, probability, items, n_groups, seed)
    place = grown.labels
    known = np.full(len(place), grown.by_items) | _judged(answers)
    result = Partition(
        labels=_of_known(place, known),
        probability=grown.belief[np.arange(len(place)), place],
        pairs=np.stack([answers.left, answers.right], axis=1),
        pair_same=grown.found.pair_same,
        p_same=grown.rates.p_same,
        objective=log_predictive(answers, grown.rates, grown.found.pair_same),
    )
    before = _alone_where_unknown(labels)
    if grown.by_items or n_groups not in (None, int(before.max()) + 1):
        return result  # unjudged items are placed here alone; or other groups were asked for
    begun = Grower(answers).begin(labels, probability)
    if _as_they_were(answers, begun)[0] <= result.objective + MARGIN:
        return result
    # Many small groups, of pairs that something suggests: only which pairs were asked holds them
    # together, and that says nothing to groups that grow with the answers.
    anew = infer_partition(
        left,
        right,
        same,
        n_items=len(labels),
        annotator=annotator,
        weight=weight,
        n_groups=n_groups,
        items=items,
        seed=seed,
        quick=True,
        begin=before,
    )
    if anew.objective <= result.objective:
        return result
    return replace(anew, labels=_of_known(anew.labels, _judged(answers)))


def _of_known(labels: IntArray, known: BoolArray) -> IntArray:
    """(N,) groups of the items of which something is known, -1 for the others."""
    found = np.full(len(labels), -1)
    found[known] = canonical(labels[known])
    return found


def _alone_where_unknown(labels: IntArray) -> IntArray:
    """(N,) groups, items that had none alone."""
    alone = labels.max(initial=-1) + 1 + np.arange(len(labels))
    return canonical(np.where(labels >= 0, labels, alone))


def _as_they_were(answers: Answers, begun: FloatArray) -> tuple[float, Rates]:
    """How well the groups before, beliefs (N, K + 1), foretell all answers, and by which rates."""
    together = np.einsum("pk,pk->p", begun[answers.left, :-1], begun[answers.right, :-1])
    rates = fit_rates(answers, together)
    return log_predictive(answers, rates, together), rates


def continue_groups(
    answers: Answers,
    labels: IntArray,
    probability: FloatArray,
    items: Vectors | None = None,
    n_groups: int | None = None,
    seed: int = 0,
) -> Grown:
    """Beliefs about all items from the groups before, grown with the answers.

    Until it is settled which groups the densely judged items are of, that is for answers alone to
    say: features would draw them into the few groups that are known.
    """
    rates = two_rates(answers, *FIRST_RATES)
    if items is None or not _placed_by_items(answers, labels):
        core = dense_core(answers)
        grower = Grower(answers, n_groups=n_groups)
        state = grower.grow(grower.settle(grower.begin(labels, probability), rates))
        if n_groups is None and not settled(state.belief, core):
            anew = grower.begin(*_partition_core(answers, core, seed))
            other = grower.grow(grower.settle(anew, rates))
            state = other if other.score > state.score else state
        if items is None or not settled(state.belief, core):
            return state
        belief, rates = state.belief, state.rates
    else:
        belief = Grower(answers).begin(labels, probability)
    grower = Grower(answers, _item_prior(items), n_groups)
    return grower.grow(grower.settle(belief, rates))


def recall_groups(
    answers: Answers, labels: IntArray, probability: FloatArray, items: Vectors | None = None
) -> Grown:
    """Beliefs about all items behind groups that were found from these answers."""
    by_items = items is not None and _placed_by_items(answers, labels)
    grower = Grower(answers, _item_prior(items if by_items else None))
    begun = grower.begin(labels, probability)
    state = grower.settle(begun, two_rates(answers, *FIRST_RATES))
    settled_on = log_predictive(answers, state.rates, state.found.pair_same)
    foretold, rates = _as_they_were(answers, begun)
    if foretold <= settled_on + MARGIN:
        return state
    return replace(state, found=replace(state.found, belief=begun), rates=rates)


def _placed_by_items(answers: Answers, labels: IntArray) -> bool:
    """Whether items that nobody judged have a group, or all were judged."""
    judged = _judged(answers)
    return bool(judged.all() or (labels[~judged] >= 0).any())


def _judged(answers: Answers) -> BoolArray:
    judged = np.zeros(answers.n_items, bool)
    judged[answers.left] = judged[answers.right] = True
    return judged


def _item_prior(items: Vectors | None) -> ItemPrior | None:
    if items is None:
        return None
    # Loads PyTorch, which judgements alone do without.
    from likewise.inference.lifting.neighbour_prior import NeighbourPrior

    return NeighbourPrior(items)


def _partition_core(answers: Answers, core: IntArray, seed: int) -> tuple[IntArray, FloatArray]:
    """Groups (N,) of the densely judged items by their own answers, -1 elsewhere; how sure (N,)."""
    place = np.full(answers.n_items, -1)
    place[core] = np.arange(len(core))
    left, right = place[answers.left][answers.pair], place[answers.right][answers.pair]
    inside = (left >= 0) & (right >= 0)
    found = infer_partition(
        left[inside],
        right[inside],
        answers.same[inside],
        n_items=len(core),
        annotator=answers.annotator[inside],
        weight=answers.weight[inside],
        seed=seed,
        quick=True,
    )
    labels, chance = np.full(answers.n_items, -1), np.zeros(answers.n_items)
    labels[core], chance[core] = found.labels, found.probability
    return labels, chance
