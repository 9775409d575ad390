"""The pairwise objective for more judgements than a batch of random ones could ever work through.

Where `ListedPairwise` forwards both items of every judgement, here a training row is a whole batch
of `likewise.training.pair_batches`, whose judgements share their items. Items are dealt anew each
epoch, from (seed, epoch) alone, so that a resumed run sees what it would have seen.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from likewise.pairs import Pairs
from likewise.pairs.columns import for_torch
from likewise.training.affine_plane import count_lines
from likewise.training.objectives.pairwise import ListedPairwise, Objective, PairwiseLoss
from likewise.training.pair_batches import BlockAssignment, PairBatch, PairSchedule

JUDGEMENTS_PER_STEP = 1024  # where nobody asks for another number
# From so many judgements on, forwarding both items of each is what takes the time on a CPU.
MANY_JUDGEMENTS = 500_000
# How many judgements a forwarded item should serve: forwarding then costs little more than they do.
PER_FORWARD = 2.0
MIN_BATCH = 1024


def listed_objective(
    loss: PairwiseLoss,
    train: Pairs,
    held: Pairs,
    device: torch.device,
    batch: int | None,
    seed: int,
) -> Objective:
    """The objective for listed judgements: random batches of few, shared batches of many.

    ``batch`` is how many judgements a step should take; None leaves that to their number. On a GPU
    forwards are cheap, and several processes share a batch by its judgements: there random batches
    stay.
    """
    together = distributed.is_available() and distributed.is_initialized()
    if device.type != "cpu" or together or len(train) < MANY_JUDGEMENTS:
        return ListedPairwise(loss, train, held, device, batch or JUDGEMENTS_PER_STEP)
    size = batch or shared_batch(len(train), train.n_items)
    return SharedPairwise(loss, train, held, device, size, seed)


def shared_batch(n_judgements: int, n_items: int) -> int:
    """Judgements a batch such that a forwarded item serves `PER_FORWARD` of them, if it can be.

    A plane of order q has q² + q lines, and an item of a line M / (N q) judgements there.
    """
    order = max(n_judgements / (PER_FORWARD * n_items), 2.0)
    return max(round(n_judgements / (order**2 + order)), MIN_BATCH)


class SharedPairwise(Objective):
    """Listed judgements in batches that share the forwards of their items; one row is a batch.

    The judgements stay where they are, in the host's memory; a batch of them is sent on its way.
    """

    rows_are_batches = True

    def __init__(
        self,
        loss: PairwiseLoss,
        train: Pairs,
        held: Pairs,
        device: torch.device,
        batch_judgements: int,
        seed: int = 0,
    ) -> None:
        self.pairwise = loss
        self.device = device
        self.schedule = PairSchedule(train, batch_judgements)
        self.held = _whole(held)
        self.n_rows = count_lines(self.schedule.order)
        self.seed = seed
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self._assignment: tuple[int, BlockAssignment] | None = None
        self._batch: tuple[int, int, PairBatch] | None = None

    def items_of(self, rows: Tensor) -> Tensor:
        return self._tensor(self._batch_of(rows).items)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return self._cost(logits, self._batch_of(rows))

    def score(self, logits: Tensor) -> Tensor:
        return self._cost(logits, self.held)

    def refine(self, logits: Tensor, done: int, epochs: int) -> None:
        self.epoch += 1

    def tensors(self) -> dict[str, Tensor]:
        return {"epoch": self.epoch}

    def _cost(self, logits: Tensor, batch: PairBatch) -> Tensor:
        columns = (batch.left, batch.right, batch.same)
        left, right, same = (self._tensor(column) for column in columns)
        weight = None if batch.weight is None else self._tensor(batch.weight)
        return self.pairwise.listed(logits, left, right, same, weight)

    def _batch_of(self, rows: Tensor) -> PairBatch:
        """The batch that is this row; kept between `items_of` and `loss` of one step."""
        epoch, line = int(self.epoch), int(rows[0])
        if self._batch is None or self._batch[:2] != (epoch, line):
            if self._assignment is None or self._assignment[0] != epoch:
                self._assignment = (
                    epoch,
                    self.schedule.assignment(np.random.default_rng([self.seed, epoch])),
                )
            assignment = self._assignment[1]
            self._batch = epoch, line, assignment.batch(assignment.rows(line))
        return self._batch[2]

    def _tensor(self, column: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(for_torch(column)).to(self.device)


def _whole(pairs: Pairs) -> PairBatch:
    listed = pairs.explicit()
    nobody = np.empty(0, np.int32)  # which items and rows these are is not asked
    return PairBatch(nobody, listed.left, listed.right, listed.same, listed.weight, nobody)
