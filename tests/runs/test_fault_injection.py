"""Full disks, limits on file size, kills and altered files: what was there before stays whole."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from likewise import SimilarityClassifier, load
from likewise.errors import InputError, LikewiseError
from likewise.experiments import grid
from likewise.io.atomic import new_folder, replacing, write_json, write_text
from likewise.methods.pairwise import mns_program
from likewise.methods.problem import Problem
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.training.checkpoints import Checkpoints
from likewise.training.recipe import Recipe
from likewise.training.scheduler import run_program

ROOT = Path(__file__).parents[2]
RECIPE = Recipe(epochs=4, batch_size=32, lr=0.01)


def problem() -> Problem:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=90)
    items = (rng.normal(size=(90, 4)) + 2 * np.eye(3, 4)[labels]).astype(np.float32)
    return Problem(items, Pairs.from_labels(labels), 3, recipe=RECIPE)


def in_child(work: Callable[[], None], file_bytes: int | None = None) -> int:
    """Do something in a forked process that may write files of so many bytes at most.

    Returns 0, or 9 for an error of ours or of the system that was told; anything else is a crash.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            work()
            status = 0
        except (OSError, LikewiseError):
            status = 9
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_text_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    write_json(path, {"old": True})
    assert in_child(lambda: write_json(path, {"new": "x" * 10_000}), 1000) == 9
    assert path.read_text() == '{\n  "old": true\n}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["notes.json"]


@pytest.mark.parametrize("file_bytes", [0, 300, 4000])
def test_a_model_that_does_not_fit_leaves_nothing(tmp_path: Path, file_bytes: int) -> None:
    given = problem()
    classifier = SimilarityClassifier(3, method="mcl", recipe=RECIPE, verbose=False)
    classifier.fit(given.items, given.pairs)
    assert in_child(lambda: classifier.save(tmp_path / "model"), file_bytes) != 0
    assert not list(tmp_path.glob("[!.]*"))
    classifier.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(given.items), classifier.predict_proba(given.items))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_disk_that_fills_up_costs_only_checkpoints(tmp_path: Path) -> None:
    """Training goes on without them, and what was written before is good to go on from."""
    whole = run_program(mns_program(problem()))

    def train() -> None:
        run_program(mns_program(problem()), checkpoints=Checkpoints(tmp_path, every_epochs=1))

    assert in_child(train, 2000) == 0
    assert not list(tmp_path.glob("[!.]*"))
    assert in_child(train) == 0
    resumed = run_program(mns_program(problem()), checkpoints=Checkpoints(tmp_path))
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor)


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with contextlib.suppress(RuntimeError), replacing(tmp_path / "file") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    with contextlib.suppress(RuntimeError), new_folder(tmp_path / "folder") as temporary:
        (temporary / "part").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_readers_see_the_old_text_or_the_new_one(tmp_path: Path) -> None:
    """A writer is killed again and again; what can be read is always one of its texts, whole."""
    path = tmp_path / "text"
    write_text(path, "0" * 50_000)

    def write_for_ever() -> None:
        while True:
            for digit in "123456789":
                write_text(path, digit * 50_000)

    rng = np.random.default_rng(0)
    for _ in range(10):
        child = os.fork()
        if child == 0:
            write_for_ever()
        for _ in range(20):
            text = path.read_text()
            assert len(text) == 50_000
            assert len(set(text)) == 1
        time.sleep(float(rng.uniform(0, 0.02)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(set(path.read_text())) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.95])
def test_a_checkpoint_altered_anywhere_is_never_used(tmp_path: Path, part: float) -> None:
    run_program(mns_program(problem()), checkpoints=Checkpoints(tmp_path, every_epochs=1))
    for path in tmp_path.glob("stage-1.*"):
        content = bytearray(path.read_bytes())
        content[int(part * len(content))] ^= 0x10
        path.write_bytes(content)
    with pytest.raises(InputError, match="begin again"):
        run_program(mns_program(problem()), checkpoints=Checkpoints(tmp_path))


