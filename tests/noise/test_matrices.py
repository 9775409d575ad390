"""Noise matrices as the paper defines them, and what they do to labels and judgements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from likewise.errors import InputError
from likewise.noise import (
    check_transition,
    corrupt_labels,
    flip_judgements,
    pair_flip,
    symmetric,
)
from likewise.pairs import Pairs

RATES = st.floats(0, 1)


def test_symmetric_noise_is_the_papers():
    expected = [[0.4, 0.2, 0.2, 0.2], [0.2, 0.4, 0.2, 0.2], [0.2, 0.2, 0.4, 0.2]]
    np.testing.assert_allclose(symmetric(4, 0.6), [*expected, [0.2, 0.2, 0.2, 0.4]])


def test_pair_flip_takes_a_class_for_the_next():
    expected = [[0.7, 0.3, 0], [0, 0.7, 0.3], [0.3, 0, 0.7]]
    np.testing.assert_allclose(pair_flip(3, 0.3), expected)


@pytest.mark.parametrize("build", [symmetric, pair_flip])
@given(n_classes=st.integers(2, 12), rate=RATES)
def test_matrices_are_stochastic_and_keep_what_they_say(build, n_classes, rate):
    matrix = build(n_classes, rate)
    assert matrix.shape == (n_classes, n_classes)
    assert matrix.dtype == np.float64
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    np.testing.assert_allclose(np.diag(matrix), 1 - rate)


@given(n_classes=st.integers(2, 12), rate=RATES)
def test_symmetric_noise_favours_no_class(n_classes, rate):
    matrix = symmetric(n_classes, rate)
    off = matrix[~np.eye(n_classes, dtype=bool)]
    np.testing.assert_allclose(off, rate / (n_classes - 1))


@pytest.mark.parametrize("build", [symmetric, pair_flip])
def test_noise_that_cannot_be_is_refused(build):
    with pytest.raises(InputError, match=r"^noise between classes needs at least two .* not 1.$"):
        build(1, 0.1)
    for rate in (-0.01, 1.01, float("nan")):
        with pytest.raises(InputError, match=f"^a noise rate must lie .* but is {rate}"):
            build(3, rate)
    assert build(2, 0).shape == build(2, 1).shape == (2, 2)  # the ends are allowed


# -- checking ------------------------------------------------------------------------------------


@given(
    hnp.arrays(np.float64, st.integers(1, 6).map(lambda c: (c, c)), elements=st.floats(0.01, 10))
)
def test_any_row_stochastic_matrix_passes_unchanged(draw):
    matrix = draw / draw.sum(axis=1, keepdims=True)
    checked = check_transition(matrix, len(matrix))
    np.testing.assert_allclose(checked, matrix, atol=1e-12)
    assert checked is not matrix
    assert checked.dtype == np.float64


def test_rounding_is_mended_but_not_more():
    nearly = np.array([[0.90005, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(check_transition(nearly).sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(check_transition(nearly)[1], [0.3, 0.7])
    np.testing.assert_array_equal(nearly[0], [0.90005, 0.1])  # the caller's own stays as it was
    with pytest.raises(InputError, match=r"row 0 sums to 1.0003"):
        check_transition([[0.9003, 0.1], [0.3, 0.7]])
    with pytest.raises(InputError, match=r"row 1 sums to 0.9998"):
        check_transition([[0.9, 0.1], [0.3, 0.6998]])


@pytest.mark.parametrize(
    ("matrix", "n_classes", "message"),
    [
        ([1.0, 0.0], None, r"^a transition matrix must be square, but has shape \(2,\)"),
        ([[1.0, 0.0]], None, r"must be square, but has shape \(1, 2\)"),
        (np.eye(3), 4, "^the transition matrix is for 3 classes, but there are 4"),
        ([[1.1, -0.1], [0, 1]], None, "^a transition matrix must hold probabilities"),
        ([[np.nan, 1], [0, 1]], None, "must hold probabilities"),
        ([[np.inf, 1], [0, 1]], None, "must hold probabilities"),
        ([[0.5, 0.3], [0, 1]], None, r"^each row .*perceived class\), but row 0 sums to 0.8"),
        ([[0.5, 0.9], [0.5, 0.3]], None, "row 0 sums to 1.4"),
        ([["a", "b"], [0, 1]], None, "^a transition matrix must hold numbers"),
        ([[1.0], [0, 1]], None, "^a transition matrix must hold numbers"),
    ],
)
def test_what_is_no_transition_matrix(matrix, n_classes, message):
    with pytest.raises(InputError, match=message):
        check_transition(matrix, n_classes)


def test_the_transpose_is_refused():
    """Columns that sum to 1 are the peers' convention, and would be a silent error here."""
    columns_sum_to_one = np.array([[0.9, 0.3], [0.1, 0.7]])
    check_transition(columns_sum_to_one.T)
    with pytest.raises(InputError, match=r"row: true class"):
        check_transition(columns_sum_to_one)


