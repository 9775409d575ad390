"""Several starts of a pairwise method: begun, compared on held-out judgements, the best gone on."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.methods.pairwise import pairwise_program
from likewise.methods.problem import Problem
from likewise.pairs import Pairs
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from likewise.training.scheduler import named, run_program
from tiny import watched


def problem(starts: int) -> Problem:
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=200)
    items = (np.eye(4)[classes] * 3 + rng.normal(size=(200, 4))).astype(np.float32)
    recipe = Recipe(epochs=10, batch_size=64, starts=starts, start_share=0.2)
    return Problem(items, Pairs.from_labels(classes), 4, "linear", recipe, 0.2)


def runs_of(starts: int) -> tuple[list[TrainingRun], list[str], list[float]]:
    """The runs a program asks for, their names, and the held-out score when each was done."""
    program = named(pairwise_program(problem(starts), "mcl"), ["cell"])
    asked: list[TrainingRun] = []
    names: list[str] = []
    scores: list[float] = []

    def ask(run: TrainingRun) -> None:
        asked.append(run)
        names.append(run.name)  # a start that goes on is called otherwise then

    run_program(watched(program, ask, lambda run: scores.append(float(run.best.score))))
    return asked, names, scores


def test_the_best_start_goes_on_to_the_end() -> None:
    asked, names, scores = runs_of(3)
    assert names == ["cell-part-0", "cell-part-1", "cell-part-2", "cell"]
    assert len({id(run) for run in asked[:3]}) == 3
    assert len(set(scores[:3])) == 3  # they began from different weights
    assert asked[3] is asked[int(np.argmin(scores[:3]))]
    assert [row["epoch"] for row in asked[3].history] == list(range(10))
    assert sorted(run.epoch for run in set(asked)) == [2, 2, 10]


def test_one_start_is_a_plain_run() -> None:
    asked, names, _ = runs_of(1)
    assert names == ["cell"]
    assert asked[0].epoch == 10


def test_the_first_of_several_starts_is_the_plain_one() -> None:
    """So that more starts never do worse on the held-out judgements they are chosen by."""
    plain = run_program(pairwise_program(problem(1), "mcl"))
    several, _, _ = runs_of(3)
    first = [{k: v for k, v in row.items() if k != "method"} for row in plain.history[:2]]
    assert several[0].history[:2] == first


@pytest.mark.parametrize("wrong", [{"starts": 0}, {"start_share": 0.0}])
def test_impossible_starts_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="start"):
        Recipe(**wrong)
