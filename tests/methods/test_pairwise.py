"""The methods as programs: what each does with the same problem, and which one `auto` takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likewise.errors import InputError
from likewise.methods import dispatch
from likewise.methods.joint import joint_program
from likewise.methods.options import FitOptions
from likewise.methods.pairwise import (
    align,
    calibrate_start,
    estimate_transition,
    mns_program,
    pairwise_program,
    starting_point,
)
from likewise.methods.problem import Problem, check_judgements, is_exact
from likewise.methods.result import FitResult
from likewise.metrics import gram_error, matched_accuracy
from likewise.nn.model import logits_of
from likewise.noise import pair_flip, symmetric
from likewise.pairs import Pairs
from likewise.training.objectives.pairwise import CompletePairwise, PairwiseLoss
from likewise.training.recipe import Recipe
from likewise.training.scheduler import run_program
from tiny import QUICK, blobs, noisy, pictures, tiny_problem

CPU = torch.device("cpu")
LONGER = QUICK.with_(epochs=15)


def accuracy(fitted: FitResult) -> float:
    X, y = blobs()
    return matched_accuracy(logits_of(fitted.model, X, CPU).argmax(dim=1).numpy(), y)


# -- problems ------------------------------------------------------------------------------------


def test_the_split_is_made_once_and_by_the_seed():
    problem, _ = tiny_problem(held_out=0.25)
    train, held, train_pairs, held_pairs = problem.parts
    assert len(train) == 180
    assert len(held) == 60
    assert not set(train) & set(held)
    assert problem.parts is problem.parts
    assert train_pairs.n_items == 180
    assert held_pairs.n_items == 60
    again = tiny_problem(held_out=0.25)[0].parts[0]
    other = tiny_problem(held_out=0.25, seed=1)[0].parts[0]
    assert np.array_equal(train, again)
    assert not np.array_equal(train, other)


def test_components_are_the_c_largest_groups():
    pairs = Pairs([0, 1, 3, 5, 5], [1, 2, 4, 6, 0], [1, 1, 1, 1, 0], n_items=8)
    three = Problem(np.zeros((8, 2)), pairs, 3).components
    assert three.tolist() == [0, 0, 0, 1, 1, 2, 2, -1]
    two = Problem(np.zeros((8, 2)), pairs, 2).components
    assert two.tolist() == [0, 0, 0, 1, 1, -1, -1, -1]
    many = Problem(np.zeros((8, 2)), pairs, 6).components
    assert many.tolist() == three.tolist()  # an item alone is no group


def test_recipes_are_taken_changed_or_chosen():
    assert tiny_problem(QUICK)[0].recipe_for(joint=True) is QUICK
    X, y = pictures(size=16)
    problem = Problem(X, Pairs.from_labels(y), 2, recipe={"epochs": 2})
    assert problem.network_name == "lenet"
    assert problem.recipe_for(joint=True).epochs == 2
    assert problem.recipe_for(joint=True).optimizer == "sgd"
    assert problem.recipe_for(joint=False).optimizer == "adam"
    with pytest.raises(InputError, match="a recipe has no epoch"):
        Problem(X, Pairs.from_labels(y), 2, recipe={"epoch": 2}).recipe_for(joint=True)


def test_a_batch_size_given_for_listed_judgements_is_honoured():
    def steps(recipe) -> int:
        problem = Problem(X, pairs, 3, network="mlp", recipe=recipe)
        n_train = len(problem.parts[2])
        run = next(pairwise_program(problem, "mcl"))
        return n_train // run.batches.size

    X, y = blobs()
    pairs = Pairs.from_labels(y, 40, random_state=0)
    n_train = len(Problem(X, pairs, 3).parts[2])
    assert steps({"batch_size": 50}) == n_train // 50
    assert steps(Recipe(batch_size=70)) == n_train // 70
    assert steps(None) == steps({"epochs": 3}) == steps(Recipe()) == n_train // 1024


def test_items_that_are_on_the_device_already_are_used(generator):
    problem, _ = tiny_problem()
    resident = Problem(
        problem.items, problem.pairs, 3, recipe=QUICK, resident=torch.from_numpy(problem.items)
    )
    index = np.array([5, 2])
    assert torch.equal(resident.take(index), torch.from_numpy(problem.take(index)))
    one, two = (run_program(joint_program(p)) for p in (problem, resident))
    assert one.history == two.history


# -- programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mcl", "kcl"])
@pytest.mark.parametrize("per_item", [None, 8])
def test_pairwise_methods(kind, per_item):
    fitted = run_program(
        pairwise_program(tiny_problem(LONGER, per_item=per_item)[0], kind, None, 0.03)
    )
    assert fitted.method == kind
    assert fitted.transition is None
    assert accuracy(fitted) > 0.93
    assert {row["method"] for row in fitted.history} == {kind}


def test_mns_with_t_given():
    true = symmetric(3, 0.2)
    fitted = run_program(pairwise_program(tiny_problem(LONGER, noise=0.2)[0], "mns", true, 0.03))
    assert fitted.method == "mns"
    assert fitted.transition is true
    assert accuracy(fitted) > 0.9


@pytest.mark.parametrize("anchors", ["counts", "argmax", 0.97])
def test_mns_in_two_stages(anchors):
    fitted = run_program(mns_program(tiny_problem(LONGER, noise=0.2)[0], anchors, balance=0.03))
    assert [row["method"] for row in fitted.history] == ["mcl"] * 15 + ["mns"] * 15
    np.testing.assert_allclose(fitted.transition.sum(axis=1), 1, atol=1e-5)
    assert accuracy(fitted) > 0.85


def test_the_joint_method_finds_classes_and_t():
    X, y = blobs(n=1500)
    problem = Problem(X, Pairs.from_labels(noisy(y, 0.4)), 3, recipe=LONGER, held_out=0.3)
    fitted = run_program(joint_program(problem))
    predicted = logits_of(fitted.model, X, CPU).argmax(dim=1).numpy()
    assert matched_accuracy(predicted, y) > 0.95
    assert gram_error(fitted.transition, symmetric(3, 0.4)) < 0.15


def test_joint_with_t_given_leaves_it():
    true = pair_flip(3, 0.2)
    fitted = run_program(joint_program(tiny_problem(noise=0.0)[0], true))
    orders = [true, true.T]  # nothing flips here, so that one is as near as the other
    assert any(np.allclose(fitted.transition, order, atol=1e-6) for order in orders)


def test_fewer_than_two_groups_cannot_be_told_apart():
    pairs = Pairs.from_labels(np.zeros(12, np.int64))
    with pytest.raises(InputError, match="fewer than two groups"):
        next(joint_program(Problem(np.zeros((12, 2), np.float32), pairs, 2)))


# -- estimating T --------------------------------------------------------------------------------


class Perfect(nn.Module):
    """Says the class of a blob, rather surely."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x[:, :3]


