"""A fit that is cut short and resumed ends with the very model of one that was not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise import SimilarityClassifier
from likewise.errors import InputError
from likewise.inference import fit_joint
from likewise.inference.em import Options
from likewise.methods.joint import joint_program
from likewise.methods.pairwise import mns_program, pairwise_program
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult, MethodProgram
from likewise.nn.stochastic import may_draw
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.training.checkpoints import Checkpoints
from likewise.training.recipe import Recipe
from likewise.training.replay_cache import ReplayCache
from likewise.training.run import TrainingRun
from likewise.training.scheduler import interleave, named, run_program

ADAM = Recipe(epochs=5, batch_size=32, lr=0.01, schedule="cosine", ema_decay=0.9)
SGD = Recipe(
    epochs=6, batch_size=32, optimizer="sgd", lr=0.05, warmup=0.2, ema_decay=0.9, mixup=0.5,
    mean_teacher_from=0.5,
)  # fmt: skip
CHANGING = SGD.with_(
    epochs=10, high_noise={"weight_decay": 0.1, "mean_teacher_from": 0.7, "ema_decay": 0.5}
)


class Killed(Exception):
    """Stands for the process's end."""


class Mortal(Checkpoints):
    """Checkpoints of a process that ends after so many epochs."""

    lives = 0

    def after_epoch(self, run: TrainingRun) -> None:
        super().after_epoch(run)
        self.lives -= 1
        if self.lives == 0:
            raise Killed


def blobs(noise: float = 0.2) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    labels = rng.integers(4, size=160)
    items = (rng.normal(size=(160, 6)) + 2 * np.eye(4, 6)[labels]).astype(np.float32)
    return items, corrupt_labels(labels, symmetric(4, noise), rng)


def problem(
    recipe: Recipe, noise: float = 0.2, complete: bool = True, held_out: float = 0.1
) -> Problem:
    items, z = blobs(noise)
    pairs = Pairs.from_labels(z, None if complete else 6, random_state=0)
    return Problem(items, pairs, 4, recipe=recipe, held_out=held_out, seed=2)


PROGRAMS: dict[str, Callable[[], MethodProgram]] = {
    "mns, adam": lambda: mns_program(problem(ADAM)),
    "mns, listed judgements": lambda: mns_program(problem(ADAM, complete=False)),
    "joint, sgd, mixup, teacher": lambda: joint_program(problem(SGD)),
    "joint, the recipe changes on the way": lambda: joint_program(
        problem(CHANGING, 0.7, held_out=0.4)  # enough of them to see the noise in
    ),
}


@cache
def uninterrupted(name: str) -> FitResult:
    return run_program(PROGRAMS[name]())


def assert_same(one: FitResult, other: FitResult) -> None:
    for a, b in ((one.model, other.model), (one.last_model, other.last_model)):
        assert all(torch.equal(t, b.state_dict()[name]) for name, t in a.state_dict().items())
    assert one.history == other.history
    assert (one.best_epoch, one.score) == (other.best_epoch, other.score)
    assert np.array_equal(one.transition, other.transition)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("lives", [1, 4, 8])
def test_resumed_is_uninterrupted(tmp_path: Path, name: str, lives: int) -> None:
    mortal = Mortal(tmp_path, every_epochs=2, every_seconds=1e9)
    mortal.lives = lives
    with contextlib.suppress(Killed):
        run_program(PROGRAMS[name](), checkpoints=mortal)
    resumed = run_program(PROGRAMS[name](), checkpoints=Checkpoints(tmp_path))
    assert_same(resumed, uninterrupted(name))


