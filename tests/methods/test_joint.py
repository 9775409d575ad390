"""The M-step of a joint fit: cross-fitted teachers, T from all of them, the student they teach."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise import SimilarityClassifier
from likewise.errors import InputError
from likewise.methods import joint, teachers
from likewise.methods.alignment import distance, lopsided
from likewise.methods.evidence import Evidence, find_evidence
from likewise.methods.joint import MOST_ROUNDS, evidence_program, joint_program
from likewise.methods.options import FitOptions
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, MethodProgram, last_stage
from likewise.methods.students import pooled
from likewise.methods.teachers import CrossFit, calibrated, cross_fit, fold_of_items
from likewise.metrics import matched_accuracy, transition_error
from likewise.nn.model import logits_of
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.noise.estimation import (
    TEMPERATURES,
    class_posterior,
    evidence_costs,
    held_out_transition,
    one_hot_evidence,
)
from likewise.pairs import Pairs
from likewise.runs import write_run
from likewise.training.checkpoints import Checkpoints
from likewise.training.objectives.forward_corrected import Distillation, ForwardCorrected
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from likewise.training.scheduler import interleave, named, run_program
from tiny import QUICK, blobs, flat, pictures, tiny_problem, watched

CPU = torch.device("cpu")
TWO = QUICK.with_(epochs=3, teachers=2)
GENERATIONS = TWO.with_(students=({"epochs": 2}, {"epochs": 4, "mixup": 0.5}))


def noisy_problem(recipe: Recipe = TWO, noise: float = 0.3) -> Problem:
    return tiny_problem(recipe, noise=noise)[0]


def evidence_of(problem: Problem) -> Tensor:
    return find_evidence(problem, "estimate", "auto").rows


def runs_of(
    problem: Problem, transition: NDArray[np.float64] | str | None = "estimate"
) -> tuple[list[TrainingRun], FitResult]:
    """The runs that are asked for, and what comes of them."""
    asked: list[TrainingRun] = []
    program = named(joint_program(problem, transition), ["cell"])
    fitted = run_program(watched(program, asked.append))
    return asked, fitted


def items_of(run: TrainingRun) -> NDArray[np.float32]:
    return run.batches.source.plain(torch.arange(len(run.batches.source))).numpy()


def crossed(problem: Problem, evidence: Tensor, fixed: Tensor | None = None) -> CrossFit:
    return run_program(cross_fit(problem, evidence, problem.recipe_for(joint=True), fixed))


# -- who is trained on what ----------------------------------------------------------------------


@pytest.mark.parametrize("teachers", [2, 3, 4])
def test_folds_are_even_and_every_item_is_in_one(teachers: int) -> None:
    problem = noisy_problem()
    folds = fold_of_items(problem, teachers)
    sizes = np.bincount(folds, minlength=teachers)
    assert sizes.sum() == 240
    assert np.ptp(sizes) <= 1
    np.testing.assert_array_equal(folds, fold_of_items(problem, teachers))


@pytest.mark.parametrize("teachers", [2, 3])
def test_each_teacher_sees_all_items_but_its_fold_and_is_stopped_on_that(teachers: int) -> None:
    problem = noisy_problem(TWO.with_(teachers=teachers))
    evidence, folds = evidence_of(problem), fold_of_items(problem, teachers)
    asked, _ = runs_of(problem)
    for fold, run in enumerate(asked[:-1]):
        assert type(run.objective) is ForwardCorrected
        np.testing.assert_array_equal(items_of(run), problem.items[folds != fold])
        np.testing.assert_array_equal(run.held_items.numpy(), problem.items[folds == fold])
        assert torch.equal(run.objective.evidence, evidence[folds != fold])
        assert torch.equal(run.objective.held_evidence, evidence[folds == fold])
    student = asked[-1]
    train, held = problem.parts[:2]
    assert type(student.objective) is Distillation
    np.testing.assert_array_equal(items_of(student), problem.items[train])
    np.testing.assert_array_equal(student.held_items.numpy(), problem.items[held])


def test_an_items_prediction_never_saw_its_judgements() -> None:
    """What is known of one fold scrambled, its own teacher learns the same; the other does not."""
    problem = noisy_problem()
    evidence, folds = evidence_of(problem), fold_of_items(problem, 2)
    scrambled = evidence.clone()
    scrambled[folds == 0] = evidence[folds == 0].roll(1, dims=1)
    T = torch.tensor(symmetric(3, 0.3), dtype=torch.float32)
    plain, other = crossed(problem, evidence, T), crossed(problem, scrambled, T)
    last = [[flat(fit.last_model) for fit in found.teachers] for found in (plain, other)]
    assert torch.equal(last[0][0], last[1][0])
    assert not torch.equal(last[0][1], last[1][1])


def test_out_of_fold_predictions_are_those_of_the_folds_own_teacher() -> None:
    problem = noisy_problem()
    evidence, folds = evidence_of(problem), fold_of_items(problem, 2)
    found = crossed(problem, evidence)
    logits = torch.empty(240, 3)
    for fold, teacher in enumerate(found.teachers):
        mine = np.flatnonzero(folds == fold)
        logits[mine] = logits_of(teacher.model, problem.items[mine], CPU)
    transition, temperature = held_out_transition(logits, evidence)  # of all items
    torch.testing.assert_close(found.transition, transition, atol=1e-5, rtol=1e-4)
    expected = (logits / temperature).log_softmax(dim=1)
    torch.testing.assert_close(found.log_g, expected, atol=1e-4, rtol=1e-4)


def test_no_two_begin_alike() -> None:
    weights: list[Tensor] = []
    seeds: list[int] = []

    def note(run: TrainingRun) -> None:
        weights.append(flat(run.model))
        seeds.append(run.batches.seed)

    run_program(watched(joint_program(noisy_problem(GENERATIONS)), note))
    assert len(set(seeds)) == len(weights) == 4
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(weights, 2))


# -- the student ---------------------------------------------------------------------------------


def test_the_student_learns_bayes_rule_on_what_teachers_found() -> None:
    problem = noisy_problem()
    evidence = evidence_of(problem)
    found = crossed(problem, evidence)
    asked, fitted = runs_of(problem)
    g, T = found.log_g.double().exp().numpy(), found.transition.double().numpy()
    z = evidence.argmax(dim=1).numpy()
    joint_of = g * T[:, z].T  # P(y | x) P(z | y)
    expected = joint_of / joint_of.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.posterior, expected, atol=1e-4)
    taught = asked[-1].objective
    assert isinstance(taught, Distillation)
    train = problem.parts[0]
    np.testing.assert_allclose(taught.posterior, expected[train], atol=1e-4)
    np.testing.assert_allclose(fitted.transition, T, atol=1e-5)
    assert len(taught.labelled) == len(train)


def test_the_student_learns_of_items_of_which_nothing_is_known() -> None:
    problem = noisy_problem()
    evidence = evidence_of(problem).clone()
    unknown = problem.parts[0][:30]
    evidence[unknown] = 0
    asked: list[TrainingRun] = []
    fitted = run_program(watched(evidence_program(problem, evidence), asked.append))
    assert sum(run.objective.n_rows for run in asked[:2]) == 240 - 30  # each in one of two folds
    assert asked[-1].objective.n_rows == len(problem.parts[0])
    found = crossed(problem, evidence)
    np.testing.assert_allclose(fitted.posterior[unknown], found.log_g[unknown].exp(), atol=1e-4)


@pytest.mark.parametrize("mixed", [False, True])
def test_taught_classes_are_learned_by_cross_entropy(mixed: bool) -> None:
    posterior = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5], [0.1, 0.1, 0.8]])
    evidence = one_hot_evidence(torch.tensor([0, -1, 2]), 3, torch.float32)
    objective = Distillation(posterior, evidence, evidence[:1], CPU)
    assert objective.n_rows == 3  # the unknown one is taught too
    logits = torch.tensor([[0.3, -1.0, 2.0], [1.0, 0.0, 0.5]])
    rows, partners = torch.tensor([0, 1]), torch.tensor([1, 2])
    target = posterior[[0, 1]]
    if mixed:
        share = torch.tensor(0.25)
        target = 0.25 * posterior[[0, 1]] + 0.75 * posterior[[1, 2]]
        found = objective.mixed_loss(logits, rows, partners, share)
    else:
        found = objective.loss(logits, rows)
    torch.testing.assert_close(found, torch.nn.functional.cross_entropy(logits, target))


def test_who_is_taught_by_others_does_not_teach_itself() -> None:
    asked, _ = runs_of(noisy_problem(TWO.with_(mean_teacher_from=0.2)))
    assert [run.planned.mean_teacher_from for run in asked] == [0.2, 0.2, None]


def test_the_network_that_is_kept_is_as_sure_as_held_out_items_ask_for() -> None:
    problem = noisy_problem(TWO.with_(mixup=1.0, students=({"epochs": 6},)))
    asked, fitted = runs_of(problem)
    held = problem.parts[1]
    plain = logits_of(asked[-1].select(), problem.items[held], CPU)
    evidence, T = evidence_of(problem)[held], torch.from_numpy(fitted.transition).float()
    costs = [float(evidence_costs(plain / t, T, evidence).mean()) for t in TEMPERATURES]
    best = TEMPERATURES[int(np.argmin(costs))]
    assert best < 1  # mixing has left it too unsure
    kept = logits_of(fitted.model, problem.items[held], CPU)
    torch.testing.assert_close(kept, plain / best, atol=1e-4, rtol=1e-4)


# -- generations of students ---------------------------------------------------------------------


def test_each_generation_learns_from_all_before_it() -> None:
    problem = noisy_problem(GENERATIONS)
    train = problem.parts[0]
    asked, fitted = runs_of(problem)
    kinds = [type(run.objective) for run in asked]
    assert kinds == [ForwardCorrected] * 2 + [Distillation] * 2
    assert [run.planned.epochs for run in asked] == [3, 3, 2, 4]
    assert [run.planned.mixup for run in asked] == [0, 0, 0, 0.5]
    evidence = evidence_of(problem)
    found = crossed(problem, evidence)
    first, last = asked[2].objective, asked[3].objective
    assert isinstance(first, Distillation)
    assert isinstance(last, Distillation)
    taught = class_posterior(found.log_g, found.transition, evidence)
    torch.testing.assert_close(first.posterior, taught[train], atol=1e-5, rtol=1e-4)
    student = calibrated(problem, asked[2], evidence, problem.parts[1]).model
    g = logits_of(student, problem.items, CPU).softmax(dim=1)
    both = torch.stack([found.log_g.exp(), g])
    pool = pooled(both, found.transition, evidence, problem.parts[1])
    taught = class_posterior(pool.log(), found.transition, evidence)
    torch.testing.assert_close(last.posterior, taught, atol=1e-5, rtol=1e-4)
    np.testing.assert_allclose(fitted.posterior, taught, atol=1e-5)


def test_networks_are_weighed_by_what_they_say_of_held_out_items() -> None:
    """As by the best of a fine grid; one that is right only where it was trained gets nothing."""
    rng = np.random.default_rng(0)
    T = torch.tensor(symmetric(3, 0.3), dtype=torch.float32)
    y = rng.integers(3, size=400)
    z = corrupt_labels(y, symmetric(3, 0.3), rng)
    evidence = one_hot_evidence(torch.from_numpy(z), 3, torch.float32)
    held = np.arange(300, 400)
    good, other = (torch.full((400, 3), 0.1) for _ in range(2))
    good[np.arange(400), np.where(rng.random(400) < 0.8, y, (y + 1) % 3)] = 0.8
    other[np.arange(400), np.where(rng.random(400) < 0.6, y, (y + 2) % 3)] = 0.8
    g = torch.stack([good, other])

    def cost(share: float) -> float:
        mixed = share * good[held] + (1 - share) * other[held]
        return -float((mixed @ T * evidence[held]).sum(dim=1).log().mean())

    best = min(np.linspace(0, 1, 201), key=cost)
    pool = pooled(g, T, evidence, held)
    torch.testing.assert_close(pool, best * good + (1 - best) * other, atol=5e-3, rtol=0)
    assert 0.5 < best < 1
    flat = torch.full((400, 3), 1 / 3)
    memorised = torch.where(torch.arange(400)[:, None] < 300, evidence, flat)
    pool = pooled(torch.stack([good, memorised]), T, evidence, held)
    assert float((pool[:300] - good[:300]).abs().max()) < 0.3


def test_the_last_of_several_learns_from_all_items_and_is_stopped_by_none() -> None:
    problem = noisy_problem(GENERATIONS)
    asked, fitted = runs_of(problem)
    before, last = asked[2], asked[3]
    assert len(items_of(before)) == len(problem.parts[0])
    np.testing.assert_array_equal(items_of(last), problem.items)
    assert fitted.best_epoch == 3
    # What only held-out items tell is the one's before it, which did not see them.
    held = problem.parts[1]
    honest = calibrated(problem, before, evidence_of(problem), held)
    assert fitted.score == honest.score == float(before.best.score)
    assert fitted.calibration_temperature == honest.calibration_temperature
    logits = logits_of(last.select(best=False), problem.items[held], CPU)
    torch.testing.assert_close(
        logits_of(fitted.model, problem.items[held], CPU),
        logits / fitted.calibration_temperature,
        atol=1e-4,
        rtol=1e-3,
    )


# -- teachers that know T ------------------------------------------------------------------------


@pytest.fixture
def found_in_turn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have cross-fits find these T, one after the other."""

    def plan(*transitions: NDArray[np.float64]) -> None:
        given: Iterator[NDArray[np.float64]] = iter(transitions)

        def found(*_: object) -> tuple[Tensor, Tensor]:
            return torch.tensor(next(given), dtype=torch.float32), torch.ones(())

        monkeypatch.setattr(teachers, "held_out_transition", found)
        monkeypatch.setattr(joint, "depends_on_items", lambda *_: None)  # by T and what it explains

    return plan


