"""Groups with cells of their own: whole sides of a group leave it together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from likewise.inference.partition.answers import Answers
from likewise.inference.partition.cell_search import CellSearch, _side
from likewise.inference.partition.fitting import fit_partition, with_cells
from likewise.inference.partition.model import Problem
from likewise.inference.partition.search import canonical

N_KINDS, SIZE = 6, 10
TRUTH = np.repeat(np.arange(N_KINDS), SIZE)


def search(n_groups: int | None = None, seed: int = 0) -> CellSearch:
    """Every pair judged once; kinds 2k and 2k + 1 are taken for each other one time in three."""
    rng = np.random.default_rng(seed)
    left, right = np.triu_indices(len(TRUTH), 1)
    kinds = TRUTH[left], TRUTH[right]
    often = np.where(kinds[0] // 2 == kinds[1] // 2, 0.35, 0.03)
    same = rng.random(len(left)) < np.where(kinds[0] == kinds[1], 0.95, often)
    answers = Answers.build(left, right, same, len(TRUTH), None, None)
    counts = np.zeros((2, len(TRUTH), len(TRUTH)))
    for said in (0, 1):
        counts[said, left, right] = counts[said, right, left] = same == (said == 0)
    return CellSearch(Problem(answers, None, n_groups, rng), counts)


def is_truth(labels: np.ndarray) -> bool:
    return bool(np.array_equal(canonical(labels), TRUTH))


def test_kinds_that_people_often_confuse_are_cut_apart() -> None:
    cells = search()
    coarse = cells.blocks(TRUTH // 2)
    evidence, blocks = cells.with_splits(coarse)
    assert is_truth(blocks.labels)
    assert evidence > coarse[0]
    assert evidence == pytest.approx(cells.blocks(blocks.labels)[0])


def test_a_given_number_of_groups_is_kept() -> None:
    cells = search(n_groups=N_KINDS)
    # Kinds 0 and 1 are one group, kind 2 is two.
    start = TRUTH.copy()
    start[TRUTH == 1] = 0
    start[np.flatnonzero(TRUTH == 2)[: SIZE // 2]] = 1
    _, blocks = cells.with_splits(cells.blocks(start))
    assert is_truth(blocks.labels)


def test_groups_that_are_one_kind_stay_whole() -> None:
    cells = search(seed=1)
    before = cells.blocks(TRUTH)
    evidence, blocks = cells.with_splits(before)
    assert is_truth(blocks.labels)
    assert evidence == before[0]


def test_sides_of_a_group_are_those_of_its_kinds() -> None:
    cells = search()
    members = np.arange(2 * SIZE)
    side = _side(cells.counts, TRUTH // 2, members)
    assert np.array_equal(side, side[0] == (members < SIZE))


def test_a_lopsided_side_is_moved_to_the_median() -> None:
    counts = np.zeros((2, 50, 50))
    counts[0, 0, 1:] = counts[0, 1:, 0] = 1  # one item that is like all others
    counts[1, 1:, 1:] = 1
    side = _side(counts, np.zeros(50, np.int64), np.arange(50))
    assert 1 < side.sum() < 49


def test_no_evidence_is_lost_by_annealing() -> None:
    cells = search(seed=2)
    for start in (TRUTH, TRUTH // 2, np.arange(len(TRUTH)) % 5):
        assert cells.anneal(start)[0] >= cells.blocks(start)[0]


def test_two_groups_are_joined_at_a_loss_where_their_number_is_given() -> None:
    fewer = search(n_groups=N_KINDS - 1)._settled(TRUTH)
    assert fewer.max() + 1 == N_KINDS - 1


def test_so_many_cuts_are_tried_and_no_more() -> None:
    cells = search()
    coarse = cells.blocks(TRUTH // 2)
    assert cells._split(coarse, 0) is None
    one = cells._split(coarse, 1)
    assert one is not None
    assert one.max() + 1 == N_KINDS // 2 + 1


def test_kinds_that_two_rates_make_one_are_found_from_votes() -> None:
    """Four or five groups of eight kinds, and to them all cells across look alike."""
    found = []
    for seed in (4, 9):
        rng = np.random.default_rng(seed)
        truth = rng.permutation(np.repeat(np.arange(8), 7))
        left, right = np.triu_indices(len(truth), 1)
        often = np.where(truth[left] ^ 1 == truth[right], 0.33, 0.1)
        same = rng.random(len(left)) < np.where(truth[left] == truth[right], 0.88, often)
        answers = Answers.build(left, right, same, len(truth), None, None)
        fit = fit_partition(answers, None, None, np.random.default_rng(seed))
        assert fit.states[0].labels.max() + 1 < 8
        refined = with_cells(fit)
        labels = fit.sampled.labels if refined is None else refined.labels
        found.append(adjusted_rand_score(truth, labels))
    assert np.mean(found) > 0.75
