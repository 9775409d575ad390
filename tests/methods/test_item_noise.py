"""Noise that depends on the item: neighbours against a network that has learned the mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.inference.lifting import neighbours
from likewise.items.lazy import LazyImages
from likewise.methods import item_noise
from likewise.methods.item_noise import depends_on_items, with_marginal
from likewise.methods.joint import evidence_program
from likewise.methods.problem import Problem
from likewise.methods.teachers import CrossFit
from likewise.metrics import matched_accuracy
from likewise.nn.model import logits_of
from likewise.noise.estimation import marginal_transition, one_hot_evidence
from likewise.pairs import Pairs
from likewise.training.scheduler import run_program
from tiny import QUICK

FLIPPED = 0.6  # of the items on the far side of their class
Labels = NDArray[np.int64]


def misleading(n: int = 300, apart: float = 8.0) -> tuple[NDArray[np.float32], Labels, Labels]:
    """Three clusters, their classes, and what items are taken for: on one side often the next."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) + apart * np.eye(3, 4)[y]
    side = X[:, 3] > 0  # of no cluster
    taken = np.where(side & (rng.random(n) < FLIPPED), (y + 1) % 3, y)
    return X.astype(np.float32), y, taken


def follows(X: NDArray[np.float32], y: Labels) -> Labels:
    """What a network predicts that has learned who is taken for what."""
    return np.where(X[:, 3] > 0, (y + 1) % 3, y)


def crossed(predicted: Labels) -> CrossFit:
    log_g = (0.97 * torch.eye(3)[torch.from_numpy(predicted)] + 0.01).log()
    return CrossFit(log_g, torch.eye(3), [], QUICK)


def evidence_of(z: Labels) -> Tensor:
    return one_hot_evidence(torch.from_numpy(z), 3, torch.float32)


def test_neighbours_are_believed_where_the_network_cuts_through_clusters() -> None:
    X, y, z = misleading()
    problem = Problem(X, Pairs.from_labels(z), 3)
    beliefs = depends_on_items(problem, evidence_of(z), crossed(follows(X, y)))
    assert beliefs is not None
    assert matched_accuracy(beliefs.argmax(dim=1).numpy(), y) > 0.93


def test_images_on_disk_have_no_neighbours() -> None:
    X, y, z = misleading()
    problem = Problem(X, Pairs.from_labels(z), 3)
    on_disk = replace(problem, items=LazyImages([Path("gone.jpg")] * len(X), 32))
    assert depends_on_items(on_disk, evidence_of(z), crossed(follows(X, y))) is None


def test_classes_that_overlap_are_left_to_the_network() -> None:
    """The same answers about items that are one cluster: any boundary cuts through it."""
    X, y, z = misleading(apart=0.0)
    problem = Problem(X, Pairs.from_labels(z), 3)
    assert depends_on_items(problem, evidence_of(z), crossed(follows(X, y))) is None


def test_nothing_is_asked_where_t_explains_how_often_items_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, z = misleading()
    monkeypatch.delattr(item_noise, "spread")
    problem = Problem(X, Pairs.from_labels(z), 3)
    found = crossed(y)
    T = marginal_transition(found.log_g, evidence_of(z))
    explained = CrossFit(found.log_g, T, [], QUICK)
    assert depends_on_items(problem, evidence_of(z), explained) is None


def test_t_over_all_items_is_told_where_the_network_is_left_to_decide() -> None:
    """Items of one cluster: the network's classes stand, and T at its surest is not all noise."""
    X, _, z = misleading(n=600, apart=1.5)
    problem = Problem(X, Pairs.from_labels(z), 3, recipe=QUICK)
    fitted = run_program(evidence_program(problem, evidence_of(z)))
    found = crossed(z)
    sure = CrossFit(found.log_g, torch.eye(3), [], QUICK)
    noisy = torch.from_numpy(np.where(np.arange(600) % 3 == 0, (z + 1) % 3, z))
    told = with_marginal(problem, evidence_of(noisy.numpy()), sure, fitted)
    assert told.marginal_transition is not None
    predicted = logits_of(fitted.model, torch.from_numpy(X), torch.device("cpu")).argmax(dim=1)
    agreed = float((predicted == noisy).double().mean())
    assert abs(np.diag(told.marginal_transition).mean() - agreed) < 0.05
    assert with_marginal(problem, evidence_of(z), sure, fitted).marginal_transition is None


def test_the_marginal_matrix_counts_all_items() -> None:
    _, y, z = misleading()
    T = marginal_transition(crossed(y).log_g, evidence_of(z)).numpy()
    true = np.array([[np.mean(z[y == c] == k) for k in range(3)] for c in range(3)])
    np.testing.assert_allclose(T, true, atol=0.03)


def test_both_matrices_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, z = misleading()
    monkeypatch.setattr(item_noise, "UNEXPLAINED", -1.0)
    monkeypatch.setattr(neighbours, "FEWER", 9.0)
    monkeypatch.setattr(neighbours, "AGREES", 0.0)
    problem = Problem(X, Pairs.from_labels(z), 3, recipe=QUICK.with_(teachers=2, epochs=5))
    fitted = run_program(evidence_program(problem, evidence_of(z)))
    predicted = logits_of(fitted.model, X, torch.device("cpu")).argmax(dim=1).numpy()
    assert matched_accuracy(predicted, y) > 0.97
    assert fitted.marginal_transition is not None
    assert fitted.transition is not None
    assert "depends on the item" in fitted.choice
    kept = np.diag(fitted.marginal_transition).mean()
    assert kept == pytest.approx(1 - FLIPPED / 2, abs=0.06)
