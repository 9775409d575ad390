"""A full or read-only disk at each write of each command: a sentence, and what was there stays.

Every file of ours begins in `likewise.io.atomic._begin` and is made durable by ``_sync``: there the
k-th call fails, for every k that a command comes to.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from likewise import Pairs
from likewise.cli import run as command
from likewise.io import atomic
from tiny import blobs

TABLE = """
table = "t"
title = "Digits"
dataset = "digits"
network = "mlp"
methods = ["mcl"]
noise_kind = ["symmetric"]
noise = [0.2]
trials = 1
[training]
epochs = 1
"""
FIT = "fit items.npy pairs.csv --classes 3 --method mcl --epochs 2 --device cpu --quiet"
COMMANDS = {
    "fit": f"{FIT} --out new --checkpoint-seconds 0",
    "report": "report run --out page.html",
    "report again": "report run --out old.html",
    "name": "name run labels.csv",
    "export": "export run --torch model.pt2 --tables tables --items items.npy",
    "predict": "predict run items.npy --out old.csv",
    "suspects": "suspects run items.npy pairs.csv --out found.csv",
    "suggest": "suggest run items.npy pairs.csv --out found.csv",
    "simulate": "simulate --out data --per-item 4",
    "group": "group few.csv --out groups.csv",
    "label --export csv": "label . --out answers.db --export answers.csv",
    "label --export db": "label . --out answers.db --export copy.db",
    "reproduce": "reproduce table.toml --out cells --device cpu",
}
# Of a command that writes several files, each whole: those before the one that failed.
MAY_BE_NEW = {"fit": ("new.checkpoints/",), "export": ("model.pt2",), "reproduce": ("cells/",)}
SLOW = ("fit", "reproduce", "export")  # which train, or trace a network


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the commands need, and with something to lose."""
    folder = tmp_path_factory.mktemp("before")
    X, y = blobs(n=60)
    np.save(folder / "items.npy", X)
    pairs = Pairs.from_labels(y, per_item=10, random_state=0)
    pairs.write(folder / "pairs.csv")
    (folder / "few.csv").write_text("left,right,same\n0,1,1\n1,2,0\n2,3,1\n")
    (folder / "labels.csv").write_text("item,label\n0,a\n1,b\n2,c\n3,a\n")
    (folder / "table.toml").write_text(TABLE)
    for name in ("old.html", "old.csv"):
        (folder / name).write_text("there before\n")
    with inside(folder):
        assert command(f"{FIT} --out run".split()) == 0
    store = pytest.importorskip("likewise.label.store").Store(folder / "answers.db")
    store.record("Ada", "a", "b", 1).result()
    store.close()
    return folder


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    back = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(back)


def contents(folder: Path) -> dict[str, str]:
    """Digests of all files that can be seen; a database's own log is not ours."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not path.name.endswith(("-wal", "-shm"))
    }


def broken(name: str, error: int, at: int) -> Callable[[Path], Path | None]:
    """That function of `atomic`, which fails when it is called the ``at``-th time and from then on.

    A disk that is full or read-only stays so.
    """
    real, calls = getattr(atomic, name), 0

    def fail(path: Path) -> Path | None:
        nonlocal calls
        if name == "_sync" and path.is_dir():  # its files have taken their places by then
            return real(path)
        calls += 1
        if calls >= at:
            raise OSError(error, os.strerror(error), str(path))
        return real(path)

    fail.calls = lambda: calls  # type: ignore[attr-defined]
    return fail


def count_writes(folder: Path, line: str, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    with monkeypatch.context() as patch, inside(folder):
        watched = broken(name, errno.ENOSPC, at=10**9)
        patch.setattr(atomic, name, watched)
        assert command(line.split()) == 0
    return watched.calls()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(("place", "error"), [("_begin", errno.EROFS), ("_sync", errno.ENOSPC)])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in COMMANDS],
)
def test_at_each_write_of_each_command(
    name: str,
    place: str,
    error: int,
    before: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = COMMANDS[name]
    shutil.copytree(before, tmp_path / "whole")
    writes = count_writes(tmp_path / "whole", line, place, monkeypatch)
    assert writes > 0
    for at in range(1, writes + 1):
        folder = tmp_path / f"{at}"
        shutil.copytree(before, folder)
        there = contents(folder)
        capsys.readouterr()
        with monkeypatch.context() as patch, inside(folder):
            patch.setattr(atomic, place, broken(place, error, at))
            status = command(line.split())
        told = capsys.readouterr().err
        assert status != 0, at
        last = told.strip().splitlines()[-1]
        assert last.startswith("likewise: ")
        assert os.strerror(error).lower() in last
        assert "unexpected" not in told
        found = contents(folder)
        assert {name: found.get(name) for name in there} == there, at
        new = set(found) - set(there)
        assert all(file.startswith(MAY_BE_NEW.get(name, ())) for file in new), (at, new)
        shutil.rmtree(folder)


def test_two_files_that_belong_together_change_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {tmp_path / "a.json": 1, tmp_path / "b.json": 2}
    atomic.write_jsons(files)
    for place in ("_begin", "_sync"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic, place, broken(place, errno.ENOSPC, at=2))
            with pytest.raises(OSError, match="No space left"):
                atomic.write_jsons(dict.fromkeys(files, 3))
        assert [path.read_text() for path in files] == ["1\n", "2\n"]
        assert len(list(tmp_path.iterdir())) == 2


def test_what_a_killed_process_left_goes_when_the_file_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    child = os.fork()
    if child == 0:
        with atomic.replacing(path) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".page.html.")
    alive = tmp_path / left.name.replace(str(child), str(os.getpid()))
    elsewhere = tmp_path / left.name.replace(f".page.html.{atomic._host()}", ".page.html.zzzz")
    longer = tmp_path / left.name.replace(".page.html.", ".page.html.old.")
    for other in (alive, elsewhere, longer):
        other.write_text("somebody else's")
    atomic.write_text(path, "whole")
    assert {p.name for p in tmp_path.iterdir()} == {
        *("page.html", alive.name, elsewhere.name, longer.name)
    }
