"""Sorts: one person puts many items into piles at once, and all their pairs are judged by that.

Each class goes to the piles of a sort by a distribution of its own, drawn from a symmetric
Dirichlet: a class usually ends in one pile, several classes may share one (people who tell apart
fewer kinds than there are), and single items slip. This is the model of Dawid & Skene (1979) with
piles for answers, whose names mean nothing beyond their sort. So "one pile" is weak evidence for
one class where the sort is coarse, and a pile more says much. Items' classes are found by collapsed
variational Bayes (CVB0, Asuncion et al. 2009), in time linear in the items sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from likewise.inference.partition.arrays import BoolArray, FloatArray, IndexArray, IntArray

FEWEST_SORTED = 4  # items, below which a sort says hardly more than its pairs
MOST_UNSORTED = 0.05  # share of judgements outside of sorts that may be left out
CONCENTRATIONS = (0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 20.0)
DAMPING = 0.3


@dataclass(frozen=True)
class Sorts:
    """Items in piles, one row for each time that an item was sorted (E rows)."""

    item: IntArray
    """(E,) the item."""
    pile: IntArray
    """(E,) its pile, numbered across all sorts."""
    sort_of_pile: IntArray
    """(P,) the sort of each pile."""
    n_items: int
    """N, sorted or not."""

    @property
    def piles_of_sort(self) -> IntArray:
        """(S,) how many piles each sort has."""
        return np.bincount(self.sort_of_pile)

    def select(self, kept: BoolArray) -> Sorts:
        """The same sorts with some of their rows only."""
        return Sorts(self.item[kept], self.pile[kept], self.sort_of_pile, self.n_items)


def find_sorts(
    left: IndexArray, right: IndexArray, same: BoolArray, annotator: IndexArray | None, n_items: int
) -> Sorts | None:
    """The sorts that judgements (M,) were made from; None where they are not (nearly all) sorts.

    Items that one person has compared, directly or by others, are a sort where every pair of them
    was judged and no two answers contradict each other.
    """
    if annotator is None or not len(left):
        return None
    place = np.concatenate([annotator, annotator]).astype(np.int64) * n_items
    place += np.concatenate([left, right])
    node, end = np.unique(place, return_inverse=True)
    a, b = np.split(end.reshape(-1), 2)
    sort = _components(a, b, len(node))
    pile = _components(a[same], b[same], len(node))
    pairs = np.unique(np.minimum(a, b) * len(node) + np.maximum(a, b))
    size = np.bincount(sort)
    judged = np.bincount(sort[pairs // len(node)], minlength=len(size))
    whole = (judged == size * (size - 1) // 2) & (size >= FEWEST_SORTED)
    whole[sort[a[~same & (pile[a] == pile[b])]]] = False
    if whole[sort[a]].mean() < 1 - MOST_UNSORTED:
        return None
    kept = whole[sort]
    numbered, code = np.unique(pile[kept], return_inverse=True)
    first = np.unique(pile, return_index=True)[1]
    of_pile = np.unique(sort[first[numbered]], return_inverse=True)[1]
    return Sorts(node[kept] % n_items, code.reshape(-1), of_pile.reshape(-1), n_items)


def _components(a: IntArray, b: IntArray, n: int) -> IntArray:
    graph = sparse.coo_array((np.ones(len(a), bool), (a, b)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def place_items(
    sorts: Sorts,
    log_prior: FloatArray,
    concentration: float,
    belief: FloatArray,
    iterations: int = 30,
    tolerance: float = 1e-4,
) -> FloatArray:
    """(N, C) beliefs of the items' classes under ``log_prior`` (N, C), from first ``belief``."""
    for _ in range(iterations):
        total = log_prior + _by_item(sorts, pile_log_chances(sorts, belief, concentration, True))
        total -= total.max(1, keepdims=True)
        renewed = np.exp(total)
        renewed /= renewed.sum(1, keepdims=True)
        change = float(np.abs(renewed - belief).sum(1).mean())
        belief = DAMPING * belief + (1 - DAMPING) * renewed
        if change < tolerance:
            break
    return belief


def pile_log_chances(
    sorts: Sorts, belief: FloatArray, concentration: float, without_own: bool
) -> FloatArray:
    """(E, C) log P(pile | class) of each row, by the other rows or by all of them."""
    in_pile, in_sort = _counts(sorts, belief)
    own = belief[sorts.item] if without_own else 0.0
    sort = sorts.sort_of_pile[sorts.pile]
    each = (concentration / sorts.piles_of_sort[sort])[:, None]
    chance = (in_pile[sorts.pile] - own + each) / (in_sort[sort] - own + concentration)
    return np.asarray(np.log(np.clip(chance, 1e-12, None)))


def unseen_log_chances(
    sorts: Sorts, unseen: Sorts, belief: FloatArray, concentration: float
) -> FloatArray:
    """(e,) log P(pile) of rows that ``belief`` (N, C), made of the seen ones, has not seen."""
    in_pile, in_sort = _counts(sorts, belief)
    sort = unseen.sort_of_pile[unseen.pile]
    each = (concentration / unseen.piles_of_sort[sort])[:, None]
    chance = (in_pile[unseen.pile] + each) / (in_sort[sort] + concentration)
    return np.asarray(np.log((belief[unseen.item] * chance).sum(1)))


def sorts_evidence(sorts: Sorts, belief: FloatArray, concentration: float) -> float:
    """Log probability of all piles given the beliefs, the classes' distributions integrated out."""
    in_pile, in_sort = _counts(sorts, belief)
    each = (concentration / sorts.piles_of_sort)[:, None]  # (S, 1)
    piles = gammaln(in_pile + each[sorts.sort_of_pile]) - gammaln(each)[sorts.sort_of_pile]
    whole = gammaln(concentration) - gammaln(in_sort + concentration)
    return float(piles.sum() + whole.sum())


def fit_concentration(sorts: Sorts, belief: FloatArray) -> float:
    """How freely a class spreads over piles, as makes the piles most likely."""
    return max(CONCENTRATIONS, key=lambda value: sorts_evidence(sorts, belief, value))


def _counts(sorts: Sorts, belief: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(P, C) and (S, C) expected items of each class in each pile and sort."""
    rows = np.arange(len(sorts.item))
    n_piles = len(sorts.sort_of_pile)
    shape = (n_piles, len(rows))
    gather = sparse.csr_array((np.ones(len(rows)), (sorts.pile, rows)), shape=shape)
    in_pile = np.asarray(gather @ belief[sorts.item])
    in_sort = np.zeros((len(sorts.piles_of_sort), belief.shape[1]))
    np.add.at(in_sort, sorts.sort_of_pile, in_pile)
    return in_pile, in_sort


def _by_item(sorts: Sorts, rows: FloatArray) -> FloatArray:
    """(N, C) sums of rows (E, C) by item."""
    shape = (sorts.n_items, len(sorts.item))
    index = (sorts.item, np.arange(len(sorts.item)))
    return np.asarray(sparse.csr_array((np.ones(len(rows)), index), shape=shape) @ rows)
