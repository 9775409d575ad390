"""Sorts: found among judgements, and read as piles, so that coarse ones merge no classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

import likewise
from likewise.inference import fit_joint
from likewise.inference.partition.piles import (
    CONCENTRATIONS,
    PileModel,
    fit_piles,
    pile_log_chances,
    pseudo_evidence,
    unseen_log_chances,
    urn_evidence,
)
from likewise.inference.partition.sort_search import is_telling, merge_path, place_sorted
from likewise.inference.partition.sorts import Sorts, find_sorts
from likewise.inference.propagation.sort_graph import sorts_of
from likewise.pairs import Pairs

N_CLASSES, N_ITEMS = 6, 120


def sorted_by(
    y: NDArray[np.int64], n_sorts: int, size: int, rng: np.random.Generator, slip: float = 0.05
) -> Pairs:
    """Everybody merges the classes into two to four piles in a way of their own."""
    i, j = np.triu_indices(size, 1)
    left, right, same, who = [], [], [], []
    for k in range(n_sorts):
        shown = rng.choice(len(y), size, replace=False)
        seen = np.where(rng.random(size) < slip, rng.integers(0, N_CLASSES, size), y[shown])
        pile = rng.integers(0, rng.integers(2, 5), N_CLASSES)[seen]
        left.append(shown[i])
        right.append(shown[j])
        same.append(pile[i] == pile[j])
        who += [f"s{k}"] * len(i)
    ends = np.concatenate(left), np.concatenate(right)
    return Pairs(*ends, np.concatenate(same), who, n_items=len(y))


def found_in(pairs: Pairs) -> Sorts | None:
    return find_sorts(pairs.left, pairs.right, pairs.same, pairs.annotator, pairs.n_items)


def test_sorts_are_found_and_single_judgements_are_none() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    pairs = sorted_by(y, 20, 10, rng)
    sorts = found_in(pairs)
    assert sorts is not None
    assert len(sorts.item) == 200
    assert len(sorts.piles_of_sort) == 20
    for who in range(20):  # the piles are those that were made
        mine = pairs.annotator == who
        pile = {}
        for row in np.flatnonzero(sorts.sort_of_pile[sorts.pile] == who):
            pile[int(sorts.item[row])] = int(sorts.pile[row])
        told = [pile[a] == pile[b] for a, b in zip(pairs.left[mine], pairs.right[mine])]
        assert told == pairs.same[mine].tolist()
    turned = pairs.same.copy()
    turned[::10] = ~turned[::10]
    assert found_in(Pairs(pairs.left, pairs.right, turned, pairs.annotator, n_items=120)) is None
    some = rng.random(len(pairs)) < 0.7
    assert found_in(pairs.select(some)) is None
    assert sorts_of(Pairs(pairs.left, pairs.right, pairs.same, n_items=N_ITEMS)) is None


def test_evidence_of_piles_is_that_of_polya_urns() -> None:
    """Against the probabilities of one item after the other, written out."""
    sorts = Sorts(np.array([0, 1, 2, 3]), np.array([0, 0, 1, 0]), np.array([0, 0]), 4)
    belief = np.eye(2)[[0, 0, 0, 1]]

    # Class 0 fills piles 0, 0, 1; class 1 fills pile 0; two piles share a concentration a.
    def urn(a: float) -> float:
        half = a / 2
        return half / a * (half + 1) / (a + 1) * half / (a + 2) * half / a

    assert np.isclose(urn_evidence(sorts, belief), np.log(max(map(urn, CONCENTRATIONS))))


def test_an_item_joins_a_pile_by_how_similar_those_in_it_are() -> None:
    """Against chances written out, of rows that are seen and of one that is not."""
    sorts = Sorts(np.array([0, 1, 2, 3]), np.array([0, 0, 1, 0]), np.array([0, 0]), 4)
    belief = np.eye(2)[[0, 0, 0, 1]]
    model = PileModel(np.array([[1.0, 0.25], [0.25, 0.8]]), 2.0)
    chances = np.exp(pile_log_chances(sorts, belief, model))
    # Beside item 0 one of its class and one of the other; in the sort one more of its class.
    assert np.isclose(chances[0, 0], (1 + 0.25 + 1) / (2 + 0.25 + 2))
    assert np.isclose(chances[0, 1], (0.25 + 0.8 + 1) / (2 * 0.25 + 0.8 + 2))
    assert np.isclose(chances[3, 1], (2 * 0.25 + 1) / (3 * 0.25 + 2))  # alone of its class
    assert np.isclose(
        pseudo_evidence(sorts, belief, model),
        np.log([chances[0, 0], chances[1, 0], chances[2, 0], chances[3, 1]]).sum(),
    )
    seen = sorts.select(np.array([True, True, True, False]))
    unseen = sorts.select(np.array([False, False, False, True]))
    told = unseen_log_chances(seen, unseen, belief, model)
    assert np.isclose(np.exp(told[0]), chances[3, 1])


def test_classes_that_people_put_together_are_similar() -> None:
    """A sort shows an item of a class or two: other sorts say which classes they are like."""
    rng = np.random.default_rng(0)
    n_classes, size = 10, 12
    y = rng.integers(0, n_classes, 100)
    item, code = [], []
    for k in range(120):
        shown = rng.choice(100, size, replace=False)
        seen = y[shown] // 2 if k % 5 else y[shown]  # four in five merge every two classes
        item.append(shown)
        code.append(n_classes * k + seen)
    pile, row = np.unique(np.concatenate(code), return_inverse=True)
    sorts = Sorts(np.concatenate(item), row, pile // n_classes, 100)
    belief = np.eye(n_classes)[y]
    model = fit_piles(sorts, belief)
    merged = np.arange(n_classes)
    close = (merged[:, None] ^ 1) == merged
    apart = ~close & ~np.eye(n_classes, dtype=bool)
    assert model.similarity[close].min() > 10 * model.similarity[apart].max()
    best = pseudo_evidence(sorts, belief, model)
    assert best > pseudo_evidence(sorts, belief, PileModel.of_strangers(n_classes)) + 100
    for factor in (0.5, 2.0):  # no other similarity of them all explains the piles better
        other = np.where(close, factor * model.similarity, model.similarity)
        assert pseudo_evidence(sorts, belief, PileModel(other, model.concentration)) < best


def test_people_who_merge_classes_still_tell_them_apart_together() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    sorts = found_in(sorted_by(y, 80, 24, rng))
    assert sorts is not None
    belief, model = place_sorted(sorts, N_CLASSES, rng)
    assert adjusted_rand_score(y, belief.argmax(1)) > 0.9
    assert model.concentration < 2
    assert is_telling(sorts, belief)


def test_groups_are_merged_one_after_the_other_and_classes_stay_whole() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    sorts = found_in(sorted_by(y, 80, 24, rng))
    assert sorts is not None
    fits = {belief.shape[1]: belief for belief, _ in merge_path(sorts, 15, N_CLASSES, rng)}
    assert list(fits) == list(range(15, N_CLASSES - 1, -1))
    assert all(np.allclose(belief.sum(1), 1) for belief in fits.values())
    assert adjusted_rand_score(y, fits[N_CLASSES].argmax(1)) > 0.9


def test_piles_at_random_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    sorts = found_in(sorted_by(y, 40, 16, rng, slip=1.0))
    assert sorts is not None
    assert not is_telling(sorts, place_sorted(sorts, N_CLASSES, rng)[0])


def test_groups_without_features_read_sorts_too() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    found = likewise.group(sorted_by(y, 80, 24, rng))
    assert adjusted_rand_score(y, found.labels) > 0.85
    assert abs(found.n_groups - N_CLASSES) <= 1
    assert len(found.annotators["annotator"]) == 80


def test_a_fit_reads_sorts_as_sorts() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    items = 0.5 * rng.normal(size=(N_CLASSES, 40))[y] + rng.normal(size=(N_ITEMS, 40))
    result = fit_joint(items.astype(np.float32), sorted_by(y, 60, 24, rng), 6, random_state=0)
    assert result.choice.startswith("sorts: 60")
    assert adjusted_rand_score(y, result.classes.argmax(1)) > 0.9
    table = result.channel.p_same.numpy()  # type: ignore[attr-defined]
    assert np.diag(table).min() > table[~np.eye(6, dtype=bool)].mean()
