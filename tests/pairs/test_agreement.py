"""Krippendorff's alpha: the published examples, and a slow reference."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.pairs import Pairs


def units(*observers: str) -> Pairs:
    """Judgements of observers who rate unit after unit; "." is a missing value."""
    rows = [
        (2 * u, 2 * u + 1, value == "1", f"observer {k}")
        for k, values in enumerate(observers)
        for u, value in enumerate(values)
        if value != "."
    ]
    left, right, same, who = zip(*rows, strict=True)
    return Pairs(left, right, same, who)


def slow_alpha(pairs: Pairs) -> float | None:
    """From the matrix of coincidences, value by value, as the book does it."""
    seen: dict[frozenset[int], dict[int, bool]] = defaultdict(dict)
    for m in range(len(pairs)):
        if pairs.weight is None or pairs.weight[m] > 0:
            unit = seen[frozenset((int(pairs.left[m]), int(pairs.right[m])))]
            unit.setdefault(int(pairs.annotator[m]), bool(pairs.same[m]))
    coincidence = np.zeros((2, 2))
    for unit in seen.values():
        for a, b in permutations(unit.values(), 2):
            coincidence[int(a), int(b)] += 1 / (len(unit) - 1)
    total = coincidence.sum()
    values = coincidence.sum(axis=1)
    expected = values[0] * values[1] / max(total - 1, 1)
    return None if expected == 0 else 1 - coincidence[0, 1] / expected


def test_the_published_example_of_two_observers():
    """Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), A: alpha = .095."""
    meg, owen = "0100000010", "1110010000"
    found = units(meg, owen).describe().agreement
    assert found.alpha == pytest.approx(0.095, abs=5e-4)
    assert (found.pairs, found.answers) == (10, 20)


def test_agreement_disagreement_and_nothing_to_tell():
    assert units("0110", "0110").describe().agreement.alpha == 1
    assert units("0101", "1010").describe().agreement.alpha < 0
    assert units("1111", "1111").describe().agreement.alpha is None
    assert units("01..", "..01").describe().agreement is None  # nobody judged what another did
    assert Pairs([0, 0], [1, 1], [1, 0]).describe().agreement is None  # nobody is named


def test_describe_says_it_in_words():
    text = repr(units("0100000010", "1110010000").describe())
    assert "agreement" in text
    assert "alpha 0.10 (Krippendorff), over 10 pairs that several people judged" in text


@settings(max_examples=200)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(0, 4),
            st.booleans(),
            st.integers(0, 3),
            st.sampled_from([0.0, 1.0, 1.0]),
        ).filter(lambda row: row[0] != row[1]),
        min_size=1,
        max_size=60,
    ).filter(lambda rows: any(row[4] for row in rows))
)
def test_it_equals_the_slow_reference(rows):
    left, right, same, who, weight = zip(*rows, strict=True)
    pairs = Pairs(left, right, same, [f"p{k}" for k in who], weight, n_items=5)
    found, expected = pairs.describe().agreement, slow_alpha(pairs)
    if found is None or found.alpha is None:
        assert expected is None
    else:
        assert found.alpha == pytest.approx(expected)
