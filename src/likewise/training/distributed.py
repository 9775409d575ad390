"""Several processes training one model: torch.distributed, started by ``torchrun``.

Every rank holds the whole model and its share of the items, forwards its share of each batch, and
gathers the others' outputs: so the pairs of a batch span all ranks, and the loss is that of one
process with the same batch. Each rank's gradient is that of the whole loss by its own outputs;
their sum over the ranks is the gradient.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from likewise.errors import TrainingError

TIMEOUT = timedelta(minutes=10)
Rows = TypeVar("Rows", bound=np.generic)


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train together."""

    # Its number among them, from 0 on.
    rank: int
    # How many there are.
    world: int

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def block(self, tensor: Tensor) -> Tensor:
        """This rank's part of something that all ranks hold, in equal parts along the rows."""
        size = len(tensor) // self.world
        return tensor[self.rank * size : (self.rank + 1) * size]

    def gather(self, local: Tensor) -> Tensor:
        """(world * n, ...) the parts of all ranks in order; only this rank's carries a gradient."""
        parts = [torch.empty_like(local) for _ in range(self.world)]
        with _together():
            distributed.all_gather(parts, local.detach().contiguous())
        parts[self.rank] = local
        return torch.cat(parts)

    def gather_rows(self, local: NDArray[Rows]) -> NDArray[Rows]:
        """(n, ...) the rows (m, ...) of all ranks in order; m may be another one on each."""
        rows = torch.from_numpy(np.require(local, requirements=["C", "W"])).to(_device())
        lengths = torch.zeros(self.world, dtype=torch.int64, device=rows.device)
        lengths[self.rank] = len(rows)
        with _together():
            distributed.all_reduce(lengths)
            padded = rows.new_zeros((int(lengths.max()), *rows.shape[1:]))
            padded[: len(rows)] = rows
            parts = [torch.empty_like(padded) for _ in range(self.world)]
            distributed.all_gather(parts, padded)
        found = torch.cat([part[:n] for part, n in zip(parts, lengths.tolist())])
        return np.asarray(found.cpu().numpy())

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace each gradient by its sum over all ranks, in one message."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        with _together():
            distributed.all_reduce(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, part in zip(gradients, torch.split_with_sizes(flat, sizes)):
            gradient.copy_(part.view_as(gradient))

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Take the first rank's values, where rounding may have set the ranks apart."""
        with _together():
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)


def _device() -> torch.device:
    """Where the ranks exchange tensors: NCCL knows GPUs only."""
    return torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")


def current_process_group() -> ProcessGroup | None:
    """The ranks that this process has joined; None where it trains alone."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    world = distributed.get_world_size()
    return ProcessGroup(distributed.get_rank(), world) if world > 1 else None


@contextlib.contextmanager
def process_group_of_torchrun() -> Iterator[ProcessGroup | None]:
    """Join the ranks that torchrun started, if it did; leave them at the end."""
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if alone or distributed.is_initialized():
        yield current_process_group()
        return
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with _together():
        distributed.init_process_group("nccl" if cuda else "gloo", timeout=TIMEOUT)
    before = signal.signal(signal.SIGTERM, _ended)
    try:
        yield current_process_group()
    finally:
        signal.signal(signal.SIGTERM, before)
        distributed.destroy_process_group()


def is_alone() -> bool:
    """Whether no other process shares the work, or will."""
    return int(os.environ.get("WORLD_SIZE", "1")) == 1 and current_process_group() is None


def _ended(number: int, frame: FrameType | None) -> None:
    """torchrun ends the ranks that are left when one is lost."""
    raise TrainingError(
        "this rank was told to end, as torchrun does when another rank was lost: start the same "
        "command again with --resume, and it goes on from its checkpoint."
    )


@contextlib.contextmanager
def _together() -> Iterator[None]:
    """What a lost rank does to the others, said in words."""
    try:
        yield
    except (RuntimeError, distributed.DistError) as error:
        raise TrainingError(
            "another rank of this training was lost (or cannot be reached): start the same "
            f"command again with --resume, and it goes on from its checkpoint ({error})."
        ) from error
