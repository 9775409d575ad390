"""The training loop: it learns, repeats itself bit for bit, and selects by held-out judgements."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from likewise.errors import InputError, TrainingError
from likewise.methods.joint import joint_program
from likewise.methods.pairwise import pairwise_program
from likewise.methods.problem import Problem
from likewise.metrics import matched_accuracy
from likewise.nn.model import InputLayer, Model, logits_of
from likewise.nn.networks import NETWORKS
from likewise.noise.estimation import one_hot_evidence
from likewise.pairs import Pairs
from likewise.training.devices import choose_device, on_device
from likewise.training.objectives.forward_corrected import ForwardCorrected
from likewise.training.objectives.pairwise import CompletePairwise, ListedPairwise, PairwiseLoss
from likewise.training.recipe import FEATURES, JOINT, PAPER, Recipe, default_recipe
from likewise.training.run import TrainingRun
from tiny import QUICK, blobs, flat, noisy, pictures, tiny_problem

CPU = torch.device("cpu")
TESTS = Path(__file__).parents[1]

VARIANTS = {
    "adam": QUICK,
    "no averaging": QUICK.with_(ema_decay=0.0),
    "sgd": QUICK.with_(optimizer="sgd", lr=0.1, weight_decay=1e-4),
    "plain sgd": QUICK.with_(optimizer="sgd", lr=0.3, momentum=0.0),
    "steps": QUICK.with_(schedule="step", milestones=(0.5, 0.75)),
    "warm-up": QUICK.with_(warmup=0.2),
    "mixup": QUICK.with_(mixup=0.5),
    "teacher": QUICK.with_(mean_teacher_from=0.5),
    "calibrated teacher": QUICK.with_(
        mixup=0.5, mean_teacher_from=0.3, mean_teacher_temperature=None
    ),
    "mixup and teacher": QUICK.with_(
        mixup=0.5, mean_teacher_from=0.3, mean_teacher_temperature=(1.0, 0.5)
    ),
}
every_variant = pytest.mark.parametrize("recipe", VARIANTS.values(), ids=VARIANTS)


def known_classes(ids: np.ndarray) -> torch.Tensor:
    """Evidence of known perceived classes; -1 is unknown."""
    return one_hot_evidence(torch.from_numpy(ids), 3, torch.float32)


def joint_run(recipe: Recipe = QUICK, **options) -> TrainingRun:
    return next(joint_program(tiny_problem(recipe, **options)[0]))


def accuracy(run: TrainingRun) -> float:
    X, y = blobs()
    return matched_accuracy(logits_of(run.select(), X, CPU).argmax(dim=1).numpy(), y)


# -- it learns -----------------------------------------------------------------------------------


@every_variant
def test_every_way_of_training_learns(recipe):
    run = joint_run(recipe, noise=0.2)
    run.train()
    assert run.finished
    assert accuracy(run) > 0.93
    assert run.history[-1]["held_out"] < run.history[0]["held_out"]


@pytest.mark.parametrize("kind", ["mcl", "kcl"])
@pytest.mark.parametrize(  # of listed ones, tests/methods/test_pairwise.py sees that they learn
    "per_item", [None, pytest.param(20, marks=pytest.mark.slow)]
)
def test_pairwise_objectives_learn(kind, per_item):
    recipe = QUICK.with_(epochs=15)
    run = next(pairwise_program(tiny_problem(recipe, per_item=per_item)[0], kind, balance=0.03))
    run.train()
    assert accuracy(run) > 0.93


def test_images_are_moved_while_they_are_learned():
    X, y = pictures(size=16)
    recipe = QUICK.with_(shift=1, flip=True, mixup=0.3, mean_teacher_from=0.5, lr=0.002)
    problem = Problem(X, Pairs.from_labels(y), 2, network="lenet", recipe=recipe)
    run = next(joint_program(problem))
    run.train()
    assert run.batches.source.items.dtype == torch.uint8  # as they came
    assert matched_accuracy(logits_of(run.select(), X, CPU).argmax(dim=1).numpy(), y) > 0.95


# -- it repeats itself ---------------------------------------------------------------------------


@every_variant
def test_same_seed_same_model_bit_for_bit(recipe):
    recipe = recipe.with_(epochs=4)
    runs = [joint_run(recipe, noise=0.3) for _ in range(2)]
    for run in runs:
        torch.manual_seed(id(run) % 1000)  # the global generator must not matter
        run.train()
    assert torch.equal(flat(runs[0].select()), flat(runs[1].select()))
    assert runs[0].history == runs[1].history
    other = joint_run(recipe, noise=0.3, seed=1)
    other.train()
    assert not torch.equal(flat(runs[0].select()), flat(other.select()))


def digest() -> str:
    """Of every parameter of a run that uses all there is."""
    run = joint_run(VARIANTS["mixup and teacher"], noise=0.3)
    run.train()
    return hashlib.sha256(flat(run.select()).numpy().tobytes()).hexdigest()


@pytest.mark.slow  # tests/runs/test_two_processes.py does so through the command line
def test_same_seed_same_model_in_another_process():
    script = (
        f"import sys; sys.path[:0] = {[str(TESTS), str(TESTS / 'training')]}\n"
        "import torch; torch.set_num_threads(1); import test_training as t; print(t.digest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert other.stdout.strip() == digest()


@every_variant
def test_a_snapshot_resumes_exactly(recipe):
    stop_after = 3
    whole = joint_run(recipe, noise=0.3)
    whole.train()
    first = joint_run(recipe, noise=0.3)
    for _ in range(stop_after):
        first.begin_epoch()
        for _ in range(first.steps_per_epoch):
            first.step()
        first.end_epoch()
    first.log.flush()
    second = joint_run(recipe, noise=0.3)
    second.resume(first.snapshot(), stop_after, first.history)
    second.train()
    assert torch.equal(flat(second.select()), flat(whole.select()))
    assert torch.equal(flat(second.select(best=False)), flat(whole.select(best=False)))
    assert second.history == whole.history


def test_a_snapshot_is_a_copy_and_restoring_goes_back():
    run = joint_run()
    before = run.snapshot()
    start = flat(run.model).clone()
    run.begin_epoch()
    run.step()
    assert not torch.equal(flat(run.model), start)
    assert torch.equal(before["model.network.1.weight"], run.snapshot()["best.weights.2"])
    run.restore(before)
    assert torch.equal(flat(run.model), start)
    assert int(run.counter.in_epoch) == int(run.counter.in_run) == 0
    moments = [v for k, v in run.snapshot().items() if k.startswith("updater.optimizer.")]
    assert moments
    assert not any(bool(v.any()) for v in moments)


# -- selection -----------------------------------------------------------------------------------


def test_the_best_epoch_is_that_of_the_lowest_held_out_cost():
    run = joint_run(QUICK.with_(lr=0.05, schedule="step", ema_decay=0.0), noise=0.5)
    kept = []
    while not run.finished:
        run.begin_epoch()
        for _ in range(run.steps_per_epoch):
            run.step()
        run.end_epoch()
        kept.append(flat(run.model).clone())
    costs = [row["held_out"] for row in run.history]
    assert int(run.best.epoch) == int(np.argmin(costs))
    assert float(run.best.score) == pytest.approx(min(costs))
    assert torch.equal(flat(run.select()), kept[int(run.best.epoch)])
    assert torch.equal(flat(run.select(best=False)), kept[-1])
    assert int(run.best.epoch) < 7  # otherwise this shows nothing


def test_held_out_items_are_never_trained_on():
    """Nothing but selection depends on them: their classes scrambled, the weights are the same."""
    X, y = blobs()
    items, held = X[:200], X[200:]
    recipe = QUICK.with_(ema_decay=0.0)

    def train(held_ids: np.ndarray) -> TrainingRun:
        evidence, held_evidence = known_classes(y[:200]), known_classes(held_ids)
        torch.manual_seed(0)
        model = Model(InputLayer.fit(items), nn.Linear(4, 3))
        objective = ForwardCorrected(evidence, held_evidence, CPU, torch.eye(3))
        run = TrainingRun(model, items, held, objective, recipe)
        run.train()
        return run

    right, scrambled = train(y[200:]), train(np.roll(y[200:], 1))
    assert torch.equal(flat(right.select(best=False)), flat(scrambled.select(best=False)))
    assert float(right.best.score) < float(scrambled.best.score)


def test_a_selected_model_is_ready_for_prediction():
    run = joint_run()
    run.train()
    chosen = run.select()
    assert not chosen.training
    assert not any(p.requires_grad for p in chosen.parameters())
    assert chosen is not run.model


# -- schedules and averages ----------------------------------------------------------------------


def rates(recipe: Recipe) -> np.ndarray:
    return joint_run(recipe).updater.rates.double().numpy()


def test_step_schedule_drops_at_its_milestones():
    table = rates(QUICK.with_(schedule="step", milestones=(0.5, 0.75), gamma=0.1, lr=0.02))
    by_epoch = table.reshape(8, -1)
    np.testing.assert_allclose(by_epoch[:4], 0.02, rtol=1e-6)
    np.testing.assert_allclose(by_epoch[4:6], 0.002, rtol=1e-6)
    np.testing.assert_allclose(by_epoch[6:], 0.0002, rtol=1e-6)


def test_cosine_schedule_goes_from_the_rate_to_nothing():
    table = rates(QUICK)
    total = len(table)
    expected = 0.02 * 0.5 * (1 + np.cos(np.pi * np.arange(total) / total))
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_warm_up_rises_evenly(schedule):
    table = rates(QUICK.with_(warmup=0.5, schedule=schedule))
    half = len(table) // 2
    np.testing.assert_allclose(table[:half], 0.02 * np.arange(1, half + 1) / half, rtol=1e-5)
    assert table[half:].max() == pytest.approx(0.02, rel=1e-3)


def test_the_history_says_the_rate_that_was_used():
    run = joint_run(QUICK.with_(epochs=3))
    run.train()
    expected = run.updater.rates.reshape(3, -1)[:, -1].tolist()
    assert [row["lr"] for row in run.history] == pytest.approx(expected)
    assert [row["epoch"] for row in run.history] == [0, 1, 2]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_rate_reaches_the_optimiser(optimizer):
    run = joint_run(QUICK.with_(optimizer=optimizer))
    run.begin_epoch()
    for step in range(3):
        run.step()
        assert float(run.updater.optimizer.param_groups[0]["lr"]) == pytest.approx(
            float(run.updater.rates[step])
        )


def test_averaged_weights_are_the_running_mean():
    run = joint_run(QUICK.with_(epochs=2, ema_decay=0.6))
    expected = flat(run.ema).clone()
    run.begin_epoch()
    for step in range(run.steps_per_epoch):
        run.step()
        decay = min(0.6, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * flat(run.model)
    torch.testing.assert_close(flat(run.ema), expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(flat(run.ema), flat(run.model))


# -- what stops it -------------------------------------------------------------------------------


def test_a_loss_that_is_not_finite_stops_the_run():
    run = joint_run(QUICK.with_(optimizer="sgd", lr=1e30))
    with pytest.raises(TrainingError, match=r"a lower learning rate than 1e\+30 usually helps"):
        run.train()


def test_a_step_needs_an_epoch():
    with pytest.raises(TrainingError, match=r"begin_epoch\(\) must come before"):
        joint_run().step()


# -- objectives ----------------------------------------------------------------------------------


def test_complete_and_listed_pairs_are_one_objective(generator):
    """All pairs as a partition, and as a list: the same loss, unless pairs (i, i) count."""
    y = np.array([0, 1, 1, 2, 0])
    logits = torch.randn(5, 3, generator=generator)
    loss = PairwiseLoss("mcl")
    pairs = Pairs.from_labels(y)
    complete = CompletePairwise(loss, pairs, pairs, CPU)
    listed = ListedPairwise(loss, pairs.explicit(), pairs.explicit(), CPU, batch=10)
    rows = torch.arange(10)
    assert torch.equal(listed.items_of(rows), torch.arange(5))
    cost = listed.loss(logits, rows)
    torch.testing.assert_close(complete.loss(logits, torch.arange(5)), cost)
    torch.testing.assert_close(listed.score(logits), cost)
    torch.testing.assert_close(complete.score(logits), cost)
    plain = CompletePairwise(PairwiseLoss("mcl", self_pairs=True), pairs, pairs, CPU)
    p = logits.softmax(dim=1)
    with_itself = -(p * p).sum(dim=1).log().sum()
    found = plain.loss(logits, torch.arange(5))
    torch.testing.assert_close(found, (20 * cost + with_itself) / 25)


def test_listed_pairs_forward_the_items_that_they_name(generator):
    pairs = Pairs([0, 50, 7], [99, 3, 8], [1, 0, 1], weight=[1.0, 2.0, 0.0], n_items=100)
    few = ListedPairwise(PairwiseLoss("mcl"), pairs, pairs, CPU, batch=3)
    rows = torch.tensor([2, 0])
    assert few.items_of(rows).tolist() == [7, 0, 8, 99]
    everyone = ListedPairwise(PairwiseLoss("mcl"), pairs, pairs, CPU, batch=50)
    logits = torch.randn(100, 4, generator=generator)
    expected = everyone.loss(logits, rows)
    torch.testing.assert_close(few.loss(logits[few.items_of(rows)], rows), expected)
    p = logits.softmax(dim=1)
    torch.testing.assert_close(expected, -(p[0] * p[99]).sum().log())  # the other weighs nothing


@pytest.mark.parametrize("rates", [(1.0, 0.0), (0.8, 0.1)])
def test_pairwise_loss_goes_through_t_and_the_rates(rates, generator):
    logits = torch.randn(4, 3, generator=generator)
    transition = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]])
    same = torch.eye(4).bool()
    loss = PairwiseLoss("mns", transition, rates, self_pairs=True)
    f = logits.softmax(dim=1) @ transition
    a, b = rates
    s = b + (a - b) * (f @ f.T)
    expected = torch.nn.functional.binary_cross_entropy(s, same.float())
    torch.testing.assert_close(loss.all_pairs(logits, same), expected, atol=1e-5, rtol=1e-5)
    index = torch.arange(4)
    found = loss.listed(logits, index, index.flip(0), torch.zeros(4).bool(), None)
    torch.testing.assert_close(found, -(1 - s[index, index.flip(0)]).log().mean())
    others = PairwiseLoss("mns", transition, rates).all_pairs(logits, same)
    torch.testing.assert_close(others, -(1 - s[~same]).log().mean())


@pytest.mark.parametrize("listed", [False, True])
def test_confident_different_pairs_that_are_wrong_still_teach(listed):
    """Two items sure of one class by a logit gap of 30: each is told to move by a half."""
    logits = torch.tensor([[30.0, 0.0], [30.0, 0.0]], requires_grad=True)
    loss, apart = PairwiseLoss("mcl"), torch.zeros(1, dtype=torch.bool)
    if listed:
        cost = loss.listed(logits, torch.tensor([0]), torch.tensor([1]), apart, None)
    else:
        cost = loss.all_pairs(logits, torch.eye(2, dtype=torch.bool))
    cost.backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[0.5, -0.5], [0.5, -0.5]]))
    assert float(cost.detach()) == pytest.approx(30 - math.log(2), rel=1e-5)


def test_balance_is_taken_off_the_loss(generator):
    logits = torch.randn(6, 3, generator=generator)
    same = torch.eye(6).bool()
    mean = logits.softmax(dim=1).mean(dim=0)
    entropy = -(mean * mean.log()).sum()
    plain = PairwiseLoss("mcl").all_pairs(logits, same)
    found = PairwiseLoss("mcl", balance=0.3).all_pairs(logits, same)
    torch.testing.assert_close(found, plain - 0.3 * entropy)


def perceived_classes(transition: torch.Tensor | None) -> ForwardCorrected:
    evidence = known_classes(np.array([0, -1, 2, 1, 1]))
    return ForwardCorrected(evidence, known_classes(np.array([1, -1, 0])), CPU, transition)


def test_forward_corrected_cross_entropy(generator):
    transition = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]])
    objective = perceived_classes(transition)
    assert objective.n_rows == 4  # one is unknown
    rows = torch.tensor([0, 1, 3])
    assert objective.items_of(rows).tolist() == [0, 2, 4]
    logits = torch.randn(3, 3, generator=generator)
    f = logits.softmax(dim=1) @ transition
    z = torch.tensor([0, 2, 1])
    expected = -f[torch.arange(3), z].log().mean()
    torch.testing.assert_close(objective.loss(logits, rows), expected)
    mixed = objective.mixed_loss(logits, rows, rows.roll(1), torch.tensor(0.3))
    other = -f[torch.arange(3), z.roll(1)].log().mean()
    torch.testing.assert_close(mixed, 0.3 * expected + 0.7 * other)
    held = torch.randn(3, 3, generator=generator)
    f = held.softmax(dim=1) @ transition
    torch.testing.assert_close(objective.score(held), -(f[0, 1].log() + f[2, 0].log()) / 2)


def test_the_teachers_posterior_is_bayes(generator):
    transition = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]])
    objective = perceived_classes(transition)
    logits = torch.randn(2, 3, generator=generator)
    found = objective.class_posterior(logits, torch.tensor([0, 1]), torch.tensor(0.5))
    g = logits.softmax(dim=1) ** 2
    joint = g * transition.T[torch.tensor([0, 2])]
    torch.testing.assert_close(found, joint / joint.sum(dim=1, keepdim=True))


def test_t_is_estimated_on_the_way_or_left_as_given(generator):
    logits = 5 * torch.eye(3)[torch.tensor([1, 0, 0])]
    given = perceived_classes(torch.eye(3))
    given.refine(logits, 20, 20)
    assert torch.equal(given.transition, torch.eye(3))
    estimating = perceived_classes(None)
    estimating.refine(logits, 1, 20)  # too early
    assert torch.equal(estimating.transition, torch.eye(3))
    for count in (1, 2):
        estimating.refine(logits, 10, 20)
        assert int(estimating.estimates) == count
        torch.testing.assert_close(estimating.transition.sum(dim=1), torch.ones(3))
    assert not torch.equal(estimating.transition, torch.eye(3))
    assert set(estimating.tensors()) == {"transition", "temperature", "estimates"}


def test_t_is_estimated_at_most_twenty_times_and_at_the_end():
    logits = 5 * torch.eye(3)[torch.tensor([1, 0, 0])]
    estimating = perceived_classes(None)
    renewed = []
    for done in range(1, 101):
        before = int(estimating.estimates)
        estimating.refine(logits, done, 100)
        renewed += [done] * (int(estimating.estimates) - before)
    assert renewed == list(range(10, 101, 5))


def test_t_found_on_the_way_is_close_to_the_true_one():
    X, y = blobs(n=1500)
    problem = Problem(X, Pairs.from_labels(noisy(y, 0.3)), 3, recipe=QUICK, held_out=0.3)
    run = next(joint_program(problem))
    run.train()
    found = run.best.estimates["transition"]
    assert found.diagonal().mean() == pytest.approx(0.7, abs=0.07)


# -- recipes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must lie between 1 and 1,000,000"),
        ({"batch_size": 1}, "batch_size must lie between 2 and 1,000,000"),
        ({"optimizer": "lion"}, "optimizer must be 'adam' or 'sgd'"),
        ({"schedule": "linear"}, "schedule must be 'step' or 'cosine'"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"lr": math.nan}, "lr must be positive"),
        ({"ema_decay": 1.0}, "ema_decay must lie in 0 to 1"),
        ({"warmup": 1.0}, "warmup must lie in 0 to 1"),
        ({"mean_teacher_from": 0.5}, "a mean teacher needs averaged weights"),
        ({"learning_rate": 1.0}, "a recipe has no learning_rate; it has augment_strength, balance"),
    ],
)
def test_recipes_that_cannot_work(changes, message):
    with pytest.raises(InputError, match=message):
        Recipe().with_(**changes)


def test_recipes_survive_json():
    for recipe in (*PAPER.values(), *JOINT.values(), FEATURES):
        assert Recipe(**json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_default_recipes_by_network():
    assert default_recipe("lenet", joint=False) is PAPER["lenet"]
    assert default_recipe("lenet", joint=True) is JOINT["lenet"]
    assert default_recipe("mlp", joint=True) is JOINT["mlp"]
    assert default_recipe("mlp", joint=False) is default_recipe(None, joint=True) is FEATURES


@pytest.mark.parametrize("joint", [False, True])
def test_every_image_network_has_a_recipe_for_images(joint):
    """Those of the zoo that take no features, and modules of the user's."""
    for name, build in NETWORKS.items():
        try:
            build((8,), 3)
        except InputError:
            assert name in (JOINT if joint else PAPER)
            assert default_recipe(name, joint) != FEATURES
    own = default_recipe(None, joint, images=True)
    assert (own.shift > 0, own.flip) == (True, False)  # what is upside down may be another class
    X, y = pictures(size=16)
    module = nn.Sequential(nn.Flatten(), nn.Linear(256, 2))
    problem = Problem(X, Pairs.from_labels(y), 2, network=module, recipe={"epochs": 7})
    assert problem.recipe_for(joint) == own.with_(epochs=7)


# -- devices -------------------------------------------------------------------------------------


def test_devices():
    assert choose_device("cpu") == choose_device(CPU) == CPU
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(InputError, match="there is no device 'gpu'"):
        choose_device("gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_there_is_named():
    with pytest.raises(InputError, match="there is no device 'cuda'"):
        choose_device("cuda")


def test_items_keep_their_type_on_the_device():
    assert on_device(np.zeros((2, 3), np.uint8), CPU).dtype == torch.uint8
    tensor = torch.zeros(2, 3)
    assert on_device(tensor, CPU) is tensor


def test_noise_reaches_the_problem():
    """The fixture itself: a wrong fixture would make every test above meaningless."""
    _, y = blobs()
    assert 0.15 < (noisy(y, 0.3) != y).mean() < 0.45


def test_a_calibrated_teacher_takes_the_temperature_of_the_held_out_items():
    run = joint_run(VARIANTS["calibrated teacher"], noise=0.3)
    run.objective.temperature.fill_(0.25)
    assert float(run.loss.mean_teacher_temperature()) == 0.25
