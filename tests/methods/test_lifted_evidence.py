"""What is taken where judgements are too few for anything but the items."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.methods.lifted_evidence import NOTHING, _told_apart, lift_judgements
from likewise.methods.problem import Problem
from likewise.metrics import matched_accuracy
from likewise.pairs import Pairs
from tiny import QUICK, blobs


def test_items_are_told_apart_by_beliefs_that_differ() -> None:
    one_class = torch.eye(3)[torch.zeros(30, dtype=torch.int64)]
    nothing = torch.full((30, 3), 1 / 3)
    sure = torch.eye(3)[torch.arange(30) % 3]
    assert _told_apart(one_class) == pytest.approx(0, abs=1e-6)
    assert _told_apart(nothing) == pytest.approx(0, abs=1e-6)
    assert _told_apart(sure) == pytest.approx(np.log(3), abs=1e-4)


def test_answers_that_say_nothing_leave_the_clusters_of_the_items() -> None:
    """Coins were tossed: lifting tells no items apart, k-means still does."""
    X, y = blobs()
    rng = np.random.default_rng(0)
    left = rng.integers(len(X), size=220)
    right = (left + rng.integers(1, len(X), size=220)) % len(X)
    pairs = Pairs(left, right, rng.random(220) < 1 / 3, n_items=len(X))
    found = lift_judgements(Problem(X, pairs, 3, recipe=QUICK), "estimate")
    assert found is not None
    assert "clusters of the items alone" in found.why
    assert _told_apart(found.rows) > NOTHING
    assert matched_accuracy(found.rows.argmax(dim=1).numpy(), y) > 0.9
