"""Networks trained first, and the one that learns what they have found out together."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from likewise import SimilarityClassifier, exact_joint
from likewise.errors import InputError
from likewise.methods.joint import costs_of, joint_program, shared_posterior
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, last_stage
from likewise.nn.model import logits_of
from likewise.noise import symmetric
from likewise.pairs import Pairs
from likewise.runs import write_run
from likewise.training.checkpoints import Checkpoints
from likewise.training.objectives.forward_corrected import Distillation, ForwardCorrected
from likewise.training.run import TrainingRun
from likewise.training.scheduler import interleave, named, run_program
from tiny import QUICK, flat, pictures, tiny_problem, watched

CPU = torch.device("cpu")
TWO = QUICK.with_(epochs=3, teachers=2)


def runs_of(
    problem: Problem, transition: NDArray[np.float64] | None = None
) -> tuple[list[TrainingRun], list[str], FitResult]:
    """The runs that are asked for, their names, and what comes of them."""
    asked: list[TrainingRun] = []
    program = named(joint_program(problem, transition), ["cell"])
    fitted = run_program(watched(program, asked.append))
    return asked, [run.name for run in asked], fitted


def test_each_begins_for_itself_and_the_last_is_taught() -> None:
    asked, names, fitted = runs_of(tiny_problem(TWO, noise=0.3)[0])
    assert [type(run.objective) for run in asked] == [
        ForwardCorrected,
        ForwardCorrected,
        Distillation,
    ]
    assert names == ["cell", "cell-part-0", "cell-part-1"]
    assert len({run.batches.seed for run in asked}) == 3
    assert fitted.score in [float(run.best.score) for run in asked]


def test_no_two_begin_with_the_same_weights() -> None:
    weights: list[torch.Tensor] = []
    program = joint_program(tiny_problem(TWO, noise=0.3)[0])
    run_program(watched(program, lambda run: weights.append(flat(run.model))))
    assert len(weights) == 3
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(weights, 2))


def test_who_is_taught_by_others_does_not_teach_itself() -> None:
    recipe = TWO.with_(mean_teacher_from=0.2, teachers=1)
    asked, _, _ = runs_of(tiny_problem(recipe, noise=0.3)[0])
    assert [run.distillation for run in asked] == [True, False]


def test_the_first_is_the_plain_one() -> None:
    plain = run_program(joint_program(tiny_problem(TWO.with_(teachers=0), noise=0.3)[0]))
    asked, _, _ = runs_of(tiny_problem(TWO, noise=0.3)[0])
    assert float(asked[0].best.score) == plain.score


def test_held_out_costs_are_those_that_epochs_are_chosen_by() -> None:
    problem, _ = tiny_problem(QUICK.with_(mixup=1.0), noise=0.3)
    fitted = run_program(joint_program(problem))
    assert float(costs_of(problem, fitted).mean()) == pytest.approx(fitted.score, rel=1e-5)


@pytest.mark.parametrize(
    ("costs", "kept"),
    [
        ([[1.0, 1.0, 1.0, 1.0], [0.9, 0.9, 0.9, 0.9]], 1),
        ([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 2.0, 0.1]], 1),  # no worse, and so unequal
        ([[1.0, 1.0, 1.0, 1.0], [4.0, 0.5, 0.5, 0.5]], 1),  # worse by less than the error
        ([[1.0, 1.0, 1.0, 1.0], [1.3, 1.2, 1.3, 1.2]], 0),  # surely worse, though not by much
        ([[1.0, 1.0, 1.0, 1.0], [0.5, 0.6, 0.5, 0.6], [0.7, 0.8, 0.7, 0.7]], 1),
    ],
)
def test_who_was_taught_is_kept_unless_it_is_surely_worse(monkeypatch, costs, kept) -> None:
    problem, _ = tiny_problem(QUICK.with_(epochs=1, teachers=len(costs) - 1), noise=0.3)
    given = iter(costs)
    monkeypatch.setattr(exact_joint, "costs_of", lambda *_: torch.tensor(next(given)))
    asked, _, fitted = runs_of(problem)
    assert fitted.score == float(asked[kept].best.score)
    others = [f"teacher {k}" for k in range(1, len(costs))] + ["taught"]
    del others[kept]
    assert list(dict.fromkeys(row["method"] for row in fitted.history)) == [*others, "joint"]


def test_what_they_share_is_bayes_rule_on_their_mean_belief() -> None:
    problem, _ = tiny_problem(TWO, noise=0.3)
    recipes = (QUICK, QUICK.with_(epochs=1))
    fits = [run_program(joint_program(tiny_problem(r, noise=0.3)[0])) for r in recipes]
    found = shared_posterior(problem, fits)
    train = problem.parts[0]
    ids = problem.components[train]
    beliefs = [
        torch.softmax(logits_of(f.model, problem.items[train], CPU).double(), dim=1).numpy()
        for f in fits
    ]
    mean_belief, mean_t = sum(beliefs) / 2, sum(np.asarray(f.transition) for f in fits) / 2
    for i in range(len(train)):
        joint = [mean_belief[i][c] * mean_t[c][ids[i]] for c in range(3)]
        np.testing.assert_allclose(found[i], np.array(joint) / sum(joint), rtol=1e-4)


def test_an_item_nobody_knows_the_perceived_class_of_is_as_believed() -> None:
    problem, _ = tiny_problem(TWO, noise=0.3)
    fit = run_program(joint_program(tiny_problem(QUICK, noise=0.3)[0]))
    problem.components[problem.parts[0][7]] = -1
    found = shared_posterior(problem, [fit])[7]
    believed = logits_of(fit.model, problem.items[problem.parts[0][[7]]], CPU).softmax(dim=1)[0]
    torch.testing.assert_close(found, believed)


@pytest.mark.parametrize("mixed", [False, True])
def test_taught_classes_are_learned_by_cross_entropy(mixed: bool) -> None:
    posterior = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5], [0.1, 0.1, 0.8]])
    ids = np.array([0, -1, 2])  # the second item is no row: its perceived class is unknown
    objective = Distillation(ids, np.array([0]), posterior, CPU)
    logits = torch.tensor([[0.3, -1.0, 2.0], [1.0, 0.0, 0.5]])
    rows, partners = torch.tensor([0, 1]), torch.tensor([1, 0])
    target = posterior[[0, 2]]
    if mixed:
        share = torch.tensor(0.25)
        target = 0.25 * posterior[[0, 2]] + 0.75 * posterior[[2, 0]]
        found = objective.mixed_loss(logits, rows, partners, share)
    else:
        found = objective.loss(logits, rows)
    expected = torch.nn.functional.cross_entropy(logits, target)
    torch.testing.assert_close(found, expected)


def test_high_noise_alone_may_ask_for_them() -> None:
    loud = QUICK.with_(epochs=10, high_noise={"teachers": 1})
    asked, _, _ = runs_of(tiny_problem(loud, noise=0.6)[0], symmetric(3, 0.6))
    assert [run.adapted for run in asked] == [True, False]
    quiet, _, _ = runs_of(tiny_problem(loud, noise=0.2)[0], symmetric(3, 0.2))
    assert len(quiet) == 1


def test_the_history_ends_with_the_one_that_was_kept() -> None:
    asked, _, fitted = runs_of(tiny_problem(TWO, noise=0.3)[0])
    best = next(run for run in asked if float(run.best.score) == fitted.score)
    kept = [row["held_out"] for row in last_stage(fitted.history)]
    assert kept == [row["held_out"] for row in best.history]


def test_a_run_tells_the_epochs_of_the_network_that_was_kept(tmp_path: Path) -> None:
    problem, _ = tiny_problem(noise=0.3)
    classifier = SimilarityClassifier(3, recipe=TWO.to_dict(), verbose=False)
    classifier.fit(problem.items, problem.pairs)
    assert len(classifier.history_) == 9
    run = write_run(tmp_path / "run", classifier, problem.items, problem.pairs, config={})
    assert run.metrics["epochs"] == 3


def test_pictures_are_seen_from_both_sides() -> None:
    images, y = pictures(size=16)
    recipe = QUICK.with_(epochs=2, flip=True, mixup=0.5, teachers=1)
    problem = Problem(images, Pairs.from_labels(y), 2, "lenet", recipe)
    asked, _, fitted = runs_of(problem)
    assert len(asked) == 2
    assert fitted.model.flip_tta


class Cut(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("during", [0, 1, 2])
def test_a_fit_that_was_cut_short_goes_on_to_the_same_end(tmp_path: Path, during: int) -> None:
    whole = run_program(joint_program(tiny_problem(TWO, noise=0.3)[0]))
    checkpoints = Checkpoints(tmp_path, every_epochs=1)
    seen: list[dict[str, float]] = []

    def kill(row: dict[str, float]) -> None:
        seen.append(row)
        if len(seen) == 2 * during + 1:  # figures come an epoch late: two calls in three epochs
            raise Cut

    with pytest.raises(Cut):
        run_program(joint_program(tiny_problem(TWO, noise=0.3)[0]), kill, checkpoints)
    resumed = run_program(joint_program(tiny_problem(TWO, noise=0.3)[0]), None, checkpoints)
    assert torch.equal(flat(resumed.model), flat(whole.model))
    assert resumed.history == whole.history


def test_the_checkpoints_of_all_parts_are_forgotten_together(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "kept", every_epochs=1)
    program = named(joint_program(tiny_problem(TWO, noise=0.3)[0]), ["cell"])
    interleave([program], 1, checkpoints=checkpoints)
    assert len({path.name.split(".")[0] for path in (tmp_path / "kept").iterdir()}) == 3
    checkpoints.forget("cell")
    assert not (tmp_path / "kept").exists()


def test_a_negative_number_of_them_is_refused() -> None:
    with pytest.raises(InputError, match="teachers"):
        QUICK.with_(teachers=-1)
