"""What cannot be written is refused in the first second, and two fits do not share a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from likewise import InputError, Pairs
from likewise.cli import run as command
from likewise.methods import dispatch
from likewise.runs import lookahead
from likewise.runs.lookahead import check_output, locked, remove_own_leftovers
from tiny import blobs, tiny_problem


@pytest.mark.parametrize("name", [".", "..", "runs/..", ""])
def test_an_output_that_names_nothing(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--out must name a new folder"):
        check_output(Path(name))


@pytest.mark.parametrize("name", ["x" * 300, "ü" * 130, f"{'x' * 300}/run", "x" * 240])
def test_names_that_are_too_long(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bytes, but at most \d+ can be used here"):
        check_output(tmp_path / name)
    check_output(tmp_path / ("x" * 200))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """The model card names the run, and could not be written when all was trained."""
    for name in (b"q\xff", b"q\xff/run"):
        with pytest.raises(InputError, match=r"the name 'q\\udcff' is not text in UTF-8"):
            check_output(tmp_path / os.fsdecode(name))
    check_output(tmp_path / "früh\t1")


def test_links_files_and_what_is_full(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="a link to something that is not there"):
        check_output(tmp_path / "link")
    with pytest.raises(InputError, match="would be taken for the checkpoints of run"):
        check_output(tmp_path / "run.checkpoints")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        check_output(tmp_path / "file" / "run")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(lookahead.shutil, "disk_usage", lambda _: usage(1, 1, 2**20))
    with pytest.raises(InputError, match="only 1 MiB are free"):
        check_output(tmp_path / "run")


def test_a_place_that_cannot_be_written_to(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(InputError, match=r"cannot be written to \(read-only file system\)"):
        check_output(tmp_path / "deep" / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_fit_refuses_before_it_reads(tmp_path: Path, capsys) -> None:
    words = ["fit", str(tmp_path / "no.npy"), str(tmp_path / "no.csv"), "--out"]
    assert command([*words, str(tmp_path / ("x" * 300))]) == 2
    assert "choose a shorter one" in capsys.readouterr().err
    assert command([*words, str(tmp_path / "run"), "--method", "mcl", "--noise", "class"]) == 2
    assert "method='mcl' does not use noise='class'" in capsys.readouterr().err
    assert command([*words, str(tmp_path / "run"), "--seed", str(2**70)]) == 2
    assert "--seed" in capsys.readouterr().err


def test_only_ones_own_leftovers_are_removed(tmp_path: Path) -> None:
    for name in (".a.0123abcd.tmp", ".a.b.0123abcd.tmp", ".ab.0123abcd.tmp", ".a.notes.tmp"):
        (tmp_path / name).mkdir()
    remove_own_leftovers(tmp_path / "a")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".a.b.0123abcd.tmp", ".a.notes.tmp", ".ab.0123abcd.tmp"]


def test_a_lock_is_held_by_one_and_goes_with_it(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom likewise.runs.lookahead import locked\n"
        f"with locked(Path({str(out)!r})):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    told = rf"another fit \(process {other.pid}\) is writing to"
    with pytest.raises(InputError, match=told), locked(out):
        pass
    other.kill()
    other.wait()
    with locked(out):
        assert (tmp_path / "deep" / ".run.lock").read_text().strip() == str(os.getpid())
    assert list((tmp_path / "deep").iterdir()) == []


def test_every_number_is_in_the_digest(monkeypatch) -> None:
    monkeypatch.setattr(dispatch, "PART", 1000)
    problem = tiny_problem()[0]
    before = dispatch.identity(problem)
    for row in (0, 1, 101, 239):
        items = problem.items.copy()
        items[row, 2] += 1e-3
        changed = dispatch.identity(type(problem)(items, problem.pairs, 3))
        assert changed["items' digest"] != before["items' digest"]


@pytest.fixture
def cut_short(tmp_path: Path) -> tuple[Path, list[str]]:
    """A fit that was killed after its first checkpoint, and the words to go on with it."""
    X, y = blobs(n=200)
    np.save(tmp_path / "items.npy", X)
    Pairs.from_labels(y, per_item=20, random_state=0).write(tmp_path / "pairs.csv")
    words = ["fit", "items.npy", "pairs.csv", "--classes", "3", "--method", "mcl", "--out", "run"]
    words += ["--epochs", "400", "--checkpoint-seconds", "0", "--device", "cpu", "--quiet"]
    started = subprocess.Popen([sys.executable, "-m", "likewise", *words], cwd=tmp_path)
    folder = tmp_path / "run.checkpoints"
    while not list(folder.glob("*.safetensors")) and started.poll() is None:
        time.sleep(0.05)
    started.kill()
    started.wait()
    assert not (tmp_path / "run").exists()
    return tmp_path, [*words, "--resume"]


@pytest.mark.slow
def test_a_resumed_fit_notices_other_files_and_other_software(
    cut_short: tuple[Path, list[str]], monkeypatch, capsys
) -> None:
    folder, words = cut_short
    monkeypatch.chdir(folder)
    with monkeypatch.context() as other:
        other.setattr(dispatch, "__version__", "9.9")
        assert command(words) == 2
        assert "likewise was 0." in capsys.readouterr().err
    before = (folder / "pairs.csv").read_bytes()
    (folder / "pairs.csv").write_bytes(before + b"\n")  # the same judgements in another file
    assert command(words) == 2
    assert "SHA-256 of pairs was" in capsys.readouterr().err
    (folder / "pairs.csv").write_bytes(before)
    assert command(words) == 0
    assert json.loads((folder / "run" / "metrics.json").read_text())["method"] == "mcl"
    assert not (folder / ".run.lock").exists()