FLIPS = [pair_flip(3, rate) for rate in (0.1, 0.2, 0.3, 0.4, 0.45)]


@pytest.mark.parametrize(
    ("found", "rounds"),
    [
        ([symmetric(3, 0.5)], 1),  # nothing that they could not have known
        ([pair_flip(3, 0.02)], 1),
        ([FLIPS[2], FLIPS[2]], 2),  # it has settled
        ([FLIPS[0], FLIPS[2], FLIPS[2] + 0.001], 3),
        ([FLIPS[0], FLIPS[1], FLIPS[2], FLIPS[3], FLIPS[4]], 1 + MOST_ROUNDS),  # enough
    ],
)
def test_teachers_are_trained_anew_until_a_lopsided_t_settles(
    found_in_turn: Callable[..., None], found: list[NDArray[np.float64]], rounds: int
) -> None:
    found_in_turn(*found)
    asked, fitted = runs_of(noisy_problem(TWO.with_(epochs=1)))
    assert len(asked) == 2 * rounds + 1
    assert all(run.objective.estimating for run in asked[:2])
    for number, run in enumerate(asked[2:-1]):
        assert not run.objective.estimating
        through = found[number // 2]
        np.testing.assert_allclose(run.objective.transition, through, atol=1e-6)
    np.testing.assert_allclose(fitted.transition, found[rounds - 1], atol=1e-6)
    assert len({run.name for run in asked}) == len(asked)


def test_through_a_given_t_they_are_trained_once_more_and_it_stays(
    found_in_turn: Callable[..., None],
) -> None:
    order = [2, 0, 1]
    learned = np.array([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.3, 0.0, 0.7]])
    found_in_turn(learned + 0.01, learned - 0.01)
    asked, fitted = runs_of(noisy_problem(TWO.with_(epochs=1)), learned[np.ix_(order, order)])
    assert len(asked) == 5
    for run in asked[2:]:
        np.testing.assert_allclose(run.objective.transition, learned, atol=1e-6)
    np.testing.assert_allclose(fitted.transition, learned, atol=1e-6)


