"""What a method has learned, and how a trained run becomes that."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from likewise.training.run import TrainingRun

FloatMatrix = NDArray[np.float64]


@dataclass(frozen=True)
class FitResult:
    """What a method learned."""

    method: str
    model: nn.Module
    last_model: nn.Module
    transition: FloatMatrix | None
    history: list[dict[str, Any]]
    best_epoch: int
    score: float
    choice: str = ""
    channel: Any = None
    annotators: dict[str, list[Any]] | None = None
    posterior: NDArray[Any] | None = None
    seconds_before: float = 0.0  # of training before it was resumed


MethodProgram = Generator[TrainingRun, TrainingRun, FitResult]


def finish(run: TrainingRun, method: str, transition: FloatMatrix | None) -> FitResult:
    """The outcome of a trained run."""
    return FitResult(
        method=method,
        model=run.select(),
        last_model=run.select(best=False),
        transition=transition,
        history=[{"method": method, **row} for row in run.history],
        best_epoch=int(run.best.epoch),
        score=float(run.best.score),
        seconds_before=run.log.seconds_before,
    )


def last_stage(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the network that was kept: where several were trained, its own come last."""
    return [row for row in history if row.get("method") == history[-1].get("method")]
