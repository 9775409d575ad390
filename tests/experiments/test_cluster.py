"""The grid on a cluster: one command a chain, what died is submitted again, the same numbers."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from likewise.cli import run
from likewise.errors import InputError, LikewiseError
from likewise.experiments import cluster as module
from likewise.experiments import load_settings, reproduce
from likewise.experiments.cells import Cell
from likewise.experiments.cluster import CellCommand, Cluster, parse_options
from likewise.experiments.grid import cell_settings
from likewise.experiments.store import load_results, save_result
from likewise.io.provenance import where

SETTINGS = """
table = "small"
title = "digits"
dataset = "digits"
network = "mlp"
noise_kind = ["symmetric"]
noise = [0.2, 0.4]
trials = 1
methods = ["kcl", "mcl", "mns_true"]
items = 300
[training]
epochs = 3
"""
CHAINS = [("0.2", "mcl,mns_true"), ("0.2", "kcl"), ("0.4", "mcl,mns_true"), ("0.4", "kcl")]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SETTINGS)
    return path


def numbers(out: Path) -> list[dict[str, Any]]:
    """What was learned, without when and where."""
    names = ("noise", "method", "trial", "accuracy", "last_accuracy", "transition", "curve")
    return [{name: r.get(name) for name in names} for r in load_results(out)]


def listed(small: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert run(["reproduce", str(small), "--out", str(out), "--list"]) == 0
    return capsys.readouterr().out.splitlines()


def test_every_chain_is_one_command_that_runs_it_alone(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    commands = listed(small, out, capsys)
    found = []
    for line in commands:
        words = shlex.split(line)
        assert words[:3] == ["likewise", "reproduce", str(small)]
        found.append((words[words.index("--noise") + 1], words[words.index("--methods") + 1]))
        assert words[words.index("--trial") + 1] == "0"
    assert found == CHAINS
    assert run([*shlex.split(commands[1])[1:], "--device", "cpu"]) == 0
    assert [(r["noise"], r["method"]) for r in load_results(out)] == [(0.2, "kcl")]
    assert listed(small, out, capsys) == [commands[0], *commands[2:]]


def test_a_trial_can_be_run_alone(small: Path, tmp_path: Path) -> None:
    command = ["reproduce", str(small), "--out", str(tmp_path / "out"), "--device", "cpu"]
    assert run([*command, "--trial", "3", "--methods", "kcl", "--noise", "0.2"]) == 0
    assert [r["trial"] for r in load_results(tmp_path / "out")] == [3]


class Fake:
    """An executor whose jobs end at once; the first of some chains die without a result."""

    def __init__(self, out: Path, small: Path, deaths: dict[str, int]) -> None:
        self.out, self.settings, self.deaths = out, load_settings(small), deaths
        self.submitted: list[list[str]] = []
        self.cancelled = 0

    def submit(self, function: Any) -> Any:
        words = function.command
        self.submitted.append(words)
        noise, methods = (words[words.index(f"--{n}") + 1] for n in ("noise", "methods"))
        chain = f"{noise} {methods}"
        if self.deaths.get(chain, 0) > 0:
            self.deaths[chain] -= 1
        else:
            for method in methods.split(","):
                about = ("small", "digits", "mlp", "symmetric", float(noise), method, 0)
                cell = Cell(*about)
                save_result(self.out, cell, {"accuracy": 0.5}, self._options(cell), [])
        paths = SimpleNamespace(stderr=self.out / "log.err")
        return SimpleNamespace(done=lambda: True, job_id="7", paths=paths, cancel=self._cancel)

    def _options(self, cell: Cell) -> dict[str, Any]:
        return cell_settings(self.settings, cell)

    def _cancel(self, check: bool) -> None:
        self.cancelled += 1


def through(
    fake: Fake, small: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[Any]]:
    pytest.importorskip("submitit")
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(Cluster, "_executor", lambda self, folder: fake)
    told: list[str] = []
    reported: list[Any] = []
    command = CellCommand(str(small), None, fake.out)
    Cluster("local", jobs=2).run(fake.settings, command, reported.append, told.append)
    return told, reported


def test_what_died_is_submitted_again(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(tmp_path / "out", small, {"0.2 kcl": 2})
    told, reported = through(fake, small, monkeypatch)
    assert len(fake.submitted) == len(CHAINS) + 2
    assert len(reported) == 6  # each cell once
    assert told == ["symmetric-0.2-kcl-0 died (job 7): submitted again"] * 2


def test_what_dies_every_time_ends_in_a_sentence(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(tmp_path / "out", small, {"0.2 kcl": 99})
    with pytest.raises(LikewiseError, match=r"symmetric-0\.2-kcl-0 died 3 times .*log\.err"):
        through(fake, small, monkeypatch)


def test_options_are_checked(small: Path, tmp_path: Path) -> None:
    assert parse_options(["slurm_partition=gpu", "timeout_min=60"]) == {
        "slurm_partition": "gpu",
        "timeout_min": 60,
    }
    with pytest.raises(InputError, match="name=value"):
        parse_options(["partition"])
    pytest.importorskip("submitit")
    with pytest.raises(InputError, match="slurm or local"):
        reproduce(small, None, tmp_path / "out", device="cpu", cluster=Cluster("pigeons"))
    wrong = Cluster("local", options={"no_such_parameter": 1})
    with pytest.raises(InputError, match="cannot use the cluster"):
        reproduce(small, None, tmp_path / "out", device="cpu", cluster=wrong)


def test_a_result_says_where_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SUBMITIT_EXECUTOR"):
        monkeypatch.delenv(name, raising=False)
    assert where() == "one machine"
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    assert where() == "local executor"
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "hill")
    assert where() == "SLURM hill, job 42"


@pytest.mark.slow
def test_four_processes_one_of_them_killed_find_the_same_numbers(
    small: Path, tmp_path: Path
) -> None:
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("submitit")
    one, four = tmp_path / "one", tmp_path / "four"
    base = [sys.executable, "-m", "likewise", "reproduce", str(small), "--device", "cpu", "--json"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*base, "--out", str(one)], env=env, check=True, capture_output=True)
    command = [*base, "--out", str(four), "--cluster", "local", "--jobs", "4"]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        victim = None
        while victim is None and parent.poll() is None:
            time.sleep(0.05)
            for child in psutil.Process(parent.pid).children(recursive=True):
                try:
                    words = child.cmdline()
                except psutil.Error:
                    continue
                if "likewise" in words and "kcl" in words and "0.4" in words:
                    victim = child
                    child.kill()
                    break
        printed, said = parent.communicate(timeout=300)
    assert parent.returncode == 0, said
    assert "symmetric-0.4-kcl-0 died" in said
    assert numbers(four) == numbers(one)
    assert {r["where"] for r in load_results(four)} == {"local executor"}
    assert {s["trials"] for s in json.loads(printed)["summaries"]} == {1}
