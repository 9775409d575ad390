"""Checkpoints: written whole, recognised, verified; a failed one never ends the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.methods.joint import joint_program
from likewise.methods.problem import Problem
from likewise.pairs import Pairs
from likewise.training import checkpoints as module
from likewise.training.checkpoints import (
    Checkpoints,
    DamagedError,
    digest_of,
    read_checkpoint,
    write_checkpoint,
)
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

RECIPE = Recipe(epochs=4, batch_size=16, ema_decay=0.9, lr=0.01)


def new_run(recipe: Recipe = RECIPE, seed: int = 0, name: str = "stage-0") -> TrainingRun:
    rng = np.random.default_rng(7)
    labels = rng.integers(3, size=80)
    items = (rng.normal(size=(80, 4)) + 3 * labels[:, None]).astype(np.float32)
    problem = Problem(items, Pairs.from_labels(labels), 3, recipe=recipe, seed=seed)
    run = next(joint_program(problem))
    run.name = name
    return run


def train(run: TrainingRun, epochs: int) -> TrainingRun:
    for _ in range(epochs):
        run.begin_epoch()
        for _ in range(run.steps_per_epoch):
            run.step()
        run.end_epoch()
    return run


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    tensors = {
        "half": torch.randn(3, 2).bfloat16(),
        "number": torch.tensor(3),
        "empty": torch.zeros(0, 4),
        "flags": torch.tensor([True, False]),
        "transposed": torch.arange(6.0).reshape(2, 3).T,
    }
    about = {"epoch": 3, "history": [{"loss": 0.1 + 0.2}]}
    write_checkpoint(tmp_path / "a.safetensors", tensors, about)
    found, state = read_checkpoint(tmp_path / "a.safetensors")
    assert found["history"] == about["history"]
    assert state.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert state[name].dtype == tensor.dtype
        assert torch.equal(state[name], tensor)


@pytest.mark.parametrize("position", [3, 60, 400, -3])
def test_any_altered_byte_is_noticed(tmp_path: Path, position: int) -> None:
    path = tmp_path / "a.safetensors"
    write_checkpoint(path, {"w": torch.randn(50)}, {"epoch": 1})
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        read_checkpoint(path)


def test_a_file_of_another_version_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VERSION", 99)
    write_checkpoint(tmp_path / "a.safetensors", {"w": torch.zeros(2)}, {"epoch": 1})
    monkeypatch.undo()
    with pytest.raises(DamagedError, match="version"):
        read_checkpoint(tmp_path / "a.safetensors")


def test_a_file_of_an_earlier_version_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VERSION", 1)
    Checkpoints(tmp_path).save(train(new_run(), 1))
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"earlier version of Likewise.*remove .* and begin again"):
        Checkpoints(tmp_path).resume(new_run())


def test_nothing_to_resume(tmp_path: Path) -> None:
    assert not Checkpoints(tmp_path / "none").resume(new_run())
    assert not (tmp_path / "none").exists()


def test_resumed_state_is_the_saved_state(tmp_path: Path) -> None:
    saved = train(new_run(), 2)
    Checkpoints(tmp_path).save(saved)
    resumed = new_run()
    assert Checkpoints(tmp_path).resume(resumed)
    assert resumed.epoch == 2
    assert resumed.history == saved.history
    assert same_tensors(resumed.snapshot(), saved.snapshot())
    assert same_tensors(train(resumed, 2).snapshot(), train(saved, 2).snapshot())


def test_only_two_are_kept(tmp_path: Path) -> None:
    checkpoints, run = Checkpoints(tmp_path), new_run()
    for _ in range(4):
        checkpoints.save(train(run, 1))
    epochs = [path.name for path in sorted(tmp_path.iterdir())]
    assert epochs == ["stage-0.000003.safetensors", "stage-0.000004.safetensors"]


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    run = new_run()
    for _ in range(2):
        Checkpoints(tmp_path).save(train(run, 1))
    newest = tmp_path / "stage-0.000002.safetensors"
    newest.write_bytes(newest.read_bytes()[:-40])
    resumed = new_run()
    with pytest.warns(UserWarning, match="the one before"):
        assert Checkpoints(tmp_path).resume(resumed)
    assert resumed.epoch == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nothing_but_damaged_checkpoints_is_an_error(tmp_path: Path) -> None:
    Checkpoints(tmp_path).save(train(new_run(), 1))
    (tmp_path / "stage-0.000001.safetensors").write_bytes(b"\x80\x04junk")
    with pytest.raises(InputError, match="begin again"):
        Checkpoints(tmp_path).resume(new_run())


@pytest.mark.parametrize(
    ("digest", "changed", "words"),
    [
        ("b", {}, "digest was a, is now b"),
        ("a", {"recipe": RECIPE.with_(lr=0.5)}, "recipe.lr was 0.01, is now 0.5"),
        ("a", {"seed": 3}, "seed was 0, is now 3: --seed"),
        ("b", {"seed": 3}, "seed was 0, is now 3: --seed"),
    ],
)
def test_another_fit_is_refused_and_the_difference_named(
    tmp_path: Path, digest: str, changed: dict[str, Any], words: str
) -> None:
    Checkpoints(tmp_path, {"digest": "a"}).save(train(new_run(), 1))
    with pytest.raises(InputError) as caught:
        Checkpoints(tmp_path, {"digest": digest}).resume(new_run(**changed))
    assert words in str(caught.value)
    assert f"or remove {tmp_path} to begin again." in str(caught.value)


def test_a_strange_tensor_is_refused(tmp_path: Path) -> None:
    run = train(new_run(), 1)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(run)
    path = tmp_path / "stage-0.000001.safetensors"
    about, tensors = read_checkpoint(path)
    for name, tensor in [
        ("updater.optimizer.99.exp_avg", torch.zeros(2)),
        ("other", torch.zeros(2)),
    ]:
        write_checkpoint(path, tensors | {name: tensor}, about)
        with pytest.raises(InputError, match="does not fit"):
            checkpoints.resume(new_run())
    tensors.pop("best.score")
    write_checkpoint(path, tensors, about)
    with pytest.raises(InputError, match=r"best\.score"):
        checkpoints.resume(new_run())


def test_policy_by_epochs_and_at_the_end(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, every_seconds=1e9, every_epochs=3)
    run, written = new_run(), []
    checkpoints.resume(run)
    for _ in range(4):
        checkpoints.after_epoch(train(run, 1))
        written.append(len(list(tmp_path.iterdir())))
    assert written == [0, 0, 1, 2]


def test_policy_by_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    checkpoints, run = Checkpoints(tmp_path, every_seconds=60), new_run()
    checkpoints.resume(run)
    now += 59
    checkpoints.after_epoch(train(run, 1))
    assert not list(tmp_path.iterdir())
    now += 1
    checkpoints.after_epoch(train(run, 1))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_a_warning_and_the_checkpoint_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, run = Checkpoints(tmp_path), new_run()
    assert checkpoints.save(train(run, 1))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_file", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert not checkpoints.save(train(run, 1))
    assert [p.name for p in tmp_path.iterdir()] == ["stage-0.000001.safetensors"]


def test_leftovers_of_a_killed_write_go_away(tmp_path: Path) -> None:
    torn = tmp_path / ".stage-0.000003.safetensors.0badcafe.tmp"
    torn.write_bytes(b"half")
    Checkpoints(tmp_path).resume(new_run())
    assert not torn.exists()


def test_forget_and_remove_touch_only_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    checkpoints = Checkpoints(folder)
    checkpoints.save(train(new_run(name="a"), 1))
    checkpoints.save(train(new_run(name="a-b"), 1))
    checkpoints.forget("a")
    assert [p.name for p in folder.iterdir()] == ["a-b.000001.safetensors"]
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not checkpoints"):
        checkpoints.remove()
    (folder / "thesis.txt").unlink()
    (folder / ".a-b.000002.safetensors.0badcafe.tmp").write_bytes(b"of a killed write")
    checkpoints.remove()
    assert not folder.exists()


def test_digests_tell_content_type_and_shape_apart() -> None:
    a = np.arange(6)
    digests = [digest_of(x) for x in (a, a[::-1], a.reshape(2, 3), a.astype(np.int32), a + 1)]
    assert len(set(digests)) == 5
    assert digest_of(a, None) != digest_of(a)
    assert digest_of(a.copy()) == digests[0]


def test_digest_of_a_large_array_samples_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAMPLE_BYTES", 100)
    large = np.arange(1000.0)
    other = large.copy()
    other[960] += 1  # one of the rows that the sample takes
    assert digest_of(large) != digest_of(other)


def same_tensors(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
