"""Judgements without the names of those who gave them."""

from __future__ import annotations

import numpy as np

from likewise.pairs import Pairs
from likewise.pairs.privacy import number_people, without_names


def test_people_are_numbered_by_when_they_first_answered() -> None:
    names = ["ann", "bob", "cat", "dan"]
    pairs = Pairs(
        [0, 1, 2, 0], [1, 2, 0, 2], [1, 0, 1, 0], [3, 1, 3, 0],
        annotator_names=names, item_ids=["x", "y", "z"],
    )  # fmt: skip
    found = without_names(pairs)
    assert found.annotator.tolist() == [0, 1, 0, 2]
    assert found.annotator.dtype == np.int32
    assert found.annotator_names.tolist() == [f"person {k}" for k in (1, 2, 3, 4)]
    assert found.item_ids is None
    assert found.same.tolist() == pairs.same.tolist()
    assert pairs.annotator_names.tolist() == names
    assert number_people(names) == ["person 1", "person 2", "person 3", "person 4"]


def test_nobody_named() -> None:
    pairs = Pairs([0], [1], [1])
    assert without_names(pairs) is pairs
    named = without_names(Pairs([0], [1], [1], item_ids=["x", "y"]))
    assert (named.item_ids, named.annotator) == (None, None)
