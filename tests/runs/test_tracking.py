"""A run told to a tracker reads back as it was."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.runs import tracking


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "my run"
    folder.mkdir()
    config = {"kind": "likewise-run", "version": 1, "recipe": {"epochs": 2}, "note": "x" * 900}
    metrics = {"method": "mcl", "choice": "mcl: as asked", "warnings": [], "accuracy": 0.75}
    metrics |= {"transition": [[1.0]], "seconds": {"fit": 2.5}, "device": "cpu"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "history.csv").write_text("method,epoch,loss,score\nmcl,0,0.5,0.75\nmcl,1,0.25,nan\n")
    return folder


def test_tensorboard_holds_history_and_final_figures(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracking.log_run(f"tensorboard:{tmp_path / 'boards'}", run)
    events = EventAccumulator(str(tmp_path / "boards" / "my run"))
    events.Reload()
    losses = [(event.step, event.value) for event in events.Scalars("history/loss")]
    assert losses == [(0, 0.5), (1, 0.25)]
    assert [event.value for event in events.Scalars("history/score")] == [0.75]
    assert events.Scalars("final/accuracy")[0].value == 0.75
    text = events.Tensors("parameters/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| recipe.epochs | 2 |" in text


def test_mlflow_holds_parameters_history_and_final_figures(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    monkeypatch.chdir(tmp_path)
    tracking.log_run("mlflow:tracked", run)
    tracking.log_run("mlflow:tracked", run)  # a second time: another run of the same experiment
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = MlflowClient(tracking_uri=(tmp_path / "tracked").as_uri())
    experiment = client.get_experiment_by_name("likewise")
    found = client.search_runs([experiment.experiment_id])
    assert [item.info.run_name for item in found] == ["my run", "my run"]
    assert found[0].data.params["recipe.epochs"] == "2"
    assert found[0].data.metrics["final.seconds.fit"] == 2.5
    assert found[0].info.status == "FINISHED"
    steps = client.get_metric_history(found[0].info.run_id, "loss")
    assert [(m.step, m.value) for m in steps] == [(0, 0.5), (1, 0.25)]


@pytest.mark.parametrize("spec", ["tensorboard", "tensorboard:", "wandb:here", ""])
def test_a_spec_that_names_no_tracker(spec: str, run: Path) -> None:
    with pytest.raises(InputError, match="tensorboard:FOLDER or mlflow:"):
        tracking.log_run(spec, run)


@pytest.mark.parametrize(
    ("tracker", "module"), [("tensorboard", "torch.utils.tensorboard"), ("mlflow", "mlflow")]
)
def test_a_tracker_that_is_not_installed(
    tracker: str, module: str, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'likewise\[{tracker}\]'"):
        tracking.parse_spec(f"{tracker}:somewhere")


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with pytest.raises(InputError, match=r"is not a Likewise run: it has no config\.json"):
        tracking.log_run("tensorboard:boards", tmp_path)


def test_mlflow_is_told_to_tell_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    for name in tracking.QUIET:
        monkeypatch.delenv(name, raising=False)
    tracking.parse_spec("mlflow:somewhere")
    assert {name: os.environ.get(name) for name in tracking.QUIET} == tracking.QUIET


def test_only_finite_numbers_are_told() -> None:
    told = [tracking.number_of(value) for value in (1, 0.5, True, "2", None, [3], float("nan"))]
    assert told == [1, 0.5, None, None, None, None, None]