def test_a_given_t_that_was_read_in_the_wrong_order_is_read_again(
    found_in_turn: Callable[..., None],
) -> None:
    misled = ASYMMETRIC[np.ix_([1, 2, 0], [1, 2, 0])]
    found_in_turn(misled, ASYMMETRIC, ASYMMETRIC + 0.01)
    asked, fitted = runs_of(noisy_problem(TWO.with_(epochs=1)), ASYMMETRIC)
    assert len(asked) == 7
    for number, run in enumerate(asked[2:]):
        through = misled if number < 2 else ASYMMETRIC
        np.testing.assert_allclose(run.objective.transition, through, atol=1e-6)
    np.testing.assert_allclose(fitted.transition, ASYMMETRIC, atol=1e-6)


def test_symmetric_noise_that_is_given_asks_for_nobody_anew() -> None:
    asked, fitted = runs_of(noisy_problem(TWO.with_(epochs=1)), symmetric(3, 0.3))
    assert len(asked) == 3
    np.testing.assert_allclose(fitted.transition, symmetric(3, 0.3), atol=1e-6)


def test_t_that_came_with_the_evidence_is_trained_through_at_once() -> None:
    problem, T = noisy_problem(TWO.with_(epochs=1)), pair_flip(3, 0.2)
    asked: list[TrainingRun] = []
    program = evidence_program(problem, evidence_of(problem), estimated=T)
    run_program(watched(program, asked.append))
    assert len(asked) == 3
    for run in asked[:2]:
        assert not run.objective.estimating
        np.testing.assert_allclose(run.objective.transition, T, atol=1e-6)


