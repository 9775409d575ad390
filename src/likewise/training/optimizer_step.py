"""One optimisation step: loss, gradients, update, average; on a GPU captured once and replayed."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor

from likewise.errors import TrainingError
from likewise.nn.stochastic import seeded
from likewise.training.devices import fastest_convolutions, new_stream
from likewise.training.ema import averaged_state, ema_update_
from likewise.training.finite import drop_batch
from likewise.training.step_loss import StepLoss

WARMUP_STEPS = 3  # eager steps before a capture, so that libraries have set themselves up


class OptimisedStep(StepLoss):
    """The part of a `likewise.training.run.TrainingRun` that changes the weights, step by step."""

    seed: int
    losses: Tensor  # of this epoch's steps
    skipped: Tensor  # batches of this epoch that counted for nothing
    _rates: Tensor  # learning rate of every step of the run
    _decay: Tensor  # decay of the averaged weights at every step
    _counters: Tensor  # step_index and global_step
    _may_draw: bool  # whether the model draws random numbers of its own
    _steps_done: int  # in this epoch
    _capture: bool
    _must_capture: bool
    _graph: torch.cuda.CUDAGraph | None
    _graph_has_mean_teacher: bool | None  # whether the captured step has a teacher

    def step(self) -> None:
        """One optimisation step."""
        done, self._steps_done = self._steps_done, self._steps_done + 1
        own = seeded(self.seed, self.epoch, done, self.device) if self._may_draw else nullcontext()
        with own:
            if self._graph is not None:
                self._graph.replay()
            else:
                self._eager_step()

    def _eager_step(self) -> None:
        self._set_rate()
        self.optimizer.zero_grad(set_to_none=True)
        skips = self.recipe.nonfinite == "skip"
        buffers = [b for b in self.model.buffers() if b.is_floating_point()] if skips else []
        before = [b.clone() for b in buffers]
        loss = self._loss()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.process_group is not None:
            self.process_group.sum_gradients(self._parameters)
        if skips:
            gradients = [p.grad for p in self._parameters if p.grad is not None]
            self.skipped += drop_batch(loss, gradients, buffers, before)
        self.optimizer.step()
        with torch.no_grad():
            self.losses.index_copy_(0, self.step_index, loss.detach().float().reshape(1))
            if self.averaged is not None:
                self._average()
            self._counters += 1

    def _set_rate(self) -> None:
        group = self.optimizer.param_groups[0]
        if isinstance(group["lr"], Tensor):
            torch.index_select(self._rates, 0, self.global_step, out=group["lr"].view(1))
        else:
            group["lr"] = float(self._rates[self.global_step])

    def _average(self) -> None:
        assert self.averaged is not None
        weight = 1 - self._decay[self.global_step].squeeze(0)
        ema_update_(averaged_state(self.averaged), averaged_state(self.model), weight)

    def _capture_if_changed(self) -> None:
        """Capture the step, where that is to be done, unless the graph there is still the step."""
        if self._capture and self._graph_has_mean_teacher is not self.has_mean_teacher:
            self._try_capture()

    def _try_capture(self) -> None:
        before = self.snapshot()
        try:
            with fastest_convolutions():
                self._graph = self._captured()
        except Exception as error:  # whatever a user's module does that a graph cannot hold
            if self._must_capture:
                raise TrainingError(f"the training step cannot be captured: {error}") from error
            self._graph, self._capture = None, False
            torch.cuda.synchronize(self.device)
        self.restore(before)
        self._graph_has_mean_teacher = self.has_mean_teacher

    def _captured(self) -> torch.cuda.CUDAGraph:
        torch.cuda.synchronize(self.device)
        side = new_stream(self.device)
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                self.step_index.zero_()
                self.global_step.zero_()
                self._eager_step()
        torch.cuda.synchronize(self.device)
        graph = torch.cuda.CUDAGraph()
        self.step_index.zero_()
        self.global_step.zero_()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph, stream=side):
            self._eager_step()
        return graph
