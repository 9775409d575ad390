"""The one training loop.

A `TrainingRun` is a model, items on a device, an objective and a recipe; it is advanced epoch by
epoch and step by step, so that one run, or many side by side (`likewise.training.scheduler`), can be driven by
the same code. On a GPU the step (batch selection, augmentation, forward, loss, backward, optimiser,
averaging) is captured once as a CUDA graph and replayed; the interpreter and the host stay out of
the epoch. The epoch to keep is chosen by the objective's score on held-out noisy judgements.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.errors import NonFiniteError
from likewise.items import Items, Selection
from likewise.nn.bf16_weights import HalfWeights, takes_other_weights
from likewise.nn.model import logits_of, one_sided
from likewise.nn.networks import last_linear
from likewise.nn.stochastic import may_draw
from likewise.training.batches import EpochPlan, steps_of, take
from likewise.training.devices import new_stream, on_device
from likewise.training.distributed import ProcessGroup
from likewise.training.ema import batch_norms, update_bn
from likewise.training.finite import complaint, epoch_figures
from likewise.training.objectives.pairwise import Objective
from likewise.training.optimizer_step import OptimisedStep
from likewise.training.optimizers import averaging_table, make_optimizer, rate_table
from likewise.training.recipe import Recipe
from likewise.training.splitting import split_merged_outputs

ADAPT_AT = 0.2  # of the epochs: when a recipe may change for high noise
WORST_SPLIT = 1.1  # times the held-out cost that splitting classes may raise it to, at first
STATISTICS_OF, STATISTICS_BATCH = 4096, 512  # items that give averaged weights their statistics


class TrainingRun(OptimisedStep):
    """One model being trained.

    Parameters
    ----------
    model : takes raw items, returns (n, C) logits; trained in place
    items, held_items : training and held-out items, as they came
    objective, recipe : what to minimise, and how
    seed : decides order, crops, flips and mixing of every epoch
    ranks, shards : the processes that train this model together (`likewise.training.distributed`), each with its
        share of the items; without ``ranks``, ``shards`` draws the same batches in one process
    name : what its checkpoints are called; "" where the driver is to number them
    capture : replay CUDA graphs; None tries and falls back to plain steps where it is impossible
    """

    def __init__(
        self,
        model: nn.Module,
        items: Items,
        held_items: Items,
        objective: Objective,
        recipe: Recipe,
        *,
        seed: int = 0,
        name: str = "",
        device: torch.device | None = None,
        capture: bool | None = None,
        process_group: ProcessGroup | None = None,
        shards: int = 1,
    ) -> None:
        self.device, self.name = device or torch.device("cpu"), name
        self.objective, self.recipe, self.seed = objective, recipe, seed
        self.planned, self.adapted = recipe, False  # the recipe may change on the way
        self.process_group, self.shards = (
            process_group,
            shards if process_group is None else process_group.world,
        )
        self._shares_items = process_group is not None and objective.rows_are_items
        if process_group is not None and self._shares_items:
            items = every(
                items, process_group.rank, process_group.world
            )  # an item's rank: its index modulo these
        self.items = on_device(items, self.device)
        self.held_items = on_device(held_items, self.device)
        self.model = model.to(self.device)
        if self.device.type == "cuda" and self.items.ndim > 2:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.train()
        self._row_shards = self._shard_rows()
        self.batch = 1
        if not objective.rows_are_batches:
            smallest = min(map(len, self._row_shards))
            self.batch = min(recipe.batch_size // self.shards, smallest) * self.shards
        self.steps_per_epoch = steps_of(self._row_shards, self.batch)
        self.total_steps = self.steps_per_epoch * recipe.epochs
        self.averaged = copy.deepcopy(self.model) if recipe.averaging else None
        if self.averaged is not None:
            self.averaged.eval().requires_grad_(False)
            self._mean_teacher = self._for_steps(one_sided(self.averaged))
        self._student = self._for_steps(self.model)
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self._parameters, recipe, self.device)
        self._rates = rate_table(recipe, self.total_steps, self.steps_per_epoch).to(self.device)
        self._decay = averaging_table(recipe, self.total_steps).to(self.device)
        self.epoch = 0
        self.until: int | None = None  # stop before the last epoch, to go on later or not at all
        self._counters = torch.zeros(2, dtype=torch.int64, device=self.device)
        self.step_index, self.global_step = self._counters[:1], self._counters[1:]  # epoch, run
        self.losses = torch.zeros(self.steps_per_epoch, device=self.device)  # of this epoch
        self.skipped = torch.zeros((), dtype=torch.int64, device=self.device)  # in this epoch
        self.best_score = torch.full((), math.inf, device=self.device)
        self.best_epoch = torch.zeros((), dtype=torch.int64, device=self.device)
        self.best = [t.detach().clone() for t in self._state()]
        self.best_objective = {k: t.detach().clone() for k, t in objective.tensors().items()}
        self._records: list[tuple[int, Tensor, Tensor]] = []
        self.history: list[dict[str, float]] = []
        self.seconds_before = 0.0  # spent on this run before it was resumed
        self._started: float | None = None
        self._may_draw, self._steps_done = may_draw(self.model), 0
        self._plan: EpochPlan | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._graph_has_mean_teacher: bool | None = None
        self._capture = self.device.type == "cuda" if capture is None else capture
        if process_group is not None or isinstance(self.items, Selection):
            self._capture = False  # messages between ranks, reading from disk: outside of graphs
        self._must_capture = bool(capture)
        self.stream = new_stream(self.device) if self.device.type == "cuda" else None
        if self.stream is not None:  # what was put on the device just now must have arrived
            self.stream.wait_stream(torch.cuda.current_stream(self.device))

    # -- the loop, one level at a time -----------------------------------------------------------

    @property
    def finished(self) -> bool:
        return self.epoch >= (self.until or self.recipe.epochs)

    def begin_epoch(self) -> None:
        """Draw the epoch's plan and, on a GPU, capture the step if it has changed."""
        self._started = self._started or time.perf_counter()
        self._steps_done = 0
        forwards = len(
            self.objective.items_of(torch.zeros(self.batch, dtype=torch.int64, device=self.device))
        )
        plan = EpochPlan.draw(
            self.recipe, self.seed, self.epoch, self._row_shards, self.batch, forwards
        )
        if self._plan is None:
            self._plan = plan.to(self.device)
        else:
            self._plan.copy_(plan)
        self.step_index.zero_()
        self.skipped.zero_()
        if self.recipe.high_noise and self.epoch == round(ADAPT_AT * self.recipe.epochs):
            self._adapt()
        self._capture_if_changed()

    def end_epoch(self) -> None:
        """Score on held-out judgements, keep the best weights, re-estimate T; no host wait."""
        if self.averaged is not None and batch_norms(self.averaged):
            self._update_bn(self.averaged)
        logits = self._held_logits(self.averaged if self.averaged is not None else self.model)
        progress = (self.epoch + 1) / self.recipe.epochs
        with torch.no_grad():
            self.objective.refine(logits, progress)
            if self.process_group is not None:
                self.process_group.broadcast(self.objective.tensors().values())
            score = self.objective.score(logits).detach()
            better = score < self.best_score
            learned = self.objective.tensors()
            current = [*self._state(), *learned.values()]
            for kept, now in zip([*self.best, *self.best_objective.values()], current):
                kept.copy_(torch.where(better, now.detach(), kept))
            self.best_score = torch.where(better, score, self.best_score)
            self.best_epoch = torch.where(better, self.epoch, self.best_epoch)
        self._records.append((self.epoch, epoch_figures(self.losses, self.skipped), score))
        self.epoch += 1
        if len(self._records) > 1:  # the epoch before is done by now: reading it costs no waiting
            self._read(self._records.pop(0))
        if self.finished:
            self.settle()

    def train(
        self,
        progress: Callable[[dict[str, float]], None] | None = None,
        checkpoint: Callable[[TrainingRun], None] | None = None,
    ) -> None:
        """All remaining epochs of this run alone; ``checkpoint`` is called after each."""
        with self.on_stream():
            while not self.finished:
                self.begin_epoch()
                for _ in range(self.steps_per_epoch):
                    self.step()
                self.end_epoch()
                if progress is not None and self.history:
                    progress(self.history[-1])
                if checkpoint is not None and (
                    self.process_group is None or self.process_group.is_first
                ):
                    checkpoint(self)
        if self.stream is not None:
            self.stream.synchronize()

    def select(self, best: bool = True) -> nn.Module:
        """The model with the weights of the best epoch (or the last one), ready for prediction."""
        chosen = copy.deepcopy(self.averaged if self.averaged is not None else self.model)
        if best:
            with torch.no_grad():
                for target, kept in zip(chosen.state_dict().values(), self.best):
                    target.copy_(kept)
        return chosen.eval().requires_grad_(False)

    def split_merged_outputs(self) -> None:
        """Split merged classes into free outputs, and forget the best epoch, which lacked a class.

        A run that was resumed later than here has done so before. Ranks that share the items out
        cannot: none of them sees the judgements between all of its items.
        """
        if self.epoch != self.until or self.process_group is not None:
            return
        with self.on_stream(), torch.no_grad():
            before = [p.detach().clone() for p in _output_layer(self.model)]
            cost = self.objective.score(self._held_logits(self.model))
            if not split_merged_outputs(self.model, self.items, self.objective, self.seed):
                return
            split_cost = self.objective.score(self._held_logits(self.model))
            if split_cost > WORST_SPLIT * cost:  # beyond what training mends
                for learned, kept in zip(_output_layer(self.model), before):
                    learned.copy_(kept)
                return
            self.best_score.fill_(math.inf)
            if self.averaged is not None:
                for mine, learned in zip(_output_layer(self.averaged), _output_layer(self.model)):
                    mine.copy_(learned)

    def _held_logits(self, model: nn.Module) -> Tensor:
        with self.autocast():
            return logits_of(model, self.held_items, self.device)

    @contextlib.contextmanager
    def on_stream(self) -> Iterator[None]:
        """This run's own CUDA stream, so that runs side by side overlap."""
        if self.stream is None:
            yield
        else:
            with torch.cuda.stream(self.stream):
                yield

    def _for_steps(self, model: nn.Module) -> nn.Module:
        """The model as a step forwards it."""
        return HalfWeights(model) if self._half and takes_other_weights(model) else model

    def _adapt(self) -> None:
        """Change the recipe if the noise estimated so far is high; waits for the device, once."""
        transition = self.objective.tensors().get("transition")
        if transition is not None and float(transition.diagonal().mean()) < 0.5:
            self._change_recipe()

    def _change_recipe(self) -> None:
        self.adapted = True
        self.recipe = self.recipe.with_(**(self.recipe.high_noise or {}))
        for group in self.optimizer.param_groups:
            group["weight_decay"] = self.recipe.weight_decay
        self._decay.copy_(averaging_table(self.recipe, self.total_steps))
        self._graph = self._graph_has_mean_teacher = None

    def _shard_rows(self) -> list[NDArray[np.int64]]:
        """The objective's rows by the shard that holds their items; one shard where all do."""
        n_rows = self.objective.n_rows
        if self.shards == 1 or not self.objective.rows_are_items:
            return np.array_split(np.arange(n_rows), self.shards)
        rows = torch.arange(n_rows, device=self.device)
        shard = (self.objective.items_of(rows) % self.shards).cpu().numpy()
        return [np.flatnonzero(shard == k) for k in range(self.shards)]

    def _update_bn(self, averaged: nn.Module) -> None:
        step = max(1, len(self.items) // STATISTICS_OF)
        index = torch.arange(0, len(self.items), step, device=self.device)
        parts = index.chunk(math.ceil(len(index) / STATISTICS_BATCH))
        with self.autocast():
            update_bn(one_sided(averaged), (take(self.items, i, None, None) for i in parts))
        if self.process_group is not None:  # each has seen its own share of the items
            self.process_group.broadcast(
                b for layer in batch_norms(averaged) for b in layer.buffers()
            )

    # -- figures ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait for the figures of the epochs so far, so that history holds them all."""
        while self._records:
            self._read(self._records.pop(0))

    @property
    def seconds(self) -> float:
        """Time spent on this run, with that before it was resumed."""
        now = 0.0 if self._started is None else time.perf_counter() - self._started
        return self.seconds_before + now

    def _read(self, record: tuple[int, Tensor, Tensor]) -> None:
        epoch, figures, score = record
        mean, mean_finite, skipped, first_bad = figures.tolist()
        skips = self.recipe.nonfinite == "skip"
        row = {"epoch": epoch, "loss": mean_finite if skips else mean, "held_out": float(score)}
        row["lr"] = float(
            self._rates[min((epoch + 1) * self.steps_per_epoch, self.total_steps) - 1]
        )
        if skips:
            row["skipped"] = skipped
        self.history.append(row)
        wrong = complaint(
            *(epoch, row["loss"], row["held_out"]),
            *(int(first_bad), self.steps_per_epoch, self.recipe.lr),
        )
        if wrong is not None:
            raise NonFiniteError(wrong)


def every(items: Items, start: int, step: int) -> Items:
    """Each ``step``-th item from ``start`` on."""
    return items.every(start, step) if isinstance(items, Selection) else items[start::step]


def _output_layer(model: nn.Module) -> list[nn.Parameter]:
    layer = last_linear(model)
    return [] if layer is None else list(layer.parameters())