def test_networks_that_taught_during_em_are_not_trained_again() -> None:
    problem, T = noisy_problem(TWO.with_(epochs=1)), pair_flip(3, 0.2)
    evidence = evidence_of(problem)
    log_g = torch.rand((240, 3), generator=torch.Generator().manual_seed(0)).log_softmax(dim=1)
    asked: list[TrainingRun] = []
    program = evidence_program(problem, evidence, estimated=T, log_g=log_g)
    fitted = run_program(watched(program, asked.append))
    (student,) = asked
    assert isinstance(student.objective, Distillation)
    expected = class_posterior(log_g, torch.as_tensor(T, dtype=torch.float32), evidence)
    np.testing.assert_allclose(fitted.posterior, expected, atol=1e-5)


def test_a_given_t_needs_teachers_although_em_has_taught() -> None:
    problem, T = noisy_problem(TWO.with_(epochs=1)), pair_flip(3, 0.2)
    log_g = torch.zeros(240, 3).log_softmax(dim=1)
    asked: list[TrainingRun] = []
    program = evidence_program(problem, evidence_of(problem), T, estimated=T, log_g=log_g)
    run_program(watched(program, asked.append))
    assert len(asked) == 3


def test_t_over_all_items_is_told_where_em_has_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = noisy_problem(TWO.with_(epochs=1))
    monkeypatch.setattr("likewise.methods.item_noise.UNEXPLAINED", -2.0)
    log_g = torch.zeros(240, 3).log_softmax(dim=1)
    told = evidence_of(problem), None, symmetric(3, 0.3), log_g
    assert run_program(evidence_program(problem, *told)).marginal_transition is not None


