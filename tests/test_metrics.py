"""Matching of learned to true classes, against trying every permutation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from likewise.errors import InputError
from likewise.metrics import (
    best_matching,
    confusion,
    evaluate_predictions,
    gram_error,
    matched_accuracy,
    names_by_majority,
    reorder_transition,
    transition_error,
)
from likewise.noise import pair_flip, symmetric

LABELS = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.int64, n, elements=st.integers(0, 4)),
        hnp.arrays(np.int64, n, elements=st.integers(0, 4)),
    )
)


def best_accuracy_by_trying(predicted, truth, n_classes=5) -> float:
    return max(
        float((np.array(order)[predicted] == truth).mean())
        for order in itertools.permutations(range(n_classes))
    )


@given(LABELS)
def test_accuracy_is_the_best_over_all_permutations(labels):
    predicted, truth = labels
    expected = best_accuracy_by_trying(predicted, truth)
    assert matched_accuracy(predicted, truth) == pytest.approx(expected)


@given(LABELS, st.permutations(range(5)), st.permutations(range(5)))
def test_accuracy_does_not_know_the_numbering(labels, first, second):
    predicted, truth = labels
    renumbered = matched_accuracy(np.array(first)[predicted], np.array(second)[truth])
    assert renumbered == matched_accuracy(predicted, truth)


@pytest.mark.parametrize(
    "truth",
    [["cat", "cat", "dog"], [-1, -1, 1], [2.5, 2.5, 7.0], [10**15, 10**15, 3], [True, True, False]],
)
def test_true_classes_may_be_anything(truth):
    assert matched_accuracy([1, 1, 0], truth) == 1
    assert matched_accuracy([1, 0, 0], truth) == pytest.approx(2 / 3)


def test_more_learned_classes_than_true_ones_cost_accuracy():
    assert matched_accuracy([0, 1, 2, 3], [0, 0, 1, 1]) == 0.5
    assert matched_accuracy([0, 0, 0, 0], [0, 1, 2, 3]) == 0.25


def test_confusion_counts_predicted_by_true():
    expected = [[1, 1, 0], [0, 0, 1]]
    np.testing.assert_array_equal(confusion([0, 0, 1], [0, 1, 2]), expected)
    counts = confusion([0, 0, 1], [0, 1, 2], 4)
    assert counts.shape == (4, 4)
    np.testing.assert_array_equal(counts[:2, :3], expected)
    assert counts.sum() == 3
    assert confusion([5], [1], 2).shape == (6, 2)  # n_classes is a least number, not a limit
    np.testing.assert_array_equal(confusion(["b", "a"], [True, False]), np.eye(2))


@given(LABELS)
def test_confusion_by_loop(labels):
    counts = confusion(*labels, 5)
    expected = np.zeros((5, 5), int)
    for p, t in zip(*labels):
        expected[p, t] += 1
    np.testing.assert_array_equal(counts, expected)


def test_confusion_of_nothing():
    assert confusion([], []).shape == (0, 0)
    assert confusion([], [], 3).shape == (3, 3)


@pytest.mark.parametrize(
    ("predicted", "truth", "message"),
    [
        ([0, 1], [0], "^there are 2 predictions but 1 true classes"),
        ([[0]], [0], r"^predicted must be \(N,\), one class an item, but has shape \(1, 1\)"),
        ([0], [[0]], r"^truth must be \(N,\)"),
        ([-1], [0], "^predicted must be class numbers from 0, but holds -1"),
        ([0], [-2], "^truth must be class numbers from 0, but holds -2"),
    ],
)
def test_labels_that_do_not_fit(predicted, truth, message):
    with pytest.raises(InputError, match=message):
        confusion(predicted, truth)


def test_accuracy_says_what_does_not_fit():
    with pytest.raises(InputError, match=r"^accuracy needs at least one item"):
        matched_accuracy([], [])
    with pytest.raises(InputError, match=r"^there are 1 predictions but 2 true"):
        matched_accuracy([0], [0, 1])
    with pytest.raises(InputError, match=r"^truth must be"):
        matched_accuracy([0], [[0]])
    with pytest.raises(InputError, match=r"^predicted must be"):
        matched_accuracy([[0]], [0])


@given(hnp.arrays(np.int64, (4, 4), elements=st.integers(0, 20)))
def test_matching_agrees_on_as_much_as_any_permutation(counts):
    match = best_matching(counts)
    assert sorted(match) == [0, 1, 2, 3]
    agreed = counts[np.arange(4), match].sum()
    assert agreed == max(
        sum(counts[k, order[k]] for k in range(4)) for order in itertools.permutations(range(4))
    )


def test_what_finds_no_partner_is_minus_one():
    match = best_matching([[5, 0], [0, 0], [0, 7]])
    assert match.tolist() == [0, -1, 1]
    assert match.dtype == np.int64
    assert best_matching([[5, 0, 9]]).tolist() == [2]
    assert best_matching(np.zeros((2, 0))).tolist() == [-1, -1]


# -- naming --------------------------------------------------------------------------------------


def test_names_go_to_the_classes_that_hold_them():
    names, counts = names_by_majority([2, 2, 0, 1, 1], ["cat", "cat", "dog", "emu", "cat"], 3)
    assert names.tolist() == ["dog", "emu", "cat"]
    np.testing.assert_array_equal(counts, [[0, 1, 0], [1, 0, 1], [2, 0, 0]])  # cat, dog, emu


def test_a_class_without_named_items_keeps_its_number():
    names, counts = names_by_majority([0, 3], ["cat", "dog"], 4)
    assert names.tolist() == ["cat", "class 1", "class 2", "dog"]
    assert counts.shape == (4, 2)
    more_names_than_classes, _ = names_by_majority([0, 0, 0], ["a", "b", "b"], 2)
    assert more_names_than_classes.tolist() == ["b", "class 1"]


def test_whole_numbers_stay_numbers_where_each_class_has_one():
    names, _ = names_by_majority([0, 1, 1], [7, 3, 3], 2)
    assert names.tolist() == [7, 3]
    assert names.dtype.kind == "i"
    mixed, _ = names_by_majority([0, 1], [7, 3], 3)
    assert mixed.tolist() == ["7", "3", "class 2"]
    flags, _ = names_by_majority([0, 1], [True, False], 2)
    assert flags.tolist() == ["True", "False"]
    unseen, _ = names_by_majority([0, 0], [7, 3], 2)  # class 1 met neither of them
    assert unseen.tolist() in (["7", "class 1"], ["3", "class 1"])


def test_naming_needs_an_item_and_one_name_each():
    with pytest.raises(InputError, match=r"^naming classes needs at least one item"):
        names_by_majority([], [], 3)
    with pytest.raises(InputError, match=r"2 predictions but 1"):
        names_by_majority([0, 1], ["cat"], 3)


# -- errors of T ---------------------------------------------------------------------------------


def test_error_of_t_is_the_papers():
    true = symmetric(2, 0.2)
    estimated = symmetric(2, 0.5)
    assert transition_error(estimated, true) == pytest.approx(4 * 0.3 / 2)
    assert transition_error(true, true) == 0
    assert transition_error([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]) == pytest.approx(1)


def test_errors_of_narrow_types_do_not_wrap_around():
    percent = np.array([[90, 10], [20, 80]], np.uint8)
    flipped = percent[:, ::-1]
    assert transition_error(flipped, percent) == pytest.approx(280 / 200)
    wide = percent.astype(float)
    assert gram_error(flipped * 2, percent) == pytest.approx(gram_error(2 * wide[:, ::-1], wide))
    assert reorder_transition(percent, [1, 0]).dtype == np.float64


def test_the_gram_error_sees_no_rotation():
    """Which way a pair flip goes cannot be learned from pairs: T T' is the same both ways."""
    flip = pair_flip(3, 0.3)
    assert gram_error(flip[:, [1, 2, 0]], flip) == pytest.approx(0, abs=1e-12)
    assert transition_error(flip[:, [1, 2, 0]], flip) > 0.5
    estimated, true = symmetric(3, 0.1), flip
    expected = np.abs(estimated @ estimated.T - true @ true.T).sum() / (true @ true.T).sum()
    assert gram_error(estimated, true) == pytest.approx(expected)