# -- class flips ---------------------------------------------------------------------------------


def test_corrupted_labels_follow_the_rows_of_t():
    """Chi-squared on 90,000 draws; T asymmetric, so that a transpose could not pass."""
    matrix = np.array([[0.6, 0.3, 0.1], [0.0, 0.8, 0.2], [0.5, 0.25, 0.25]])
    truth = np.repeat([0, 1, 2], 30_000)
    z = corrupt_labels(truth, matrix, 0)
    for c in range(3):
        counts = np.bincount(z[truth == c], minlength=3)
        possible = matrix[c] > 0
        assert (counts[~possible] == 0).all()
        assert stats.chisquare(counts[possible], 30_000 * matrix[c, possible]).pvalue > 1e-3


@given(st.integers(0, 2**31), st.integers(0, 40), st.integers(2, 6))
def test_corruption_is_seeded_and_leaves_its_input(seed, n, n_classes):
    truth = np.random.default_rng(seed).integers(n_classes, size=n)
    before = truth.copy()
    z = corrupt_labels(truth, symmetric(n_classes, 0.5), seed)
    again = corrupt_labels(truth, symmetric(n_classes, 0.5), np.random.default_rng(seed))
    np.testing.assert_array_equal(z, again)
    np.testing.assert_array_equal(truth, before)
    assert z.dtype == np.int64
    assert z.shape == truth.shape
    assert ((z >= 0) & (z < n_classes)).all()


def test_certain_matrices_are_certain():
    truth = np.random.default_rng(0).integers(4, size=1000)
    np.testing.assert_array_equal(corrupt_labels(truth, np.eye(4), 1), truth)
    np.testing.assert_array_equal(corrupt_labels(truth, pair_flip(4, 1.0), 1), (truth + 1) % 4)
    np.testing.assert_array_equal(corrupt_labels(truth.astype(np.uint8), np.eye(4), 1), truth)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 3], "^labels must lie in 0 to 2 for .* of 3 classes, but range from 0 to 3"),
        ([-1, 0], "range from -1 to 0"),
        ([0.0, 1.0], "^labels must be .N,. class numbers, but are float64 of shape .2,."),
        ([[0, 1]], r"but are int64 of shape \(1, 2\)"),
        (["a"], "class numbers"),
    ],
)
def test_labels_that_cannot_be_corrupted(labels, message):
    with pytest.raises(InputError, match=message):
        corrupt_labels(labels, np.eye(3))


def test_no_labels_stay_none():
    assert corrupt_labels(np.array([], int), np.eye(3)).shape == (0,)


# -- judgement flips -----------------------------------------------------------------------------


def test_flipped_judgements_follow_the_two_rates():
    pairs = Pairs.from_labels(np.repeat([0, 1], 300))
    flipped = flip_judgements(pairs, 0.7, 0.1, 0)
    truth = pairs.explicit().same
    for kind, rate in ((True, 0.7), (False, 0.1)):
        said = flipped.same[truth == kind]
        assert stats.binomtest(int(said.sum()), len(said), rate).pvalue > 1e-3


def test_the_perfect_channel_and_its_opposite():
    pairs = Pairs([0, 1, 2], [1, 2, 3], [1, 0, 1])
    np.testing.assert_array_equal(flip_judgements(pairs, 1, 0).same, pairs.same)
    np.testing.assert_array_equal(flip_judgements(pairs, 0, 1).same, ~pairs.same)


def test_flipping_keeps_everything_but_the_answers():
    ids = [f"item {k}" for k in range(7)]
    pairs = Pairs([0, 1], [1, 2], [1, 0], ["ann", "bob"], [1.0, 0.5], n_items=7, item_ids=ids)
    flipped = flip_judgements(pairs, 0.5, 0.5, 3)
    np.testing.assert_array_equal(flipped.left, pairs.left)
    np.testing.assert_array_equal(flipped.right, pairs.right)
    np.testing.assert_array_equal(flipped.annotator, pairs.annotator)
    np.testing.assert_array_equal(flipped.annotator_names, ["ann", "bob"])
    np.testing.assert_array_equal(flipped.weight, pairs.weight)
    assert flipped.n_items == 7
    np.testing.assert_array_equal(flipped.item_ids, ids)
    np.testing.assert_array_equal(pairs.same, [True, False])
    bare = flip_judgements(Pairs([0, 1], [1, 2], [1, 0]), 0.5, 0.5, 3)
    assert bare.annotator is None
    np.testing.assert_array_equal(bare.same, flipped.same)  # the same seed, the same flips


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_that_are_no_probabilities(rate):
    pairs = Pairs([0], [1], [1])
    with pytest.raises(InputError, match=f"^same_given_same must be a .* but is {rate}"):
        flip_judgements(pairs, rate, 0)
    with pytest.raises(InputError, match=f"^same_given_different must be a .* but is {rate}"):
        flip_judgements(pairs, 1, rate)
