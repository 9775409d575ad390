"""Pairs in the shapes of metric-learn and pytorch-metric-learning, there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.interop import (
    from_indices_tuple,
    from_metric_learn,
    to_indices_tuple,
    to_metric_learn,
)

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
PAIRS = Pairs([0, 1, 0], [1, 2, 2], [1, 0, 0])


def rows(pairs: Pairs) -> set[tuple[int, int, bool]]:
    left, right = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    return set(zip(left.tolist(), right.tolist(), pairs.same.tolist(), strict=True))


class TestMetricLearn:
    def test_pairs_of_features(self) -> None:
        tuples, y = to_metric_learn(PAIRS, X)
        assert tuples.shape == (3, 2, 2)
        np.testing.assert_array_equal(y, [1, -1, -1])
        items, back = from_metric_learn(tuples, y)
        np.testing.assert_array_equal(items, X)  # equal rows are one item
        assert rows(back) == rows(PAIRS)

    def test_pairs_of_indices_with_a_preprocessor(self) -> None:
        tuples, y = to_metric_learn(PAIRS)
        items, back = from_metric_learn(tuples, y, preprocessor=X)
        np.testing.assert_array_equal(items, X)
        assert rows(back) == rows(PAIRS)

    @pytest.mark.parametrize(
        ("pairs", "preprocessor", "message"),
        [
            (np.zeros((3, 2)), None, "need a preprocessor"),
            (np.zeros((3, 2, 4)), X, "need no preprocessor"),
            (np.zeros((3, 4, 2)), None, r"have shape \(3, 4, 2\)"),
            (np.array([[0, 9]]), X, "right is 9, but there are only 3 items"),
        ],
    )
    def test_mistakes(self, pairs: Any, preprocessor: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            from_metric_learn(pairs, np.ones(len(pairs), int), preprocessor)


class TestIndicesTuple:
    def test_pairs_there_and_back(self) -> None:
        parts = to_indices_tuple(PAIRS)
        assert [part.tolist() for part in parts] == [[0], [1], [1, 0], [2, 2]]
        assert rows(from_indices_tuple(parts)) == rows(PAIRS)

    def test_both_directions_count_once(self) -> None:
        a, p = torch.tensor([0, 1]), torch.tensor([1, 0])
        pairs = from_indices_tuple((a, p, torch.tensor([2]), torch.tensor([0])), n_items=7)
        assert (len(pairs), pairs.n_items) == (2, 7)

    def test_triplets(self) -> None:
        pairs = from_indices_tuple((torch.tensor([0, 0]), torch.tensor([1, 1]), np.array([2, 3])))
        assert rows(pairs) == {(0, 1, True), (0, 2, False), (0, 3, False)}

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            (([0], [1]), "has 2"),
            (([0], [1], [0, 1], [1]), "as many as their partners"),
            (([0.5], [1], [0]), "list of item indices"),
        ],
    )
    def test_mistakes(self, parts: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            from_indices_tuple(parts)


def test_what_must_be_exact() -> None:
    tuples, y = to_metric_learn(Pairs.from_labels([0, 0, 1]))
    assert tuples.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert y.tolist() == [1, -1, -1]
    features = np.array([[[1.0, 2.0], [3.0, 4.0]], [[3.0, 4.0], [5.0, 6.0]]])
    items, pairs = from_metric_learn(features, [1, -1])
    assert items[pairs.left].tolist() == features[:, 0].tolist()
    assert items[pairs.right].tolist() == features[:, 1].tolist()
    assert (pairs.n_items, pairs.same.tolist()) == (3, [True, False])
    _, indexed = from_metric_learn([[0, 1]], [1], preprocessor=np.zeros((5, 2)))
    assert indexed.n_items == 5
    with pytest.raises(InputError, match=r"^metric-learn's pairs .* these have shape \(2,\)"):
        from_metric_learn([0, 1], [1])
    with pytest.raises(InputError, match=r"these have shape \(1, 3\)"):
        from_metric_learn([[0, 1, 2]], [1])


def test_parts_that_do_not_fit_are_told() -> None:
    whole = [torch.tensor([0]), torch.tensor([1]), torch.tensor([0]), torch.tensor([2])]
    assert [part.dtype for part in to_indices_tuple(PAIRS)] == [torch.int64] * 4
    assert rows(from_indices_tuple(whole)) == {(0, 1, True), (0, 2, False)}
    assert len(from_indices_tuple([[], [], [], []])) == 0
    for parts in ([[0, 1], [1], [0], [2]], [[0], [1], [0], [2, 3]], [[0], [1], [2, 3]]):
        with pytest.raises(InputError, match="must be as many as their partners"):
            from_indices_tuple(parts)
    with pytest.raises(InputError, match=r"^an indices_tuple has 4 parts .* but this has 5\.$"):
        from_indices_tuple([[0]] * 5)
    with pytest.raises(InputError, match="every part of an indices_tuple must be a list of item"):
        from_indices_tuple([[[0]], [1], [2]])
