"""What a result was made from and with."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.errors import InputError
from likewise.io import provenance as provenance_module
from likewise.io.provenance import commit, input_record, provenance, versions


def test_nothing_heavy_is_imported_to_say_versions() -> None:
    code = (
        "import sys; from likewise.io.provenance import versions; versions(); "
        "print(sorted({'torch', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_where_and_with_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_COMMIT", "abc")
    found = provenance(torch.device("cpu"))
    assert (found["device"], found["commit"]) == ("cpu", "abc")
    assert found["torch"] == metadata.version("torch")  # as installed: "+cu130" is not in it
    assert versions()["numpy"] == np.__version__
    monkeypatch.delenv("LIKEWISE_COMMIT")
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


def test_a_pipe_is_not_digested_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match="not a file"):
            input_record(path)


def test_holes_are_not_digested_for_hours(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        file.truncate(3 * 10**12)
    if path.stat().st_blocks * 512 > 10**6:
        pytest.skip("this file system keeps no holes")
    with pytest.raises(InputError, match=r"x\.npy, which is mostly holes"):
        input_record(path)


def test_names_that_are_no_text_are_digested_too(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")).write_bytes(b"")
    assert input_record(tmp_path)["files"] == 1


def test_an_input_is_known_by_every_byte(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"left,right\n")
    digest = hashlib.sha256(b"left,right\n").hexdigest()
    path = tmp_path / "a.csv"
    assert input_record(path) == {"path": str(path), "bytes": 11, "sha256": digest}
    listed = hashlib.sha256(b"a.csv 11").hexdigest()
    assert input_record(tmp_path) == {
        "path": str(tmp_path),
        "files": 1,
        "listing_sha256": listed,
    }
    with pytest.raises(InputError, match="there is no file or folder"):
        input_record(tmp_path / "none")


def test_versions_by_their_names() -> None:
    assert versions()["likewise"] == likewise.__version__
    expected = {"likewise", "python", "torch", "numpy", "scipy", "scikit-learn", "platform"}
    assert set(versions()) == expected
    assert provenance_module._version_of("no-such-library") == "unknown"


def test_a_commit_is_marked_where_tracked_files_were_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIKEWISE_COMMIT", raising=False)
    inner = tmp_path / "repository" / "package" / "io"
    inner.mkdir(parents=True)
    outer = tmp_path / "repository"
    (inner / "file.py").write_text("1\n")
    (outer / "notes.md").write_text("1\n")

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=outer, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(provenance_module, "__file__", str(inner / "provenance.py"))
    clean = commit()
    assert len(clean) == 12
    (inner / "new.py").write_text("not tracked\n")
    (outer / "notes.md").write_text("no code\n")
    assert commit() == clean
    (inner / "file.py").write_text("2\n")
    assert commit() == clean + "+"


def test_by_what_a_process_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_CLUSTER_NAME", "SUBMITIT_EXECUTOR"):
        monkeypatch.delenv(name, raising=False)
    assert provenance_module.where() == "one machine"
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    assert provenance_module.where() == "one machine"
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    assert provenance_module.where() == "local executor"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert provenance_module.where() == "SLURM cluster, job 7"
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "big")
    assert provenance_module.where() == "SLURM big, job 7"


def test_all_that_a_result_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_COMMIT", "abc")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    found = provenance(torch.device("meta"))
    assert set(found) == {"device", "where", "commit", "date", *versions()}
    assert found["device"] == "meta"
    assert found["where"] == provenance_module.where()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["date"])
    assert found["platform"] == f"{platform.system()} {platform.machine()}"
    assert found["python"] == versions()["python"] == platform.python_version()
    assert versions()["platform"] == platform.platform()


def test_a_folder_is_known_by_the_names_and_sizes_inside(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_bytes(b"12")
    (tmp_path / "a").write_bytes(b"1")
    listed = hashlib.sha256(b"a 1\nb/x 2").hexdigest()
    found = input_record(str(tmp_path))
    assert (found["files"], found["listing_sha256"]) == (2, listed)


def test_git_that_fails_or_hangs_makes_the_commit_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIKEWISE_COMMIT", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setattr(provenance_module, "__file__", str(tmp_path / "a" / "io" / "x.py"))
    (tmp_path / "a").mkdir()
    assert commit() == "unknown"

    def hanging(*_: object, timeout: float, **__: object) -> None:
        assert 0 < timeout <= 10
        raise subprocess.TimeoutExpired("git", timeout)

    monkeypatch.setattr(provenance_module.subprocess, "run", hanging)
    assert commit() == "unknown"


def test_a_gpu_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Fast {device}")
    assert provenance_module.device_name(torch.device("cuda:1")) == "Fast cuda:1"