def test_gram_is_t_times_its_transpose_not_the_other_way():
    t, s = np.array([[0.5, 0.5], [0.0, 1.0]]), np.eye(2)
    assert gram_error(t, s) == pytest.approx((0.5 + 0.5 + 0.5) / 2)


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_reordering_undoes_a_permutation(rows, columns):
    true = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    learned = true[np.ix_(rows, columns)]  # learned class k is true class rows[k]
    np.testing.assert_array_equal(reorder_transition(learned, rows, columns), true)
    learned = true[np.ix_(rows, rows)]
    np.testing.assert_array_equal(reorder_transition(learned, rows), true)


class TestEvaluation:
    """Predictions beside the truth, by hand."""

    def test_more_true_classes_than_learned_ones_and_the_other_way(self):
        truth = np.array(["a", "a", "b", "c", "c", "c"])
        found = evaluate_predictions(np.eye(2)[[0, 0, 0, 1, 1, 0]], np.arange(2), truth)
        assert (found.items, found.accuracy) == (6, 4 / 6)
        assert found.classes == ["a", "b", "c"]
        assert found.matched == ["0", "–", "1"]
        assert found.recall == [1, 0, pytest.approx(2 / 3)]
        assert found.confusion == [[2, 0, 0], [1, 0, 0], [1, 0, 2]]
        few = evaluate_predictions(np.eye(4)[[3, 3, 1, 0, 0, 2]], np.array(list("wxyz")), truth)
        assert few.matched == ["z", "x", "w"]
        assert few.accuracy == 5 / 6
        assert few.confusion == [[2, 0, 0], [0, 1, 0], [0, 0, 2]]
        assert few.recall == [1, 1, pytest.approx(2 / 3)]
        assert few.named_accuracy is None

    def test_names_count_only_where_some_are_true_ones(self):
        truth = np.array(["0", "1", "1"])
        numbers = evaluate_predictions(np.eye(2)[[0, 1, 0]], np.arange(2), truth)
        assert numbers.named_accuracy is None
        turned = evaluate_predictions(np.eye(2)[[0, 1, 0]], np.array(["1", "0"]), truth)
        assert turned.named_accuracy == pytest.approx(1 / 3)
        assert turned.accuracy == pytest.approx(2 / 3)
        some = evaluate_predictions(np.eye(2)[[0, 1, 0]], np.array(["1", "other"]), truth)
        assert some.named_accuracy == pytest.approx(1 / 3)
        assert set(some.to_dict()) == {
            "items", "accuracy", "named_accuracy", "classes", "matched", "recall", "confusion",
        }  # fmt: skip

    def test_classes_of_numbers_in_their_order(self):
        truth = np.array(["10", "9", "100", "9"])
        found = evaluate_predictions(np.eye(3)[[0, 1, 2, 1]], np.arange(3), truth)
        assert (found.classes, found.matched) == (["9", "10", "100"], ["1", "0", "2"])
        mixed = evaluate_predictions(np.eye(3)[[0, 1, 2]], np.arange(3), np.array(["10", "9", "x"]))
        assert mixed.classes == ["10", "9", "x"]

    def test_nothing_to_compare_with(self):
        with pytest.raises(InputError, match="there is no item of known class to compare with"):
            evaluate_predictions(np.zeros((0, 2)), np.arange(2), np.array([], np.str_))
