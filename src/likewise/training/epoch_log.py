"""The figures of every epoch: losses gathered on the device, read when they are there."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from torch import Tensor

from likewise.errors import NonFiniteError
from likewise.training.nonfinite import complaint, epoch_figures
from likewise.training.recipe import Recipe

Row = dict[str, float]


class _Record(NamedTuple):
    epoch: int
    figures: Tensor  # (4,) of `epoch_figures`
    score: Tensor  # ()
    rate: Tensor  # (): the last learning rate of the epoch


class EpochLog:
    """One row for each epoch: mean loss, held-out cost, learning rate.

    Figures are read one epoch late, when the device has long computed them: nobody waits.
    """

    def __init__(self, steps_per_epoch: int, device: torch.device, recipe: Recipe) -> None:
        self.rows: list[Row] = []
        self.losses = torch.zeros(steps_per_epoch, device=device)  # of this epoch
        self.skipped = torch.zeros((), dtype=torch.int64, device=device)  # in this epoch
        self.seconds_before = 0.0  # spent on this run before it was resumed
        self._lr, self._skips = recipe.lr, recipe.nonfinite == "skip"
        self._started: float | None = None
        self._pending: list[_Record] = []

    def begin_epoch(self) -> None:
        self._started = self._started or time.perf_counter()
        self.skipped.zero_()

    @torch.no_grad()
    def add_step(self, step: Tensor, loss: Tensor, skipped: Tensor | None) -> None:
        """The loss () of a step (1,), and whether its batch was skipped."""
        self.losses.index_copy_(0, step, loss.float().reshape(1))
        if skipped is not None:
            self.skipped += skipped

    def end_epoch(self, epoch: int, score: Tensor, rate: Tensor) -> None:
        """Note an epoch's figures; those of the one before are there by now."""
        figures = epoch_figures(self.losses, self.skipped)
        self._pending.append(_Record(epoch, figures, score, rate))
        if len(self._pending) > 1:
            self._read(self._pending.pop(0))

    def flush(self) -> None:
        """Wait for the figures of all epochs so far."""
        while self._pending:
            self._read(self._pending.pop(0))

    @property
    def seconds(self) -> float:
        """Time spent on this run, with that before it was resumed."""
        now = 0.0 if self._started is None else time.perf_counter() - self._started
        return self.seconds_before + now

    def resume(self, rows: list[Row], seconds: float) -> None:
        """Go on after these rows."""
        self.rows, self.seconds_before = [dict(row) for row in rows], seconds
        self._pending = []

    def state_dict(self) -> dict[str, Tensor]:
        return {"losses": self.losses, "skipped": self.skipped}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.losses.copy_(state["losses"])
        self.skipped.copy_(state["skipped"])

    def _read(self, record: _Record) -> None:
        mean, mean_finite, skipped, first_bad = record.figures.tolist()
        loss, held_out = mean_finite if self._skips else mean, float(record.score)
        row = {
            "epoch": record.epoch,
            "loss": loss,
            "held_out": held_out,
            "lr": float(record.rate),
        }
        if self._skips:
            row["skipped"] = skipped
        self.rows.append(row)
        wrong = complaint(
            epoch=record.epoch,
            loss=loss,
            held_out=held_out,
            batch=int(first_bad),
            batches=len(self.losses),
            lr=self._lr,
        )
        if wrong is not None:
            raise NonFiniteError(wrong)
