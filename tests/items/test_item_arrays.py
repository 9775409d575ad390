"""Items as arrays: which are taken, as what, and what is said of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from likewise.errors import InputError
from likewise.items import arrays
from likewise.items.arrays import Selection, check_items, network_shape

LARGEST = np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([[1, 2]], np.float32),
        (np.ones((1, 2), np.uint8), np.uint8),
        (np.ones((2, 3, 3), bool), np.float32),
        (np.ones((2, 3, 3, 1)), np.float32),
        (np.array([[1, 2.5]], object), np.float32),
        ([[LARGEST, -LARGEST]], np.float32),
    ],
)
def test_numbers_of_any_type(given: Any, dtype: type) -> None:
    found = check_items(given)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.asarray(given, np.float64))


def test_what_fits_is_not_copied() -> None:
    for items in (np.ones((2, 3), np.float32), np.ones((2, 3), np.uint8)):
        assert check_items(items) is items


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 2], r"^items must be features .* have shape \(2,\)\. Reshape your data"),
        (np.zeros((1, 1, 1, 1, 1)), r"have shape \(1, 1, 1, 1, 1\)"),
        (sparse.csr_array((2, 2)), r"^sparse items are not supported; give X\.toarray"),
        (np.array([[1, "x"]], object), "items must be numbers, but some are not: could not"),
        (np.ones((1, 1), complex), r"^items must be real numbers\. Complex data not supported"),
        ([["a"]], "items must be numbers, but are <U1"),
        (np.zeros((0, 2)), r"no items: 0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1"),
        (np.zeros((2, 0)), r"are empty: 0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1"),
        (np.zeros((2, 3, 0)), r"are empty: 0 feature\(s\)"),
        ([[0, 1], [2, np.nan]], r"item 1 has NaN at position \(1,\): items must be finite"),
        ([[[0, np.inf], [2, 3]]], r"item 0 has inf at position \(0, 1\)"),
        ([[0.0, -1e39]], r"item 0 has -1e\+39 at position \(1,\)"),
    ],
)
def test_others_get_a_sentence(given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_items(given)


def test_items_other_than_those_of_the_fit() -> None:
    check_items(np.zeros((2, 3)), (3,))
    with pytest.raises(InputError, match=r"X has 3 features, .* is expecting 4 features as input"):
        check_items(np.zeros((2, 3)), (4,))
    for given, fitted in (((2, 3), (3, 3)), ((2, 4, 4), (4,)), ((2, 4, 4), (4, 5))):
        with pytest.raises(InputError, match=r"the model was fitted to items of shape .* have"):
            check_items(np.zeros(given), fitted)


def test_bad_numbers_are_found_in_every_piece() -> None:
    items = np.zeros((5, 2**22 + 1), np.float32)  # three rows are a piece
    items[4, 7] = np.nan
    with pytest.raises(InputError, match=r"item 4 has NaN at position \(7,\)"):
        arrays._check_finite(items)


def test_what_a_network_sees_of_an_item() -> None:
    assert network_shape(np.zeros((2, 5))) == (5,)
    assert network_shape(np.zeros((2, 5, 6))) == (1, 5, 6)
    assert network_shape(np.zeros((2, 5, 6, 3))) == (3, 5, 6)


def test_some_rows_of_a_large_array() -> None:
    items = np.arange(20.0).reshape(10, 2)
    chosen = Selection(items, np.array([9, 1, 4, 0]))
    assert (len(chosen), chosen.ndim, chosen.shape) == (4, 2, (4, 2))
    assert chosen[1:3].tolist() == items[[1, 4]].tolist()
    assert chosen.every(1, 2)[:].tolist() == items[[1, 0]].tolist()
    read = chosen.read(torch.tensor([3, 0, 3]))
    assert read.tolist() == items[[0, 9, 0]].tolist()
