"""A replay cache of costly steps that always come in the same order.

EM is a sequence of fits, each of which follows from those before and from the seed. What each gave
is kept with the state of the random generator after it; a fit that is resumed runs through the
same sequence, reading what is there instead of computing it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import torch
from safetensors import SafetensorError
from torch import Tensor

from likewise.io.atomic import remove_leftovers
from likewise.training.checkpoints import (
    Checkpoints,
    DamagedError,
    check_identity,
    read_checkpoint,
    write_checkpoint,
)
from likewise.training.distributed import current_process_group

Step = tuple[Tensor, Tensor]  # what was computed, and the generator's state after it


class ReplayCache:
    """The steps of one fit, in the folder and after the policy of its checkpoints."""

    def __init__(self, checkpoints: Checkpoints, name: str = "step") -> None:
        self._checkpoints, self._name = checkpoints, name
        self._next = 0
        self._pending: list[tuple[int, Step]] = []
        self._written = time.monotonic()
        self._reading = True
        remove_leftovers(checkpoints.folder, f"{name}-")

    def step(self, compute: Callable[[], Tensor], generator: torch.Generator) -> Tensor:
        """What ``compute()`` gave the last time, or gives now, drawing from ``generator`` only."""
        number, self._next = self._next, self._next + 1
        if self._reading and (kept := self._read(number)) is not None:
            result, state = kept
            generator.set_state(state)
            return result
        self._reading = False  # what comes after a gap would not belong to what is computed now
        result = compute()
        self._pending.append((number, (result.detach().cpu(), generator.get_state())))
        if time.monotonic() - self._written >= self._checkpoints.every_seconds:
            self._flush()
        return result

    def _path(self, number: int) -> str:
        return f"{self._name}-{number:04d}.000000.safetensors"

    def _read(self, number: int) -> Step | None:
        path = self._checkpoints.folder / self._path(number)
        if not path.is_file():
            return None
        try:
            about, tensors = read_checkpoint(path)
        except DamagedError as error:
            warnings.warn(f"{error}; going on from the step before.", stacklevel=3)
            return None
        check_identity(path, about["identity"], self._checkpoints.identity)
        return tensors["result"], tensors["generator"]

    def _flush(self) -> None:
        """Write what is pending, in order, so that no gap can arise; of several ranks one does."""
        self._written = time.monotonic()
        if (group := current_process_group()) is not None and not group.is_first:
            self._pending.clear()
        while self._pending:
            number, (result, state) = self._pending[0]
            try:
                write_checkpoint(
                    self._checkpoints.folder / self._path(number),
                    {"result": result, "generator": state},
                    {"identity": self._checkpoints.identity},
                )
            except (OSError, SafetensorError) as error:
                warnings.warn(f"a step could not be kept ({error}); the fit goes on.", stacklevel=3)
                return
            self._pending.pop(0)
