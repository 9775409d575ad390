"""The number of classes of sorted items, by their piles and by their features."""

from __future__ import annotations

import json

import numpy as np
import pytest

from likewise.inference.partition import sort_number
from likewise.inference.partition.sort_number import count_groups
from likewise.inference.propagation.sort_graph import sorts_of
from likewise.inference.selection.count_sorted import fewest_close
from likewise.inference.selection.n_classes import count_classes
from likewise.methods.dispatch import number_of_classes
from likewise.pairs import Pairs

N_CLASSES, N_ITEMS = 6, 72


def piles(n_sorts: int, size: int, slip: float) -> tuple[np.ndarray, Pairs]:
    """Classes of items, and the piles of people who tell all of them apart but slip."""
    rng = np.random.default_rng(2)
    y = np.arange(N_ITEMS) % N_CLASSES
    i, j = np.triu_indices(size, 1)
    left, right, same, who = [], [], [], []
    for person in range(n_sorts):
        shown = rng.choice(N_ITEMS, size, replace=False)
        slips = rng.random(size) < slip
        pile = np.where(slips, rng.integers(0, N_CLASSES, size), y[shown])
        left.append(shown[i])
        right.append(shown[j])
        same.append(pile[i] == pile[j])
        who += [f"s{person:02d}"] * len(i)
    ends = np.concatenate(left), np.concatenate(right)
    return y, Pairs(*ends, np.concatenate(same), who, n_items=N_ITEMS)


def test_sorts_are_counted_by_their_piles_where_features_say_nothing() -> None:
    _, pairs = piles(50, 12, 0.1)
    count, evidence = count_classes(pairs, items=np.random.default_rng(0).normal(size=(72, 40)))
    assert evidence == {"rule": "held-out items of sorts"}
    assert count == N_CLASSES


def test_features_that_foretell_piles_have_a_say_in_the_number() -> None:
    y, pairs = piles(40, 12, 0.25)
    rng = np.random.default_rng(1)
    X = 1.2 * rng.normal(size=(N_CLASSES, 40))[y] + rng.normal(size=(N_ITEMS, 40))
    count, evidence = number_of_classes("auto", pairs, N_ITEMS, X)
    assert evidence["rule"] == "held-out items of sorts, with features"
    assert count == N_CLASSES
    scores = evidence["held_out_log_likelihood"]
    assert scores[str(N_CLASSES)] > scores["judgements alone"]
    assert scores[str(N_CLASSES)] > scores["4"]
    assert evidence["told_apart"]["12"] < 12  # too many classes do no harm
    assert json.loads(json.dumps(evidence)) == evidence


def test_images_of_sorts_are_counted_by_piles() -> None:
    _, pairs = piles(50, 12, 0.1)
    assert count_classes(pairs, items=np.zeros((N_ITEMS, 3, 4)))[0] == N_CLASSES


def test_numbers_are_compared_by_what_several_searches_foretell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five groups are right where one search errs about one half of the rows, and the next about
    the other; four are hardly worse there, and three clearly."""
    searches = 0

    def foretold(seen: object, unseen: object, most: int, rng: object) -> dict[int, np.ndarray]:
        nonlocal searches
        searches += 1
        errs = np.where(np.arange(100) % 2 == searches % 2, -2.0, -0.1)
        return {3: np.full(100, -0.8), 4: np.full(100, -0.745), 5: errs}

    _, pairs = piles(20, 12, 0.1)
    sorts = sorts_of(pairs)
    assert sorts is not None
    monkeypatch.setattr(sort_number, "foretold_by_number", foretold)
    monkeypatch.setattr(sort_number, "N_SEARCHES", (2, 2))
    # Either search alone foretells five groups at -1.05, both together at -.65.
    assert count_groups(sorts, np.random.default_rng(0), about=5) == 5
    monkeypatch.setattr(sort_number, "N_SEARCHES", (1, 1))
    searches = 0
    assert count_groups(sorts, np.random.default_rng(0), about=5) == 4


def test_the_fewest_of_the_numbers_that_foretell_alike_are_taken() -> None:
    rng = np.random.default_rng(0)
    items, noise = rng.integers(0, 50, 200), rng.normal(size=200)
    best = np.full(200, -1.0)
    scores = {4: best - 0.5, 6: best - 0.01 + noise - noise.mean(), 9: best}
    assert fewest_close(scores, items) == 6
    scores[6] = best - 0.01  # always behind, however little
    assert fewest_close(scores, items) == 9
