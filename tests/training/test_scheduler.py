"""Programs side by side give what each gives alone."""

from __future__ import annotations

import pytest
import torch

from likewise.methods.joint import joint_program
from likewise.methods.pairwise import mns_program, pairwise_program
from likewise.methods.result import FitResult, MethodProgram
from likewise.training.scheduler import interleave, named, run_program
from tiny import QUICK, flat, tiny_problem, watched

RECIPE = QUICK.with_(epochs=3)


def programs() -> list[MethodProgram]:
    """Of different lengths and numbers of stages."""
    longer = RECIPE.with_(epochs=5)
    return [
        joint_program(tiny_problem(RECIPE, noise=0.2)[0]),
        mns_program(tiny_problem(RECIPE, noise=0.2)[0]),
        pairwise_program(tiny_problem(longer, per_item=4)[0], "mcl"),
        joint_program(tiny_problem(longer, noise=0.2, seed=3)[0]),
    ]


def same(one: FitResult, two: FitResult) -> bool:
    return (
        torch.equal(flat(one.model), flat(two.model))
        and one.history == two.history
        and one.method == two.method
    )


@pytest.fixture(scope="module")
def alone() -> list[FitResult]:
    return [run_program(program) for program in programs()]


@pytest.mark.parametrize("concurrency", [1, 2, 4, 9])
def test_side_by_side_is_one_after_the_other(alone: list[FitResult], concurrency: int) -> None:
    together = interleave(programs(), concurrency)
    assert [same(a, b) for a, b in zip(alone, together, strict=True)] == [True] * 4
    assert not same(alone[0], alone[3])


def test_results_come_in_order_and_are_told_as_they_end():
    told: list[tuple[int, str]] = []
    results = interleave(programs(), 4, lambda k, fitted: told.append((k, fitted.method)))
    assert [fitted.method for fitted in results] == ["joint", "mns", "mcl", "joint"]
    assert sorted(told) == [(0, "joint"), (1, "mns"), (2, "mcl"), (3, "joint")]
    order = [position for position, _ in told]
    assert order.index(0) < order.index(1)  # one stage ends before two


def test_what_ended_before_a_failure_is_not_lost():
    def failing():
        yield next(joint_program(tiny_problem(RECIPE.with_(epochs=6))[0]))
        raise RuntimeError("broken")

    told = []
    with pytest.raises(RuntimeError, match="broken"):
        interleave([programs()[0], failing()], 2, lambda k, fitted: told.append(k))
    assert told == [0]


def test_a_program_may_need_no_training():
    def thinker():
        return 42
        yield

    assert run_program(thinker()) == 42
    assert interleave([thinker(), thinker()], 1) == [42, 42]
    assert interleave([], 3) == []


def test_progress_is_told_of_each_epoch():
    rows = []
    run_program(programs()[0], rows.append)
    assert [row["epoch"] for row in rows][-1] >= 1
    assert all("held_out" in row for row in rows)


def test_runs_are_called_by_their_names():
    names: list[str] = []
    program = named(mns_program(tiny_problem(RECIPE)[0]), ["first", "second"])
    run_program(watched(program, lambda run: names.append(run.name)))
    assert names == ["first", "second"]