@pytest.mark.parametrize("consistent", [True, False])
def test_t_is_estimated_from_held_out_judgements(consistent):
    X, y = blobs(n=1500, apart=5.0)
    z = noisy(y, 0.3)
    pairs = Pairs.from_labels(z) if consistent else Pairs.from_labels(z, 60, random_state=0)
    if not consistent:  # one contradiction is enough
        pairs = Pairs.concatenate(
            [pairs, Pairs(pairs.left[:1], pairs.right[:1], ~pairs.same[:1], n_items=1500)]
        )
    problem = Problem(X, pairs, 3, held_out=0.3)
    assert problem.pairs.is_consistent() is consistent
    found = estimate_transition(problem, Perfect())
    assert gram_error(found, symmetric(3, 0.3)) < 0.15


def test_anchors_must_be_known():
    with pytest.raises(InputError, match="anchors must be 'counts', 'argmax' or a quantile"):
        estimate_transition(tiny_problem()[0], Perfect(), "corners")


class OneClass(nn.Module):
    """Predicts the first of three classes, whatever it is shown."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([5.0, 0.0, 0.0]).expand(len(x), 3)


def test_a_lost_class_is_no_hindrance_where_merged_outputs_are_split():
    problem, _ = tiny_problem(recipe=QUICK.with_(split_merged_at=(0.5,)))
    assert isinstance(starting_point(problem, OneClass()), OneClass)


def test_stage_two_begins_as_sure_as_its_t_asks_for():
    """Behind a T, what stage 1 says of its items must be said with more confidence."""
    problem, _ = tiny_problem(LONGER, noise=0.4, seed=2)
    stage1 = run_program(pairwise_program(problem, "mcl", balance=0.03))
    start = starting_point(problem, stage1.model)
    _, held, train_pairs, held_pairs = problem.parts
    loss = PairwiseLoss("mns", torch.tensor(symmetric(3, 0.4), dtype=torch.float32))
    objective = CompletePairwise(loss, train_pairs, held_pairs, CPU)
    surer = calibrate_start(problem, start, objective)
    before = logits_of(start, problem.items[held], CPU)
    after = logits_of(surer, problem.items[held], CPU)
    assert (after / before).std() < 1e-4 < (after / before).mean() - 1
    grid = [objective.score(before / t) for t in np.linspace(0.1, 2, 60)]
    assert objective.score(after) < objective.score(before)
    assert objective.score(after) < 1.02 * min(grid)


def test_stage_two_goes_on_only_from_a_stage_one_with_all_classes():
    problem, _ = tiny_problem()
    assert starting_point(problem, OneClass()) is None
    model = nn.Sequential(nn.Linear(4, 3), Perfect()).requires_grad_(False)
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(3, 4))
    start = starting_point(problem, model)
    assert start is not model
    assert all(p.requires_grad for p in start.parameters())
    assert not any(p.requires_grad for p in model.parameters())


def test_components_are_renumbered_to_the_networks_classes():
    ids = np.array([0, 0, 1, 1, 2, -1])
    predicted = np.array([2, 2, 0, 0, 1, 1])
    assert align(ids, predicted, 3).tolist() == [2, 2, 0, 0, 1, -1]
    assert align(np.array([1, -1]), np.array([0, 2]), 3).tolist()[1] == -1


# -- choosing ------------------------------------------------------------------------------------


def fit(problem: Problem, method: str, transition="estimate", noise="auto") -> FitResult:
    return dispatch.fit(problem, method, FitOptions(transition, noise))


def test_auto_takes_joint_where_judgements_allow_and_says_why():
    fitted = fit(tiny_problem(QUICK)[0], "auto")
    assert fitted.method == "joint"
    assert fitted.choice == "joint: the judgements are consistent and cover 100% of the items"


@pytest.mark.parametrize("method", ["mcl", "kcl", "mns", "joint"])
def test_a_method_is_taken_as_asked(method):
    fitted = fit(tiny_problem(QUICK.with_(epochs=2))[0], method)
    assert fitted.method == method
    assert fitted.choice.startswith(f"{method}: ")


def test_mns_takes_the_t_it_is_given_and_none_is_mcl():
    problem = tiny_problem(QUICK.with_(epochs=2))[0]
    true = symmetric(3, 0.1)
    assert fit(problem, "mns", true).transition is true
    assert len(fit(problem, "mns", true).history) == 2
    np.testing.assert_array_equal(fit(problem, "joint", None).transition, np.eye(3))


@pytest.mark.parametrize(
    ("method", "transition", "message"),
    [
        ("em", None, "method must be one of auto, joint, mns, mcl, kcl, not 'em'"),
        ("mcl", "guess", "transition must be 'estimate', a matrix or None, not 'guess'"),
    ],
)
def test_what_cannot_be_asked_for(method, transition, message):
    with pytest.raises(InputError, match=message):
        fit(tiny_problem()[0], method, transition)


def test_exactness_is_explained():
    X = np.zeros((8, 2), np.float32)
    contradiction = Pairs([0, 1, 0], [1, 2, 2], [1, 1, 0], n_items=8)
    assert is_exact(Problem(X, contradiction, 2)) == (
        False,
        "some judgements contradict each other",
    )
    sparse = Pairs([0, 2], [1, 3], [1, 1], n_items=8)
    exact, why = is_exact(Problem(X, sparse, 2))
    assert not exact
    assert why == "the 2 largest groups cover only 50% of the items"
    assert is_exact(Problem(X, Pairs.from_labels(np.arange(8) % 2), 2))[0]


@pytest.mark.parametrize(
    ("pairs", "which", "message"),
    [
        (Pairs([], [], [], n_items=4), "given", "there is no judgement among the given items"),
        (Pairs([0, 1], [1, 2], [1, 1]), "given", "all 2 judgements among the given items say 'sam"),
        (Pairs([0, 1], [1, 2], [0, 0]), "training", "say 'different'; both kinds are needed"),
        (Pairs([], [], [], n_items=4), "held-out", "no judgement among the held-out items"),
    ],
)
def test_judgements_that_teach_nothing(pairs, which, message):
    with pytest.raises(InputError, match=message):
        check_judgements(pairs, which)


def test_held_out_judgements_may_be_of_one_kind():
    check_judgements(Pairs([0], [1], [1]), "held-out")


@pytest.mark.parametrize(
    ("n_classes", "message"),
    [
        (1, "at least two classes, but n_classes is 1"),
        (11, r"more classes \(11\) than items \(10\)"),
        (2.5, "must be a whole number or 'auto', not 2.5"),
        ("many", "must be a whole number or 'auto', not 'many'"),
    ],
)
def test_numbers_of_classes_that_cannot_be(n_classes, message):
    with pytest.raises(InputError, match=message):
        dispatch.number_of_classes(n_classes, Pairs.from_labels(np.arange(10) % 2), 10)


def test_the_number_of_classes_given_is_taken():
    assert dispatch.number_of_classes(3, Pairs.from_labels(np.arange(10) % 2), 10) == (3, None)
    assert dispatch.number_of_classes(np.int64(3), Pairs([0], [1], [1]), 10)[0] == 3
