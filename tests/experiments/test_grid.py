"""Running tables: on digits, small enough to train in seconds."""

from __future__ import annotations

import dataclasses
import os
import re
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from forked import Forked
from likewise.datasets import Dataset, load
from likewise.errors import InputError
from likewise.experiments import TABLES, load_settings, plan, reproduce
from likewise.experiments.cells import Cell
from likewise.experiments.figures import write_figures
from likewise.experiments.grid import run_cell, run_table, unfinished
from likewise.experiments.problem import Problems, class_of_id
from likewise.experiments.programs import is_exchangeable
from likewise.experiments.settings import TableSettings
from likewise.experiments.store import load_results
from likewise.noise import symmetric

CPU = torch.device("cpu")
SETTINGS = """
table = "small"
title = "digits"
dataset = "digits"
network = "mlp"
noise_kind = ["symmetric"]
noise = [0.2]
trials = 1
methods = ["kcl", "mcl", "mns_estimated", "mns_true", "joint"]
[training]
epochs = 6
[joint]
epochs = 12
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> TableSettings:
    path = tmp_path_factory.mktemp("settings") / "small.toml"
    path.write_text(SETTINGS)
    return load_settings(path)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


@pytest.fixture(scope="module")
def runs(
    settings: TableSettings, digits: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("runs")
    run_table(settings, digits, out, devices=[CPU])
    return out


def strip(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    volatile = ("seconds", "date", "concurrency", "commit")
    return [{k: v for k, v in r.items() if k not in volatile} for r in results]


def test_every_cell_has_its_figures(runs: Path, settings: TableSettings) -> None:
    results = {r["method"]: r for r in load_results(runs)}
    assert set(results) == set(settings.methods)
    assert results["joint"]["accuracy"] > 0.85
    assert results["mcl"]["accuracy"] > 0.4
    for r in results.values():
        assert 0 < r["accuracy"] <= 1
        assert 1 <= r["classes_used"] <= r["n_classes"] == 10
        assert r["commit"]
        assert r["torch"] == metadata.version("torch")
    assert results["mcl"]["transition_error"] is None
    assert results["mns_true"]["transition_error"] is None
    assert 0 < results["joint"]["transition_error"] < 0.25
    assert np.allclose(np.sum(results["joint"]["transition"], axis=1), 1, atol=1e-4)
    assert np.allclose(results["joint"]["true_transition"], symmetric(10, 0.2))


def test_finished_cells_are_skipped(runs: Path, settings: TableSettings, digits: Dataset) -> None:
    assert unfinished(settings, runs) == []
    stamps = {p: p.stat().st_mtime_ns for p in runs.rglob("*") if p.is_file()}
    told: list[Any] = []
    run_table(settings, digits, runs, devices=[CPU], report=told.append)
    assert told == []
    assert {p: p.stat().st_mtime_ns for p in runs.rglob("*") if p.is_file()} == stamps


def test_other_settings_do_not_mix(runs: Path, settings: TableSettings, digits: Dataset) -> None:
    with pytest.raises(InputError, match=r"recipe.epochs was 6, is now 1"):
        run_table(settings.cut(epochs=1), digits, runs, devices=[CPU])


@pytest.fixture(scope="module")
def brief(settings: TableSettings) -> TableSettings:
    """For what is the same however long it is trained."""
    return settings.cut(epochs=2)


@pytest.fixture(scope="module")
def brief_runs(
    brief: TableSettings, digits: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("brief")
    run_table(brief, digits, out, devices=[CPU])
    return out


def test_an_interrupted_table_goes_on_and_gives_the_same(
    brief_runs: Path, brief: TableSettings, digits: Dataset, tmp_path: Path
) -> None:
    class Stop(Exception):
        pass

    def stop(result: dict[str, Any]) -> None:
        raise Stop  # after MCL, before the MNS that goes on from it

    with pytest.raises(Stop):
        run_table(brief, digits, tmp_path, devices=[CPU], report=stop)
    assert [r["method"] for r in load_results(tmp_path)] == ["mcl"]
    told: list[dict[str, Any]] = []
    run_table(brief, digits, tmp_path, devices=[CPU], report=told.append)
    assert [r["method"] for r in told] == ["mns_estimated", "mns_true", "kcl", "joint"]
    assert strip(load_results(tmp_path)) == strip(load_results(brief_runs))


def test_concurrency_changes_nothing(
    brief_runs: Path, brief: TableSettings, digits: Dataset, tmp_path: Path
) -> None:
    from likewise.experiments.grid import run_chains

    run_chains(plan(brief), brief, digits, tmp_path, CPU, concurrency=3)
    assert strip(load_results(tmp_path)) == strip(load_results(brief_runs))


@pytest.mark.slow
def test_jobs_in_processes(runs: Path, settings: TableSettings, digits: Dataset) -> None:
    out, told = runs.parent / "jobs", []
    smaller = settings.cut(methods=("mns_estimated", "joint"))
    run_table(smaller, digits, out, devices=[CPU], jobs=2, report=told.append)
    assert sorted(r["method"] for r in told) == ["joint", "mcl", "mns_estimated"]
    expected = [r for r in load_results(runs) if r["method"] in ("mcl", "mns_estimated", "joint")]
    for ours, alone in zip(load_results(out), expected, strict=True):
        assert ours["accuracy"] == pytest.approx(alone["accuracy"], abs=0.02)


def test_run_cell_runs_what_it_needs(
    settings: TableSettings, digits: Dataset, tmp_path: Path
) -> None:
    cell = Cell("small", "digits", "mlp", "symmetric", 0.2, "mns_estimated", 0)
    quick = settings.cut(epochs=1)
    figures = run_cell(cell, quick, digits, CPU, tmp_path)
    assert figures["method"] == "mns_estimated"
    assert [r["method"] for r in load_results(tmp_path)] == ["mcl", "mns_estimated"]


def reproduce_alone(path: Path, out: Path) -> None:
    torch.set_num_threads(1)
    reproduce(path, None, out, device="cpu")


def test_a_killed_table_resumes(tmp_path: Path) -> None:
    """SIGKILL in the middle: what was finished stays as it is, the rest is run."""
    path, out = tmp_path / "small.toml", tmp_path / "runs"
    methods = 'methods = ["mcl", "mns_estimated", "joint"]'
    text = re.sub("^methods = .*$", methods, SETTINGS, flags=re.M)
    path.write_text(text.replace("trials = 1", "trials = 2").replace("epochs = 12", "epochs = 6"))
    process = Forked(reproduce_alone, path, out)
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob("*/*/result.json")) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.communicate()
    done = {p: p.stat().st_mtime_ns for p in out.glob("*/*/result.json")}
    assert 0 < len(done) < 6
    told: list[Any] = []
    summaries = reproduce(path, None, out, device="cpu", report=told.append)
    assert len(told) == 6 - len(done)
    assert {p: p.stat().st_mtime_ns for p in done} == done
    assert {s.trials for s in summaries} == {2}
    assert (out / "tables.csv").read_text().count("\n") == 7


def test_true_classes_reach_nothing_but_the_scoring(
    settings: TableSettings, digits: Dataset, tmp_path: Path
) -> None:
    """With the noisy labels fixed, other true classes of the training items change nothing."""
    rng = np.random.default_rng(0)
    digits = dataclasses.replace(digits, train_x=digits.train_x[:400], train_y=digits.train_y[:400])
    noisy = np.where(rng.random(400) < 0.2, rng.integers(0, 10, 400), digits.train_y)
    real = dataclasses.replace(
        settings.cut(methods=("mns_estimated", "joint"), epochs=3), noise_kind=("web",), noise=()
    )
    known = dataclasses.replace(digits, noisy={"web": noisy})
    shuffled = dataclasses.replace(known, train_y=rng.permutation(digits.train_y))
    unknown = dataclasses.replace(known, train_y=None)
    figures = []
    for name, dataset in {"known": known, "shuffled": shuffled, "unknown": unknown}.items():
        run_table(real, dataset, tmp_path / name, devices=[CPU])
        keys = ("method", "accuracy", "last_accuracy", "best_epoch", "transition")
        figures.append([{k: r.get(k) for k in keys} for r in load_results(tmp_path / name)])
    assert figures[0] == figures[1] == figures[2]
    unscored = load_results(tmp_path / "unknown")
    assert all(r["transition_error"] is None for r in unscored)


def test_methods_of_a_trial_see_the_same_noise(settings: TableSettings, digits: Dataset) -> None:
    problems = Problems(digits, settings, CPU)
    cells = [
        Cell("small", "digits", "mlp", "symmetric", 0.4, m, t)
        for m in ("mcl", "kcl")
        for t in (0, 1)
    ]
    parts = [problems(cell)[0] for cell in cells]
    ids = [p.components for p in parts]
    assert np.array_equal(ids[0], ids[2])
    assert not np.array_equal(ids[0], ids[1])
    assert parts[0].shared is parts[2].shared
    assert len(parts[0].shared.train) == 1293
    assert len(parts[0].shared.held) == 144


def test_ids_are_named_by_the_class_behind_them() -> None:
    ids = np.array([0, 1, 0, 3, -1], np.int32)
    z = np.array([7, 2, 7, 0, 9])
    named = class_of_id(ids, z, 10)
    assert named[[0, 1, 3]].tolist() == [7, 2, 0]
    assert sorted(named) == list(range(10))


def test_figures_are_drawn_from_saved_runs(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    some = [r for r in load_results(runs) if r["method"] in ("mcl", "mns_estimated", "joint")]
    names = {path.name for path in write_figures(some, tmp_path)}
    assert {"transition-small-0.2-joint.svg", "similarity-small-0.2-mns_estimated.png"} <= names
    assert "curves-small.svg" in names
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)


def test_reproduce_takes_lists_in_either_form(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SETTINGS)
    summaries = reproduce(
        path,
        None,
        tmp_path / "out",
        noise=["0.1,0.3"],
        methods=["mcl, kcl"],
        epochs=1,
        device="cpu",
    )
    assert {(s.noise, s.method) for s in summaries} == {
        *((0.1, "mcl"), (0.1, "kcl"), (0.3, "mcl"), (0.3, "kcl")),
    }


def test_reproduce_refuses_mistakes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no table 'table9'"):
        reproduce("table9", tmp_path, tmp_path / "out", device="cpu")
    with pytest.raises(InputError, match="MNIST was not found"):
        reproduce("table1", tmp_path, tmp_path / "out", device="cpu")
    with pytest.raises(InputError, match="no finished runs"):
        reproduce("figures", tmp_path, tmp_path / "out", device="cpu")
    with pytest.raises(InputError, match="jobs must be at least 1"):
        reproduce("table1", tmp_path, tmp_path / "out", jobs=0, device="cpu")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        reproduce("table1", tmp_path, tmp_path / "file", device="cpu")


@pytest.mark.slow
def test_quick_table1_from_the_real_mnist(tmp_path: Path) -> None:
    root = os.environ.get("LIKEWISE_DATA")
    if not root or not (Path(root) / "MNIST").is_dir():
        pytest.skip("set LIKEWISE_DATA to a folder with MNIST/raw to run this")
    summaries = reproduce("table1", root, tmp_path, quick=True, device="cpu")
    assert {s.method for s in summaries} == {"kcl", "mcl", "mns_estimated", "mns_true", "joint"}
    assert next(s for s in summaries if s.method == "joint").mean > 0.85
    assert (tmp_path / "summary.md").read_text().startswith("**Table 1: MNIST, 1 trial**")


def test_all_leaves_out_what_has_no_data(tmp_path: Path) -> None:
    told: list[str] = []
    with pytest.raises(InputError, match="no finished runs"):
        reproduce("all", tmp_path, tmp_path / "out", device="cpu", tell=told.append)
    assert len(told) == len(TABLES)
    assert told[0].startswith("table1 is left out: MNIST was not found")
    with pytest.raises(InputError, match="data folder"):
        reproduce("table1", tmp_path / "nowhere", tmp_path / "out", device="cpu")


def test_noise_of_another_kind(settings: TableSettings, digits: Dataset) -> None:
    flipped = dataclasses.replace(settings, noise_kind=("pair_flip",), noise=(0.3,))
    cell = plan(flipped)[0][0]
    assert cell.name == "pair_flip-0.3-mcl-0"
    _, truth = Problems(digits, flipped, CPU)(cell)
    assert truth.transition is not None
    assert truth.transition[9, 0] == pytest.approx(0.3)
    assert not is_exchangeable(truth.transition)
    assert is_exchangeable(symmetric(10, 0.3))