# -- kills ---------------------------------------------------------------------------------------


def benchmark() -> ModuleType:
    """benchmarks/kill_resume.py, which does the same a hundred times."""
    path = ROOT / "benchmarks" / "kill_resume.py"
    if not path.is_file():
        pytest.skip("the benchmarks are not here")
    sys.path.insert(0, str(path.parent))  # it uses another benchmark
    spec = importlib.util.spec_from_file_location("kill_resume", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kill_resume"] = module
    spec.loader.exec_module(module)
    return module


def kills(fits: int, tables: int, out: Path) -> dict[str, int]:
    command = [sys.executable, str(ROOT / "benchmarks" / "kill_resume.py"), "--out", str(out)]
    command += ["--fits", str(fits), "--tables", str(tables), "--others", "0", "--servers", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, int] = json.loads(out.read_text())
    return found


def few_data(folder: Path) -> None:
    """Of a quarter of the items, and only what fits need."""
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=100)
    items = rng.normal(size=(100, 16)) + 3 * np.eye(4, 16)[labels]
    perceived = corrupt_labels(labels, symmetric(4, 0.2), rng)
    folder.mkdir()
    np.save(folder / "items.npy", items.astype(np.float32))
    Pairs.from_labels(perceived, per_item=40, random_state=0).write(folder / "pairs.csv")


def test_two_killed_fits_go_on_to_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = benchmark()
    monkeypatch.setattr(grid, "CHECKPOINT_SECONDS", grid.CHECKPOINT_SECONDS)  # it sets another
    short = {"mns": "--method mns --epochs 4", "joint": "--method joint --noise class --epochs 6"}
    monkeypatch.setattr(module, "FITS", {name: text.split() for name, text in short.items()})
    monkeypatch.setattr(module, "make_data", few_data)
    options = ["--fits", "2", "--tables", "0", "--others", "0", "--servers", "0"]
    found = module.main([*options, "--out", str(tmp_path / "kills.json")])
    assert (found["resumed"], found["equal"], found["torn_files"]) == (2, 2, 0)


@pytest.mark.slow
def test_killed_fits_and_tables_go_on_to_the_same_result(tmp_path: Path) -> None:
    found = kills(5, 2, tmp_path / "kills.json")
    assert (found["resumed"], found["equal"], found["torn_files"]) == (7, 7, 0)


def test_the_benchmark_notices_torn_files(tmp_path: Path) -> None:
    module = benchmark()
    (tmp_path / "whole.json").write_text("{}\n")
    (tmp_path / ".half.json.tmp").write_text("{")
    assert module.torn_files(tmp_path) == []
    (tmp_path / "half.json").write_text('{"a": ')
    (tmp_path / "half.csv").write_text("a,b\n1,")
    (tmp_path / "half.safetensors").write_bytes(b"\x10\0\0")
    assert len(module.torn_files(tmp_path)) == 3


def test_the_docs_say_what_was_measured() -> None:
    found = json.loads((ROOT / "results" / "kill_resume.json").read_text())
    kills, server = len(found["kills"]), found["server"]
    fits = sum(found["killed"].get(name, 0) for name in ("mns", "joint", "mcl", "em"))
    others = kills - fits - found["killed"]["reproduce"]
    assert kills + server["kills"] >= 100
    expected = (
        f"{fits} SIGKILLs at random moments of fits, {found['killed']['reproduce']} of "
        f"`reproduce`, {others} of `report`, `name`, `export`, `predict`, `suspects` and "
        f"`compact`; "
        f"{found['resumed']} of {kills} went on, {found['equal']} ended with the files of an "
        f"uninterrupted run, and {found['torn_files']} torn files were ever visible "
        f"({found['with_checkpoints']} of the kills came after a checkpoint had been written). The "
        f"labelling server was killed {server['kills']} times: of {server['acknowledged']} "
        f"acknowledged answers {server['lost']} were lost, {server['changed']} changed and "
        f"{server['stored_twice']} stored twice."
    )
    told = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    assert expected in " ".join(told.split())
