"""Every method on scikit-learn's digits, side by side: what ``make demo`` runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.classifier import SimilarityClassifier
from likewise.datasets.digits import load_digits
from likewise.errors import InputError
from likewise.experiments.cells import Cell
from likewise.experiments.problem import Truth, class_of_id
from likewise.experiments.scoring import score
from likewise.io.atomic import check_vacant
from likewise.io.json import Record
from likewise.methods.options import FitOptions
from likewise.methods.pairwise import mns_stage2, pairwise_program
from likewise.methods.problem import Problem
from likewise.methods.registry import METHODS
from likewise.methods.result import FitResult
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.runs import write_run
from likewise.training.scheduler import run_program

_MNS = METHODS["mns"].title
TITLES = {
    **{m.name: f"{m.title} ({m.note})" if m.note else m.title for m in METHODS.values()},
    "mns_estimated": f"{_MNS}, T estimated",
    "mns_true": f"{_MNS}, true T",
}
# Shown here otherwise: by `auto` itself, and MNS with T estimated and with the true one.
_SHOWN = ("auto", "joint", "mns", "mcl", "kcl")
Row = Record


@dataclass(frozen=True)
class Study:
    """Digits of which a share was taken for another digit, and all same-or-different judgements.

    ``truth`` is for scoring only. Everything follows from the noise and the seed.
    """

    noise: float  # the share of items taken for another digit
    seed: int  # everything follows from it
    problem: Problem  # items and judgements
    truth: Truth  # for scoring only
    classes: NDArray[np.int64]  # (N,) true classes of the items, for the run

    @classmethod
    def make(cls, noise: float, seed: int, recipe: Record | None = None) -> Study:
        digits = load_digits(seed)
        if digits.train_y is None:
            raise InputError("the digits have lost their classes.")
        transition = symmetric(digits.n_classes, noise)
        z = corrupt_labels(digits.train_y, transition, np.random.default_rng([seed, 0]))
        problem = Problem(
            digits.train_x, Pairs.from_labels(z), digits.n_classes, recipe=recipe, seed=seed
        )
        truth = Truth(
            torch.from_numpy(digits.test_x),
            digits.test_y,
            transition,
            class_of_id(problem.components, z, digits.n_classes),
        )
        return cls(noise, seed, problem, truth, digits.train_y)

    def row(self, method: str, fitted: FitResult, seconds: float) -> Row:
        """The figures of one method on held-out items."""
        cell = Cell("digits", "digits", "mlp", "symmetric", self.noise, method, self.seed)
        figures = score(cell, fitted, self.problem, self.truth)
        kept = ("accuracy", "transition_error", "gram_error", "classes_used")
        return {
            "method": method,
            "title": TITLES[method],
            **{name: figures[name] for name in kept},
            "seconds": seconds,
        }

    def pairwise(self) -> Iterator[Row]:
        """The methods that treat judgements as independent, as they are; MCL is MNS's stage 1."""
        started = time.perf_counter()
        stage1 = run_program(pairwise_program(self.problem, "mcl"))
        first = time.perf_counter() - started
        yield self.row("mcl", stage1, first)
        programs = {
            "kcl": pairwise_program(self.problem, "kcl"),
            "mns_estimated": mns_stage2(self.problem, stage1),
            "mns_true": pairwise_program(self.problem, "mns", self.truth.transition),
            **{
                method.name: method.start(self.problem, FitOptions())
                for method in METHODS.values()
                if method.name not in _SHOWN
            },
        }
        for method, program in programs.items():  # a program does nothing until it is run
            started = time.perf_counter()
            fitted = run_program(program)
            seconds = time.perf_counter() - started
            yield self.row(method, fitted, seconds + (first if method == "mns_estimated" else 0))

    def auto(self) -> tuple[Row, SimilarityClassifier]:
        """What a user gets who sets nothing but the number of classes."""
        started = time.perf_counter()
        classifier = SimilarityClassifier(
            self.problem.n_classes,
            recipe=self.problem.recipe,
            random_state=self.seed,
            verbose=False,
            device="cpu",
        ).fit(self.problem.items, self.problem.pairs)
        seconds = time.perf_counter() - started
        return self.row("joint", classifier.result_, seconds), classifier


def run_demo(
    out: str | Path | None = None,
    noise: float = 0.4,
    seed: int = 0,
    report: Callable[[str], None] = lambda message: None,
    recipe: Record | None = None,
) -> Record:
    """Compare the methods on digits and leave the last one's run in a folder."""
    folder = _unused(Path("runs"), "demo") if out is None else Path(out)
    check_vacant(folder)
    started = time.perf_counter()
    study = Study.make(noise, seed, recipe)
    rows = []
    for row in study.pairwise():
        report(_line(row))
        rows.append(row)
    row, classifier = study.auto()
    report(_line(row))
    rows.append(row)
    run = write_run(
        folder,
        classifier,
        study.problem.items,
        study.problem.pairs,
        truth=study.classes,
        config={"command": "demo", "noise": noise, "seed": seed, "data": "scikit-learn's digits"},
        metrics={"device": "cpu", "seconds": {"fit": row["seconds"]}, "methods": rows},
    )
    return {
        "noise": noise,
        "items": len(study.problem.items),
        "test_items": len(study.truth.test_classes),
        "methods": rows,
        "seconds": time.perf_counter() - started,
        "run": str(run.folder),
    }


def _line(row: Row) -> str:
    return f"{row['title']}: {row['accuracy']:.1%} in {row['seconds']:.1f} s"


def _unused(parent: Path, name: str) -> Path:
    """The first of name, name-2, name-3 ... that is not there yet."""
    number = 1
    while (folder := parent / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return folder