@pytest.mark.parametrize("images", [False, True])
def test_em_teaches_about_features_and_not_about_images(
    monkeypatch: pytest.MonkeyPatch, images: bool
) -> None:
    problem = noisy_problem(TWO.with_(epochs=1))
    if images:
        problem = dataclasses.replace(problem, items=problem.items[:, None])
    rows, log_g = evidence_of(problem), torch.zeros(240, 3).log_softmax(dim=1)
    found = Evidence(rows, "as told", transition=symmetric(3, 0.2), log_g=log_g)
    monkeypatch.setattr(joint, "find_evidence", lambda *_: found)
    told: list[Tensor | None] = []

    def program(*arguments: Tensor | None) -> MethodProgram:
        told.append(arguments[-1])
        yield from ()
        return FitResult("joint", nn.Identity(), nn.Identity(), None, [], 0, 0.0)

    monkeypatch.setattr(joint, "evidence_program", program)
    run_program(joint_program(problem))
    assert told == [None] if images else told[0] is log_g


def test_without_noise_perceived_is_true() -> None:
    asked, fitted = runs_of(noisy_problem(TWO.with_(epochs=1)), None)
    np.testing.assert_array_equal(fitted.transition, np.eye(3))
    assert len(asked) == 3


def test_where_answers_slip_alone_no_item_is_mistaken() -> None:
    """Where the graph decides as well: EM is not the only one to know the noise model."""
    problem, _ = tiny_problem(TWO.with_(epochs=1), noise=0.3, per_item=40)
    slips = np.random.default_rng(0).random(len(problem.pairs)) < 0.05
    pairs = problem.pairs.with_answers(problem.pairs.same ^ slips)
    problem = dataclasses.replace(problem, pairs=pairs)
    fitted = run_program(joint.joint_method(problem, FitOptions(noise="judgement")))
    assert fitted.transition is not None
    np.testing.assert_allclose(fitted.transition, np.eye(3), atol=0.01)
    both = run_program(joint.joint_method(problem, FitOptions(noise="both")))
    assert both.transition is not None
    assert both.transition.diagonal().max() < 0.95


def test_a_matrix_of_mistakes_and_no_mistakes_is_a_contradiction() -> None:
    options = FitOptions(transition=symmetric(3, 0.3), noise="judgement")
    with pytest.raises(InputError, match="take noise='both', or leave the matrix out"):
        joint.joint_method(noisy_problem(), options)
    joint.joint_method(noisy_problem(), FitOptions(transition=np.eye(3), noise="judgement"))


