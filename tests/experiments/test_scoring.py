"""Scoring: classes are learned in an order of their own, and so are the perceived ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from likewise.experiments.cells import Cell
from likewise.experiments.problem import Truth
from likewise.experiments.programs import _program
from likewise.experiments.scoring import score, similarity_examples
from likewise.experiments.settings import load_settings
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult
from likewise.noise import pair_flip
from likewise.pairs import Pairs
from likewise.training.scheduler import run_program

ROWS = np.array([2, 0, 1])  # the true class behind each learned one
COLUMNS = np.array([1, 2, 0])  # the perceived class behind each id
TRUE = np.array([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.1, 0.6]])


class Oracle(nn.Module):
    """Items (n, 1) hold their true class; the output is right, in the learned order."""

    def forward(self, x: Tensor) -> Tensor:
        return 20.0 * (x == torch.from_numpy(ROWS)[None].to(x))


def scored(method: str, transition: np.ndarray, known: bool = True) -> dict:
    classes = np.arange(30) % 3
    items = torch.from_numpy(classes[:, None].astype(np.float32))
    truth = Truth(items, classes, TRUE if known else None, COLUMNS)
    problem = Problem(items.numpy(), Pairs.from_labels(classes), 3)
    fitted = FitResult(method, Oracle(), Oracle(), transition, [], best_epoch=0, score=0.0)
    return score(Cell("t", "d", "n", "symmetric", 0.3, method, 0), fitted, problem, truth)


def test_pairwise_estimates_are_in_the_networks_order_both_ways() -> None:
    figures = scored("mns_estimated", TRUE[np.ix_(ROWS, ROWS)])
    assert figures["accuracy"] == figures["last_accuracy"] == 1.0
    assert figures["classes_used"] == 3
    assert figures["transition_error"] == pytest.approx(0)
    np.testing.assert_allclose(figures["transition"], TRUE)


def test_joint_estimates_have_columns_in_the_order_of_the_ids() -> None:
    figures = scored("joint", TRUE[np.ix_(ROWS, COLUMNS)])
    assert figures["transition_error"] == pytest.approx(0)
    assert figures["gram_error"] == pytest.approx(0)
    wrong = scored("joint", TRUE[np.ix_(ROWS, ROWS)])
    assert wrong["transition_error"] > 0.1
    assert wrong["gram_error"] == pytest.approx(0)  # T T' does not see the order of columns


def test_errors_as_the_paper_defines_them() -> None:
    off = TRUE.copy()
    off[0] = [0.5, 0.4, 0.1]
    figures = scored("mns_estimated", off[np.ix_(ROWS, ROWS)])
    assert figures["transition_error"] == pytest.approx(0.4 / 3)
    unknown = scored("mns_estimated", TRUE, known=False)
    assert unknown["transition_error"] is None
    assert scored("mns_true", TRUE)["transition_error"] is None


def test_similarity_examples() -> None:
    f = np.array([[0.8, 0.2], [0.1, 0.9], [0.6, 0.4]])
    examples = similarity_examples(f, np.array([0, 1, 0]))
    assert examples["similar"]["right"] == [0.6, 0.4]
    assert examples["similar"]["similarity"] == pytest.approx(0.56)
    assert examples["dissimilar"]["similarity"] == pytest.approx(0.26)
    assert similarity_examples(f, np.zeros(3, int)).keys() == {"similar"}


def test_mns_true_is_given_the_true_transition() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 200)
    problem = Problem(
        rng.normal(size=(200, 4)).astype(np.float32),
        Pairs.from_labels(classes),
        3,
        recipe=load_settings("table1").training.with_(epochs=1),
    )
    truth = Truth(None, classes, pair_flip(3, 0.2), np.arange(3))
    cell = Cell("t", "d", "n", "pair_flip", 0.2, "mns_true", 0)
    fitted = run_program(_program(cell, problem, truth, None, load_settings("table1")))
    assert fitted.transition is truth.transition
    assert fitted.method == "mns"