class Noisy(nn.Module):
    """A module of the user's that draws while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x + 0.1 * torch.randn_like(x) if self.training else x)


def test_networks_that_draw_depend_on_the_seed_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Noisy()

    def program() -> MethodProgram:
        items, z = blobs()
        torch.rand(int(torch.randint(1, 9, ())))  # whatever else the process has drawn
        return joint_program(Problem(items, Pairs.from_labels(z), 4, network, ADAM, seed=2))

    before = torch.get_rng_state()
    whole = run_program(program())
    mortal = Mortal(tmp_path, every_epochs=1)
    mortal.lives = 2
    with pytest.raises(Killed):
        run_program(program(), checkpoints=mortal)
    assert_same(run_program(program(), checkpoints=Checkpoints(tmp_path)), whole)
    together = interleave([program(), program()], 2)
    assert_same(together[0], whole)
    assert_same(together[1], whole)
    torch.set_rng_state(before)


def test_our_networks_do_not_draw() -> None:
    assert not may_draw(problem(ADAM).model())
    assert not may_draw(image_problem("cpu", "adam").model())
    assert may_draw(Noisy())
    assert may_draw(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)))
    assert may_draw(nn.LSTM(2, 2, num_layers=2, dropout=0.1))


def test_the_changing_recipe_does_change() -> None:
    run = next(PROGRAMS["joint, the recipe changes on the way"]())
    run.train()
    assert run.adapted
    assert run.recipe.weight_decay == 0.1
    assert float(run.updater.average._decays[-1]) == 0.5


def test_killed_again_and_again(tmp_path: Path) -> None:
    whole = run_program(mns_program(problem(ADAM)))
    for _ in range(20):
        mortal = Mortal(tmp_path, every_epochs=1)
        mortal.lives = 1
        try:
            fitted = run_program(mns_program(problem(ADAM)), checkpoints=mortal)
        except Killed:
            continue
        assert_same(fitted, whole)
        return
    pytest.fail("no progress between kills")


def test_finished_stages_are_not_trained_again(tmp_path: Path) -> None:
    run_program(mns_program(problem(ADAM)), checkpoints=Checkpoints(tmp_path))
    rows: list[dict[str, float]] = []
    run_program(mns_program(problem(ADAM)), rows.append, Checkpoints(tmp_path))
    assert rows == []


def test_programs_side_by_side_resume_too(tmp_path: Path) -> None:
    def programs() -> list[MethodProgram]:
        made = [mns_program(problem(ADAM)), joint_program(problem(SGD)), mns_program(problem(SGD))]
        return [named(p, (f"{k}-a", f"{k}-b")) for k, p in enumerate(made)]

    whole = interleave(programs(), 2)
    mortal = Mortal(tmp_path, every_epochs=2)
    mortal.lives = 9
    with pytest.raises(Killed):
        interleave(programs(), 2, checkpoints=mortal)
    assert list(tmp_path.iterdir())
    resumed = interleave(programs(), 2, checkpoints=Checkpoints(tmp_path))
    for one, other in zip(resumed, whole, strict=True):
        assert_same(one, other)


def classifier(**changes: object) -> SimilarityClassifier:
    options = {"n_classes": 4, "method": "mns", "recipe": ADAM, "random_state": 3}
    return SimilarityClassifier(**(options | changes), verbose=False)


def test_a_classifier_resumes_and_refuses_another_fit(tmp_path: Path) -> None:
    items, z = blobs()
    pairs = Pairs.from_labels(z)
    whole = classifier().fit(items, pairs)
    mortal = Mortal(tmp_path, every_epochs=1)
    mortal.lives = 7
    with pytest.raises(Killed):
        classifier().fit(items, pairs, checkpoints=mortal)
    with pytest.raises(InputError, match="belongs to another fit"):
        classifier().fit(items + 1, pairs, checkpoints=tmp_path)
    with pytest.raises(InputError, match=r"method was mns, is now mcl"):
        classifier(method="mcl").fit(items, pairs, checkpoints=tmp_path)
    resumed = classifier().fit(items, pairs, checkpoints=tmp_path)
    assert np.array_equal(resumed.predict_proba(items), whole.predict_proba(items))
    assert resumed.history_ == whole.history_


def images() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    rng = np.random.default_rng(5)
    labels = rng.integers(3, size=120)
    pictures = rng.integers(0, 60, size=(120, 16, 16, 3)) + 60 * labels[:, None, None, None]
    return pictures.astype(np.uint8), labels


def image_problem(device: str, optimizer: str) -> Problem:
    pictures, labels = images()
    recipe = Recipe(
        epochs=4, batch_size=32, optimizer=optimizer, lr=0.01, ema_decay=0.9, shift=2, flip=True
    )
    pairs = Pairs.from_labels(labels)
    return Problem(pictures, pairs, 3, "resnet32", recipe, 0.2, 1, torch.device(device))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_optimiser_state_keeps_the_layout_of_its_weights(tmp_path: Path, optimizer: str) -> None:
    """Fused optimisers walk weights and state side by side in memory, whatever their shapes say."""

    def new() -> TrainingRun:
        run = next(joint_program(image_problem("cpu", optimizer)))
        run.name = "images"
        run.model.to(memory_format=torch.channels_last)
        return run

    run = new()
    run.begin_epoch()
    run.step()
    run.end_epoch()
    Checkpoints(tmp_path).save(run)
    resumed = new()
    Checkpoints(tmp_path).resume(resumed)
    states = [
        (parameter, value)
        for parameter in resumed.model.parameters()
        for value in resumed.updater.optimizer.state[parameter].values()
        if value.ndim
    ]
    assert states
    assert all(value.stride() == parameter.stride() for parameter, value in states)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_gpu_goes_on_from_the_same_bits(tmp_path: Path, optimizer: str) -> None:
    """With captured steps and channels-last images; PyTorch is asked for deterministic kernels."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        whole = run_program(joint_program(image_problem("cuda", optimizer)))
        mortal = Mortal(tmp_path, every_epochs=1)
        mortal.lives = 2
        with pytest.raises(Killed):
            run_program(joint_program(image_problem("cuda", optimizer)), checkpoints=mortal)
        program = joint_program(image_problem("cuda", optimizer))
        resumed = run_program(program, checkpoints=Checkpoints(tmp_path))
    finally:
        torch.use_deterministic_algorithms(False)
    for name, tensor in whole.last_model.state_dict().items():
        torch.testing.assert_close(resumed.last_model.state_dict()[name], tensor)