def test_how_lopsided() -> None:
    assert lopsided(torch.eye(4)) == 0
    assert lopsided(torch.tensor(symmetric(4, 0.6))) == pytest.approx(0, abs=1e-7)
    T = pair_flip(4, 0.3)  # .3 on one other class, where .1 on each of three would be even
    assert lopsided(torch.tensor(T)) == pytest.approx(0.2 + 2 * 0.1)
    assert distance(torch.eye(3), torch.tensor(symmetric(3, 0.3))) == pytest.approx(0.6)


ASYMMETRIC = np.array([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.3, 0.0, 0.7]])


@pytest.mark.parametrize(
    ("teachers", "order"),
    [
        *((0, order) for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0))),
        *(
            pytest.param(0, order, marks=pytest.mark.slow)
            for order in ((0, 2, 1), (2, 0, 1), (2, 1, 0))
        ),
        *((2, order) for order in ((1, 2, 0), (1, 0, 2))),
    ],
)
def test_a_given_t_may_know_its_classes_by_any_numbers(
    teachers: int, order: tuple[int, ...]
) -> None:
    X, y = blobs(n=600)
    z = corrupt_labels(y, ASYMMETRIC, 1)
    recipe = QUICK.with_(epochs=6, teachers=teachers)
    problem = Problem(X, Pairs.from_labels(z), 3, recipe=recipe)
    renumbered = ASYMMETRIC[np.ix_(order, order)]
    fitted = run_program(joint_program(problem, renumbered))
    place = np.zeros(3, int)  # components are numbered anew: which is which perceived class
    place[problem.components] = z
    expected = ASYMMETRIC[np.ix_(place, place)]
    np.testing.assert_allclose(fitted.transition, expected, atol=1e-6)
    predicted = logits_of(fitted.model, X, CPU).argmax(dim=1).numpy()
    assert matched_accuracy(predicted, y) > 0.93


# -- without teachers ----------------------------------------------------------------------------


@pytest.mark.parametrize("teachers", [0, 1])
def test_one_network_holds_out_items_of_its_own(teachers: int) -> None:
    problem = noisy_problem(TWO.with_(teachers=teachers))
    asked, fitted = runs_of(problem)
    assert len(asked) == 1
    np.testing.assert_array_equal(items_of(asked[0]), problem.items[problem.parts[0]])
    assert fitted.score == float(asked[0].best.score)
    assert fitted.judgements_held_out


def test_teachers_have_seen_all_judgements_between_them() -> None:
    assert not runs_of(noisy_problem(TWO.with_(epochs=1)))[1].judgements_held_out


def test_fewer_than_two_groups_cannot_be_told_apart() -> None:
    evidence = torch.zeros(240, 3)
    evidence[:, 1] = 1
    with pytest.raises(InputError, match="fewer than two groups"):
        next(evidence_program(noisy_problem(), evidence))


def test_a_negative_number_of_teachers_is_refused() -> None:
    with pytest.raises(InputError, match="teachers"):
        QUICK.with_(teachers=-1)


# -- soft evidence -------------------------------------------------------------------------------


def test_it_learns_from_evidence_that_is_soft() -> None:
    X, y = blobs(n=900, apart=4.0)
    rng = np.random.default_rng(0)
    z = corrupt_labels(y, symmetric(3, 0.3), rng)
    answer = corrupt_labels(z, symmetric(3, 0.2), rng)  # one that slips, of known rate
    evidence = torch.tensor(symmetric(3, 0.2)[answer], dtype=torch.float32)
    problem = Problem(X, Pairs.from_labels(z), 3, recipe=QUICK.with_(teachers=2))
    fitted = run_program(evidence_program(problem, evidence))
    predicted = logits_of(fitted.model, X, CPU).argmax(dim=1).numpy()
    assert matched_accuracy(predicted, y) > 0.97
    assert transition_error(fitted.transition, symmetric(3, 0.3)) < 0.2


def test_flat_evidence_of_an_item_is_as_none_to_its_network() -> None:
    problem = noisy_problem(TWO.with_(teachers=0))
    none, even = evidence_of(problem).clone(), evidence_of(problem).clone()
    none[:40], even[:40] = 0, 1 / 3
    T = torch.eye(3).numpy()
    models = [
        run_program(evidence_program(problem, rows, estimated=T)).last_model
        for rows in (none, even)
    ]
    assert torch.equal(flat(models[0]), flat(models[1]))


