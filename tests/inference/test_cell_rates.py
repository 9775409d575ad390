"""Whether two rates a person are enough, whichever classes two items are of."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.inference.propagation.cell_rates import _counted, cell_gain, cells_differ
from likewise.pairs import Pairs
from likewise.pairs.shards import PairShard
from rank_threads import on_ranks

RATES = np.array([[0.95, 0.02], [0.8, 0.1], [0.6, 0.3], [0.5, 0.5]])


def crowd(
    seed: int, confusion: float | None = None, zero: bool = False
) -> tuple[Pairs, np.ndarray]:
    """20,000 answers of four people about six classes, of which the first two may be confused."""
    rng = np.random.default_rng(seed)
    z = np.arange(300) % 6
    base = Pairs.from_labels(z, 133, rng)
    person = rng.integers(4, size=len(base))
    chance = np.where(base.same, *RATES[person].T)
    near = (z[base.left] < 2) & (z[base.right] < 2) & ~base.same
    if confusion is not None:
        chance = np.where(near, confusion, chance)
    weight = np.where(near, 0.0, 1.0) if zero else None
    same = rng.random(len(base)) < chance
    names = [f"p{k}" for k in person]
    return Pairs(base.left, base.right, same, names, weight, n_items=300), z


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("off", [0.0, 0.04])
def test_people_who_differ_are_no_confusion(seed: int, off: float) -> None:
    """Nor are rates that are somewhat off for all classes alike."""
    pairs, z = crowd(seed)
    assert not cells_differ(pairs, z, RATES + np.array([-off, off]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("confusion", [0.45, 0.0])
def test_two_classes_that_are_told_apart_less_or_better_than_others(
    seed: int, confusion: float
) -> None:
    pairs, z = crowd(seed, confusion)
    assert cells_differ(pairs, z, RATES)
    alike = RATES.mean(0, keepdims=True)
    assert cells_differ(pairs, z, alike)


def test_groups_that_are_not_the_classes_differ() -> None:
    pairs, z = crowd(0)
    merged = np.where(z == 1, 0, np.where(np.arange(300) % 12 == 5, 1, z))  # one cut in two
    assert cells_differ(pairs, merged, RATES)


def test_answers_without_weight_do_not_count() -> None:
    pairs, z = crowd(0, confusion=0.6, zero=True)
    assert not cells_differ(pairs, z, RATES)


def test_the_unit_of_the_weights_does_not_matter() -> None:
    """Nor do judgements that do not count."""
    pairs, z = crowd(1, confusion=0.2)
    kept = pairs.select(np.arange(4000))
    names = np.array(["a", "b", "c", "d"])
    expected = cell_gain(kept, z, RATES)
    for weight in (0.2, 3.0, 50.0):
        given = np.where(np.arange(len(pairs)) < 4000, weight, 0.0)
        columns = pairs.left, pairs.right, pairs.same, pairs.annotator, given
        scaled = Pairs(*columns, annotator_names=names, n_items=300)
        gain, n_rates = cell_gain(scaled, z, RATES)
        assert (gain, n_rates) == (pytest.approx(expected[0], rel=1e-5), expected[1])
        assert _counted(scaled) == 4000


def test_processes_find_what_one_finds() -> None:
    pairs, z = crowd(3, 0.45)
    gain, n_rates = cell_gain(pairs, z, RATES)
    for found in on_ranks(
        3, lambda exchange: cell_gain(PairShard.of(pairs, exchange, lambda: pairs), z, RATES)
    ):
        assert found == (pytest.approx(gain), n_rates)
