"""Batches of items, made on the device.

All randomness of an epoch (order, crops, flips, mixing) is drawn before it begins, from (seed,
epoch) alone: so a run can be captured as a CUDA graph, resumed at any epoch, or run beside others
without changing what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.errors import InputError, TrainingError
from likewise.items import Items
from likewise.training.augmentation import DRAWS, strong_views
from likewise.training.distributed import ProcessGroup
from likewise.training.objectives.pairwise import Objective
from likewise.training.recipe import Recipe
from likewise.training.sources import ItemSource, ResidentItems, source_of

STUDENT, TEACHER = 0, 1  # the two views of a batch: each image is moved twice


@dataclass
class EpochPlan:
    """What happens at each step of one epoch, on the device."""

    # (steps, B) positions among the objective's rows.
    rows: Tensor
    # (steps, n, 2, 2) pixels by which each of a step's n images is moved: view, (down, along).
    shift: Tensor | None
    # (steps, n, 2) whether it is flipped, in each view.
    flip: Tensor | None
    # (steps,) mixup's share of the item itself.
    mix: Tensor | None
    # (steps, n, DRAWS) what the student's strong view of each image is made of.
    strong: Tensor | None = None

    @classmethod
    def draw(
        cls,
        recipe: Recipe,
        seed: int,
        epoch: int,
        shards: Sequence[NDArray[np.int64]],
        batch: int,
        forwards: int,
    ) -> EpochPlan:
        """The plan of an epoch: each batch takes as many rows of one shard as of another."""
        rng = np.random.default_rng([seed, epoch])
        steps, share = steps_of(shards, batch), batch // len(shards)
        orders = [rng.permutation(shard)[: steps * share] for shard in shards]
        rows = torch.from_numpy(np.hstack([order.reshape(steps, share) for order in orders]))
        shift = flip = mix = None
        if recipe.shift:
            width = 2 * recipe.shift + 1
            shift = torch.from_numpy(
                rng.integers(width, size=(steps, forwards, 2, 2)) - recipe.shift
            )
        if recipe.flip:
            flip = torch.from_numpy(rng.random((steps, forwards, 2)) < 0.5)
        if recipe.mixup:
            mix = torch.from_numpy(rng.beta(recipe.mixup, recipe.mixup, steps).astype(np.float32))
        strong = None
        if recipe.augment_strength:
            drawn = rng.random((steps, forwards, DRAWS), dtype=np.float32)
            strong = torch.from_numpy(2 * drawn - 1)
        return cls(rows, shift, flip, mix, strong)

    def copy_(self, other: EpochPlan) -> None:
        """Take over another plan's content in place, so that a captured graph sees it."""
        for mine, theirs in zip(self._tensors(), other._tensors()):
            mine.copy_(theirs, non_blocking=True)

    def to(self, device: torch.device) -> EpochPlan:
        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        drawn = (self.shift, self.flip, self.mix, self.strong)
        return EpochPlan(self.rows.to(device), *map(move, drawn))

    def _tensors(self) -> list[Tensor]:
        drawn = (self.rows, self.shift, self.flip, self.mix, self.strong)
        return [tensor for tensor in drawn if tensor is not None]