# -- what is told and kept -----------------------------------------------------------------------


def test_names_of_the_parts() -> None:
    asked, _ = runs_of(noisy_problem(GENERATIONS))
    names = ["cell", *(f"cell-part-{number}" for number in range(3))]
    assert [run.name for run in asked] == names


def test_the_history_ends_with_the_student() -> None:
    asked, fitted = runs_of(noisy_problem())
    kept = [row["held_out"] for row in last_stage(fitted.history)]
    assert kept == [row["held_out"] for row in asked[-1].history]
    named_in_turn = list(dict.fromkeys(row["method"] for row in fitted.history))
    assert named_in_turn == ["teacher 1", "teacher 2", "joint"]
    assert fitted.score == float(asked[-1].best.score)
    assert fitted.best_epoch == int(asked[-1].best.epoch)
    assert fitted.choice.startswith("joint: the judgements are consistent")


def test_a_run_tells_the_epochs_of_the_network_that_was_kept(tmp_path: Path) -> None:
    problem = noisy_problem()
    recipe = TWO.with_(students=({"epochs": 4},))
    classifier = SimilarityClassifier(3, recipe=recipe.to_dict(), verbose=False)
    classifier.fit(problem.items, problem.pairs)
    assert len(classifier.history_) == 3 + 3 + 4
    run = write_run(tmp_path / "run", classifier, problem.items, problem.pairs, config={})
    assert run.metrics["epochs"] == 4


@pytest.mark.parametrize("flip", [False, True])
def test_pictures_are_seen_from_both_sides_where_they_were_in_training(flip: bool) -> None:
    images, y = pictures(size=16)
    recipe = QUICK.with_(epochs=2, flip=flip, mixup=0.5, teachers=2)
    asked, fitted = runs_of(Problem(images, Pairs.from_labels(y), 2, "lenet", recipe))
    assert len(asked) >= 3  # two teachers and a student, and teachers anew where T is lopsided
    assert all(run.model.flip_tta is flip for run in asked)
    assert fitted.model.flip_tta is flip
    features, _ = runs_of(noisy_problem(TWO.with_(epochs=1, flip=True)))
    assert not any(run.model.flip_tta for run in features)


# -- killed and resumed --------------------------------------------------------------------------


class Cut(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("during", range(4))
def test_a_fit_that_was_cut_short_goes_on_to_the_same_end(tmp_path: Path, during: int) -> None:
    whole = run_program(joint_program(noisy_problem(GENERATIONS)))
    checkpoints = Checkpoints(tmp_path, every_epochs=1)
    begun: list[TrainingRun] = []

    def kill(_: dict[str, float]) -> None:
        if len(begun) == during + 1:
            raise Cut

    program = watched(joint_program(noisy_problem(GENERATIONS)), begun.append)
    with pytest.raises(Cut):
        run_program(program, kill, checkpoints)
    assert len(begun) == during + 1
    resumed = run_program(joint_program(noisy_problem(GENERATIONS)), None, checkpoints)
    assert torch.equal(flat(resumed.model), flat(whole.model))
    np.testing.assert_array_equal(resumed.posterior, whole.posterior)
    np.testing.assert_array_equal(resumed.transition, whole.transition)
    assert resumed.history == whole.history


def test_the_checkpoints_of_all_parts_are_forgotten_together(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "kept", every_epochs=1)
    program = named(joint_program(noisy_problem()), ["cell"])
    interleave([program], 1, checkpoints=checkpoints)
    assert len({path.name.split(".")[0] for path in (tmp_path / "kept").iterdir()}) == 3
    checkpoints.forget("cell")
    assert not (tmp_path / "kept").exists()


# -- whether a network has learned what EM had found ----------------------------------------------


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], False),
        ([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], True),  # two classes as one
        ([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]], True),  # hardly anything kept
    ],
)
def test_a_network_that_takes_two_classes_for_one_has_not_learned(
    kept: list[list[float]], expected: bool
) -> None:
    posterior = np.eye(3, dtype=np.float32)
    found = Evidence(
        torch.eye(3), "", posterior=posterior, transition=np.full((3, 3), 0.02) + 0.94 * np.eye(3)
    )
    model = nn.Identity()
    fitted = FitResult(
        "joint",
        model,
        model,
        np.array(kept),
        history=[],
        best_epoch=0,
        score=0.0,
        posterior=posterior,
    )
    assert joint._did_not_learn(fitted, found) == expected
