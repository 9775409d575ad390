"""Capturing a step, as far as that can be seen without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch

from likewise.training import captured_step
from likewise.training.captured_step import WARMUP_STEPS, CapturedStep


class Counter:
    def reset(self) -> None:
        pass


class Steps:
    """A step that only says that it was taken."""

    counter = Counter()

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def eager_step(self) -> None:
        self.log.append("step")

    def forget_gradients(self) -> None:
        self.log.append("forget")

    def snapshot(self) -> dict[str, torch.Tensor]:
        return {}

    def restore(self, state: dict[str, torch.Tensor]) -> None:
        self.log.append("restore")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done on a pretended GPU, in order."""
    happened: list[str] = []

    @contextmanager
    def graph(*_: object, **__: object) -> Iterator[None]:
        happened.append("capture")
        yield
        happened.append("captured")

    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(captured_step, "new_stream", lambda _: None)
    monkeypatch.setattr(
        torch._C, "_cuda_clearCublasWorkspaces", lambda: happened.append("clear"), raising=False
    )
    return happened


def test_a_graph_has_workspaces_of_its_own(log: list[str]) -> None:
    """Those of the stream would be shared with other graphs that are replayed side by side."""
    CapturedStep(torch.device("cuda"), True, None).begin_epoch(Steps(log), 0, variant=False)
    warm = ["step"] * WARMUP_STEPS
    captured = ["clear", "capture", "step", "captured", "clear"]
    assert log == [*warm, "forget", *captured, "restore"]


def test_the_same_step_is_not_captured_again(log: list[str]) -> None:
    steps, step = Steps(log), CapturedStep(torch.device("cuda"), True, None)
    step.begin_epoch(steps, 0, variant=False)
    log.clear()
    step.begin_epoch(steps, 1, variant=False)
    assert log == []
    step.begin_epoch(steps, 2, variant=True)
    assert "capture" in log
