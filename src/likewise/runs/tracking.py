"""A finished run told to an experiment tracker: TensorBoard or MLflow, by one option.

``track="tensorboard:DIR"`` or ``track="mlflow:URI"`` (a folder, or a server's address). It reads
the run folder only, so that a run can be tracked long after it ended, or twice.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.runs.run import Run

TRACKERS = ("tensorboard", "mlflow")
# Nothing goes out unasked: MLflow would tell its makers of each use, unless told not to.
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
MLFLOW_BATCH = 1000  # the most metrics that one call to an MLflow server may carry
MLFLOW_TEXT = 500  # and the longest value of a parameter that every server takes


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told: flat parameters, a row of numbers an epoch, final figures."""

    name: str  # the run folder's name
    parameters: dict[str, str]  # what was asked, flat
    history: list[dict[str, float]]  # a row of numbers an epoch
    metrics: dict[str, float]  # final figures

    @classmethod
    def read(cls, folder: Path) -> TrackedRun:
        run = Run.open(folder)
        config = dict(_leaves(run.config))
        metrics = {key: number_of(value) for key, value in _leaves(run.metrics)}
        rows = [{key: number_of(value) for key, value in row.items()} for row in run.history]
        return cls(
            name=folder.resolve().name,
            parameters={key: str(value) for key, value in config.items()},
            history=[{k: v for k, v in row.items() if v is not None} for row in rows],
            metrics={key: value for key, value in metrics.items() if value is not None},
        )


def parse_spec(spec: str) -> tuple[str, str]:
    """``(tracker, where)`` of a ``--track`` option, checked before anything is trained."""
    tracker, separator, where = spec.partition(":")
    if tracker not in TRACKERS or not separator or not where:
        raise InputError(
            f"track must be tensorboard:FOLDER or mlflow:FOLDER_OR_ADDRESS, not {spec!r}."
        )
    _LOADERS[tracker]()
    return tracker, where


def log_run(spec: str, run_folder: str | Path) -> None:
    """Tell the tracker of ``spec`` about a finished run."""
    tracker, where = parse_spec(spec)
    run = TrackedRun.read(Path(run_folder))
    if tracker == "tensorboard":
        _to_tensorboard(run, Path(where))
    else:
        _to_mlflow(run, where)


def _to_tensorboard(run: TrackedRun, folder: Path) -> None:
    writer = _tensorboard_writer()(log_dir=str(folder / run.name))
    try:
        for step, row in enumerate(run.history):
            for key, value in row.items():
                writer.add_scalar(f"history/{key}", value, step)
        for key, value in run.metrics.items():
            writer.add_scalar(f"final/{key}", value, len(run.history))
        rows = "\n".join(f"| {key} | {value} |" for key, value in run.parameters.items())
        writer.add_text("parameters", f"| parameter | value |\n|---|---|\n{rows}")
    finally:
        writer.close()


def _to_mlflow(run: TrackedRun, where: str) -> None:
    entities, client_class = _mlflow()
    address = where if "://" in where else Path(where).resolve().as_uri()
    try:
        with _file_store_allowed():
            client = client_class(tracking_uri=address)
        experiment = client.get_experiment_by_name("likewise")
        found = experiment.experiment_id if experiment else client.create_experiment("likewise")
        tracked = client.create_run(found, run_name=run.name)
        run_id, now = tracked.info.run_id, int(time.time() * 1000)
        for key, value in run.parameters.items():
            client.log_param(run_id, _mlflow_key(key), value[:MLFLOW_TEXT])
        metrics = [
            entities.Metric(_mlflow_key(key), value, now, step)
            for step, row in enumerate(run.history)
            for key, value in row.items()
        ]
        metrics += [
            entities.Metric(_mlflow_key(f"final.{key}"), value, now, 0)
            for key, value in run.metrics.items()
        ]
        for start in range(0, len(metrics), MLFLOW_BATCH):
            client.log_batch(run_id, metrics=metrics[start : start + MLFLOW_BATCH])
        client.set_terminated(run_id)
    except Exception as error:  # MLflow's own, and those of whatever store the address names
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"MLflow at {where} did not take the run: {reason}") from error


def _tensorboard_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "tracking by TensorBoard needs it installed: pip install 'likewise[tensorboard]'."
        ) from error
    return SummaryWriter


def _mlflow() -> tuple[Any, Any]:
    os.environ.update(QUIET)  # read when MLflow is imported, and by its threads later
    try:
        from mlflow import entities
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise InputError(
            "tracking by MLflow needs it installed: pip install 'likewise[mlflow]'."
        ) from error
    return entities, MlflowClient


@contextlib.contextmanager
def _file_store_allowed() -> Iterator[None]:
    """MLflow 3 opens a folder only where this variable says that a folder was meant."""
    name = "MLFLOW_ALLOW_FILE_STORE"
    before = os.environ.get(name)
    os.environ.setdefault(name, "true")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


_LOADERS: dict[str, Callable[[], Any]] = {"tensorboard": _tensorboard_writer, "mlflow": _mlflow}


def _mlflow_key(name: str) -> str:
    """A name with the characters that MLflow allows."""
    return "".join(c if c.isalnum() or c in "_-./ " else "_" for c in name)[:250]


def number_of(value: object) -> float | None:
    """A finite number; None for words, lists, yes and no."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _leaves(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Nested objects as dotted names; lists stay values."""
    if not isinstance(value, dict):
        yield prefix or "value", value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{prefix}.{key}" if prefix else str(key))
