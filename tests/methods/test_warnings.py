"""What is said of a fit is so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likewise.methods.result import FitResult
from likewise.methods.warnings import doubts_about_given, fit_warnings, judged_area
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.noise.estimation import one_hot_evidence
from likewise.pairs import Pairs


def result(held_out: bool) -> FitResult:
    module = nn.Identity()
    return FitResult(
        "mcl", module, module, None, [], best_epoch=0, score=0.0, judgements_held_out=held_out
    )


def test_a_perfect_ranking_is_never_called_chance():
    p = np.eye(2)[[0, 0, 1, 1]]
    pairs = Pairs([0, 0], [1, 2], [1, 0], n_items=4)  # two judgements: an error bar over all
    assert judged_area(p, pairs.left, pairs.right, pairs.same)[0] == 1.0
    assert fit_warnings(result(True), p, np.array([0]), pairs) == []


@pytest.mark.parametrize("held_out", [True, False])
def test_judgements_are_called_unseen_only_where_they_were(held_out):
    rng = np.random.default_rng(0)
    p = np.eye(2)[rng.integers(2, size=200)]
    pairs = Pairs.from_labels(rng.integers(2, size=200), per_item=20, random_state=0)
    (warning,) = fit_warnings(result(held_out), p, np.arange(60), pairs)
    assert "no better than by chance (AUC 0." in warning
    assert ("training did not see" in warning) is held_out


def test_the_area_counts_ties_as_half():
    p = np.array([[0.5, 0.5]] * 4)
    left, right = np.array([0, 1, 2]), np.array([1, 2, 3])
    assert judged_area(p, left, right, np.array([True, False, True]))[0] == 0.5
    assert judged_area(p, left, right, np.ones(3, bool))[0] is None


@pytest.mark.parametrize(
    ("given", "fits"),
    [(pair_flip(3, 0.3), True), (symmetric(3, 0.3), False), (np.eye(3), False)],
    ids=["the truth", "another kind", "no noise"],
)
def test_a_given_matrix_that_fits_nothing_is_doubted(given, fits):
    y = np.arange(600) % 3
    z = torch.from_numpy(corrupt_labels(y, pair_flip(3, 0.3), 0))
    log_g = (0.97 * torch.eye(3)[torch.from_numpy(y)] + 0.01).log()
    evidence = one_hot_evidence(z, 3, torch.float32)
    estimated = torch.tensor(pair_flip(3, 0.31), dtype=torch.float32)
    given = torch.tensor(given, dtype=torch.float32)
    found = doubts_about_given(given, estimated, log_g, evidence)
    assert len(found) == (0 if fits else 1)
    if found:
        assert "does not fit the judgements" in found[0]
        assert "leave it out" in found[0]


@pytest.mark.parametrize("method", ["mcl", "joint"])
def test_a_method_is_not_advised_where_it_was_taken(method):
    p = np.eye(4)[np.arange(12) % 3]
    pairs = Pairs.from_labels(np.arange(12) % 3)
    said = result(held_out=True).with_(method=method)
    (warning,) = fit_warnings(said, p, np.arange(12), pairs)
    assert "1 of 4 classes are never predicted" in warning
    assert ("method='joint'" in warning) is (method == "mcl")


def test_what_the_fit_itself_says_comes_first():
    said = result(held_out=True).with_(warnings=["a doubt."])
    y = np.arange(12) % 3
    probabilities = np.eye(3, dtype=np.float32)[y]
    found = fit_warnings(said, probabilities, np.arange(12), Pairs.from_labels(y))
    assert found == ["a doubt."]
