"""Standard errors by leaving items out: against a loop, and where they are known."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.inference.partition.jackknife import jackknife_error


def test_of_pairs_as_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 12, (2, 60))
    left, right = left[left != right], right[left != right]
    scores = rng.normal(size=len(left))
    means = np.array([scores[(left != k) & (right != k)].mean() for k in range(12)])
    slow = np.sqrt(11 / 12 / 2 * np.square(means - means.mean()).sum())
    assert jackknife_error(scores, left, right) == pytest.approx(slow)


def test_of_items_scored_once_it_is_the_usual_standard_error() -> None:
    scores = np.random.default_rng(0).normal(size=50)
    usual = scores.std(ddof=1) / np.sqrt(50)
    assert jackknife_error(scores, np.arange(50)) == pytest.approx(usual)