class Interrupted(ReplayCache):
    """A replay cache of a process that ends after so many steps."""

    lives = 3

    def step(self, compute: Callable[[], Tensor], generator: torch.Generator) -> Tensor:
        if self.lives == 0:
            raise Killed
        self.lives -= 1
        return super().step(compute, generator)


def slipping() -> tuple[NDArray[np.float32], Pairs]:
    """Judgements that contradict each other, so that the joint objective needs EM."""
    items, z = (part[:80] for part in blobs(0.1))
    exact = Pairs.from_labels(z, per_item=30, random_state=0)
    flipped = np.random.default_rng(3).random(len(exact)) < 0.1
    return items, Pairs(exact.left, exact.right, exact.same ^ flipped, n_items=len(items))


@pytest.mark.parametrize("lives", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_em_goes_on_from_its_replay_cache(tmp_path: Path, lives: int) -> None:
    items, pairs = slipping()
    options = Options(rounds=4, epochs=3, final_epochs=3, start_steps=60)
    whole = fit_joint(items, pairs, 4, random_state=0, options=options)
    checkpoints = Checkpoints(tmp_path, {"data": "these"}, every_seconds=0)
    replay_cache = Interrupted(checkpoints)
    replay_cache.lives = lives
    with pytest.raises(Killed):
        fit_joint(items, pairs, 4, random_state=0, options=options, replay_cache=replay_cache)
    assert len(list(tmp_path.iterdir())) == lives
    resumed = fit_joint(
        items, pairs, 4, random_state=0, options=options, replay_cache=ReplayCache(checkpoints)
    )
    for name in ("posterior", "judged", "classes", "transition"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name))
    assert resumed.choice == whole.choice


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_replay_cache_stops_being_read_at_its_first_gap(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)

    def draw() -> Tensor:
        return torch.rand(3, generator=generator)

    def steps(count: int) -> list[list[float]]:
        generator.manual_seed(0)
        replay_cache = ReplayCache(Checkpoints(tmp_path, every_seconds=0))
        return [replay_cache.step(draw, generator).tolist() for _ in range(count)]

    whole = steps(4)
    (tmp_path / "step-0001.000000.safetensors").write_bytes(b"damaged")
    (tmp_path / ".step-0004.000000.safetensors.0badcafe.tmp").write_bytes(b"of a killed write")
    assert steps(4) == whole
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(InputError, match="another fit"):
        ReplayCache(Checkpoints(tmp_path, {"other": 1})).step(draw, generator)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("lives", [1, 2, 3, 4, 5])
def test_a_revival_happens_once_however_often_the_run_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: int, by_name: bool
) -> None:
    """Killed before, at and after the epochs at which outputs are split (2 and 4)."""

    def split(model: nn.Module, *_: object) -> int:
        with torch.no_grad():
            list(model.parameters())[-1].add_(torch.linspace(0, 0.05, 4))
        return 1

    monkeypatch.setattr("likewise.training.splitting.split_merged_outputs", split)
    recipe = Recipe(epochs=6, batch_size=32, lr=1e-2, split_merged_at=(1 / 3, 2 / 3))

    def program() -> MethodProgram:
        plain = pairwise_program(problem(recipe), "mcl")
        return named(plain, ["mcl"]) if by_name else plain

    whole = run_program(program())
    mortal = Mortal(tmp_path, every_epochs=1)
    mortal.lives = lives
    with pytest.raises(Killed):
        run_program(program(), checkpoints=mortal)
    resumed = run_program(program(), checkpoints=Checkpoints(tmp_path))
    assert resumed.score == whole.score
    for name, tensor in whole.last_model.state_dict().items():
        assert torch.equal(resumed.last_model.state_dict()[name], tensor)
