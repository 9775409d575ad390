"""The step of training as a CUDA graph: captured once, replayed without the interpreter."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Protocol

import torch

from likewise.errors import TrainingError
from likewise.nn.stochastic import StepRandomness
from likewise.training.batches import StepCounter
from likewise.training.devices import fastest_convolutions, new_stream, own_cublas_workspaces
from likewise.training.state import State

WARMUP_STEPS = 3  # eager steps before a capture, so that libraries have set themselves up


class Steps(Protocol):
    """What can be captured: a step, all the tensors that it changes, and its counter."""

    @property
    def counter(self) -> StepCounter: ...

    def eager_step(self) -> None: ...

    def forget_gradients(self) -> None: ...

    def snapshot(self) -> State: ...

    def restore(self, state: State) -> None: ...


class CapturedStep:
    """Runs the steps of a training run: replayed where they could be captured, else eagerly.

    ``wanted`` True must succeed, None tries and falls back to eager steps, False does not try.
    """

    def __init__(
        self, device: torch.device, wanted: bool | None, randomness: StepRandomness | None
    ) -> None:
        self.device, self.randomness = device, randomness
        self._wanted = device.type == "cuda" if wanted is None else wanted
        self._required = bool(wanted)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._variant: object = None  # of the step that the graph holds

    def __call__(self, steps: Steps) -> None:
        """One step."""
        with nullcontext() if self.randomness is None else self.randomness.next_step():
            if self._graph is not None:
                self._graph.replay()
            else:
                steps.eager_step()

    def begin_epoch(self, steps: Steps, epoch: int, variant: object) -> None:
        """Capture the step, where that is to be done, unless the graph there is still the step.

        ``variant`` tells steps apart whose operations differ, as with and without a mean teacher.
        """
        if self.randomness is not None:
            self.randomness.begin_epoch(epoch)
        if self._wanted and self._variant != variant:
            self._try_capture(steps)
            self._variant = variant

    def invalidate(self) -> None:
        """The step has changed: the next epoch captures it anew."""
        self._graph = self._variant = None

    def _try_capture(self, steps: Steps) -> None:
        before = steps.snapshot()
        try:
            with fastest_convolutions():
                self._graph = self._captured(steps)
        except Exception as error:  # whatever a user's module does that a graph cannot hold
            if self._required:
                raise TrainingError(f"the training step cannot be captured: {error}") from error
            self._graph, self._wanted = None, False
            torch.cuda.synchronize(self.device)
        steps.restore(before)

    def _captured(self, steps: Steps) -> torch.cuda.CUDAGraph:
        torch.cuda.synchronize(self.device)
        side = new_stream(self.device)
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                steps.counter.reset()
                steps.eager_step()
        torch.cuda.synchronize(self.device)
        graph = torch.cuda.CUDAGraph()
        steps.counter.reset()
        steps.forget_gradients()
        with own_cublas_workspaces(), torch.cuda.graph(graph, stream=side):
            steps.eager_step()
        return graph