def steps_of(shards: Sequence[NDArray[np.int64]], batch: int) -> int:
    """How many whole batches an epoch has."""
    return max(1, min(map(len, shards)) // (batch // len(shards)))


class StepCounter:
    """Which step this is, on the device: a captured step counts on by itself."""

    def __init__(self, device: torch.device) -> None:
        self._both = torch.zeros(2, dtype=torch.int64, device=device)
        self.in_epoch, self.in_run = self._both[:1], self._both[1:]  # (1,) each

    def advance(self) -> None:
        self._both += 1

    def begin_epoch(self) -> None:
        self.in_epoch.zero_()

    def reset(self) -> None:
        self._both.zero_()

    def state_dict(self) -> dict[str, Tensor]:
        return {"in_epoch": self.in_epoch, "in_run": self.in_run}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.in_epoch.copy_(state["in_epoch"])
        self.in_run.copy_(state["in_run"])


class Batches:
    """The batches of a run: which rows a step takes, and the items behind them.

    Parameters
    ----------
    items : training items as they came, or a source of them
    objective, recipe : say what a row is, and how many a step takes
    seed : decides order, crops, flips and mixing of every epoch
    process_group, shards : the processes that train together, each with its share of the items;
        without ``process_group``, ``shards`` draws the same batches in one process
    """

    def __init__(
        self,
        items: Items | ItemSource,
        objective: Objective,
        recipe: Recipe,
        *,
        seed: int,
        device: torch.device,
        process_group: ProcessGroup | None,
        shards: int,
    ) -> None:
        self.objective, self.seed, self.device = objective, seed, device
        self.process_group = process_group
        self.shards = shards if process_group is None else process_group.world
        self._shares_items = process_group is not None and objective.rows_are_items
        part = None
        if process_group is not None and self._shares_items:
            # An item's rank is its index modulo their number.
            part = slice(process_group.rank, None, process_group.world)
        self.source = source_of(items, device, part)
        self._row_shards = self._shard_rows()
        self.size = 1
        if not objective.rows_are_batches:
            smallest = min(map(len, self._row_shards))
            if not smallest:
                raise InputError(
                    "the judgements tell nothing of the items to be trained on; give more "
                    "judgements, or change held_out."
                )
            self.size = min(recipe.items_per_step // self.shards, smallest) * self.shards
        self.steps_per_epoch = steps_of(self._row_shards, self.size)
        self.total_steps = self.steps_per_epoch * recipe.epochs
        self.counter = StepCounter(device)
        self._strong_view = strong_views(recipe.augment_strength, recipe.compile)
        self._plan: EpochPlan | None = None
        self._forwards: int | None = None  # images whose moves a step's plan holds

    def begin_epoch(self, recipe: Recipe, epoch: int) -> None:
        """Draw the epoch's plan, in place of the one before."""
        if self._forwards is None:
            some_rows = torch.zeros(self.size, dtype=torch.int64, device=self.device)
            self._forwards = len(self.objective.items_of(some_rows))
        plan = EpochPlan.draw(recipe, self.seed, epoch, self._row_shards, self.size, self._forwards)
        if self._plan is None:
            self._plan = plan.to(self.device)
        else:
            self._plan.copy_(plan)
        order = None
        if self.source.needs_order:
            order = torch.stack([self.objective.items_of(rows) for rows in self._plan.rows])
        self.source.begin_epoch(epoch, order)
        self.counter.begin_epoch()

    @property
    def plan(self) -> EpochPlan:
        if self._plan is None:
            raise TrainingError("begin_epoch() must come before step().")
        return self._plan

    def rows(self) -> Tensor:
        """(B,) this step's positions among the objective's rows."""
        return self.plan.rows[self.counter.in_epoch].squeeze(0)

    def mix(self) -> Tensor:
        """() mixup's share of the item itself, in this step."""
        assert self.plan.mix is not None
        return self.plan.mix[self.counter.in_epoch].squeeze(0)

    def take(self, index: Tensor, view: int) -> Tensor:
        """The items at ``index`` (n,) that this process forwards, moved as planned for a view."""
        shift = flip = None
        if self.source.holds_images:
            moves = (self.plan.shift, self.plan.flip)
            shift, flip = (self._of_step(move, view, len(index)) for move in moves)
        if self.process_group is not None:
            index = self.process_group.block(self._padded(index))
            index = index // self.process_group.world if self._shares_items else index
            shift = None if shift is None else self.process_group.block(shift)
            flip = None if flip is None else self.process_group.block(flip)
        x = self.source.take(index, shift, flip)
        if view == STUDENT and self.plan.strong is not None and self.source.holds_images:
            strong = self.plan.strong[self.counter.in_epoch].squeeze(0)
            if self.process_group is not None:
                strong = self.process_group.block(strong)
            strong = strong[torch.arange(len(x), device=self.device) % len(strong)]
            x = self._strong_view(x, strong)
        return x

    def features(self) -> Tensor | None:
        """(N, d) all items, where they are feature vectors in memory."""
        if isinstance(self.source, ResidentItems) and not self.source.holds_images:
            return self.source.items
        return None

    def sample(self, number: int, batch: int) -> Iterator[Tensor]:
        """About ``number`` of the items here, evenly spread and as they are, batch by batch."""
        step = max(1, len(self.source) // number)
        index = torch.arange(0, len(self.source), step, device=self.device)
        for part in index.chunk(-(-len(index) // batch)):
            yield self.source.plain(part)

    def _of_step(self, moves: Tensor | None, view: int, n: int) -> Tensor | None:
        """(n, ...) what the plan says of this step's images."""
        if moves is None:
            return None
        found = moves[self.counter.in_epoch, :, view].squeeze(0)
        if not self.objective.rows_are_batches:
            return found
        # Such batches are of different sizes: what was drawn serves as often as it must.
        return found[torch.arange(n, device=self.device) % len(found)]

    def _padded(self, index: Tensor) -> Tensor:
        """As many items as divide among the processes: the first stands in for what is missing."""
        missing = -len(index) % self.shards
        return torch.cat([index, index[:1].expand(missing)]) if missing else index

    def _shard_rows(self) -> list[NDArray[np.int64]]:
        """The objective's rows by the shard that holds their items; one shard where all do."""
        n_rows = self.objective.n_rows
        if self.shards == 1 or not self.objective.rows_are_items:
            return np.array_split(np.arange(n_rows), self.shards)
        rows = torch.arange(n_rows, device=self.device)
        shard = (self.objective.items_of(rows) % self.shards).cpu().numpy()
        return [np.flatnonzero(shard == k) for k in range(self.shards)]
