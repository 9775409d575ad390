"""The one training loop.

A `TrainingRun` is a model, items, an objective and a recipe; it is advanced epoch by epoch and step
by step, so that one run, or many side by side (`likewise.training.scheduler`), can be driven by the
same code. It consists of parts that each do one thing and know their own state:

- `Batches`: which items a step takes, moved and mixed as the epoch's plan says;
- `StepLoss`: the loss of a batch, by the student and, where there is one, its mean teacher;
- `Updater`: gradients, optimiser, exponential moving average (EMA);
- `CapturedStep`: all of that as one CUDA graph, so that the interpreter stays out of the epoch;
- `BestEpoch`: the weights of the epoch with the lowest cost of held-out noisy judgements;
- `EpochLog`: figures.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from likewise.io.progress import advance
from likewise.items import Items
from likewise.nn.model import logits_of, without_tta
from likewise.nn.stochastic import StepRandomness, may_draw
from likewise.training.batches import Batches, StepCounter
from likewise.training.best_epoch import BestEpoch
from likewise.training.captured_step import CapturedStep
from likewise.training.devices import new_stream, on_device
from likewise.training.distributed import ProcessGroup, current_process_group
from likewise.training.ema import batch_norms, update_bn
from likewise.training.epoch_log import EpochLog, Row
from likewise.training.objectives.pairwise import Objective
from likewise.training.recipe import Recipe
from likewise.training.sources import ItemSource, ResidentItems
from likewise.training.splitting import copy_output_layer, split_if_mendable
from likewise.training.state import State, Stateful, gather_state, scatter_state
from likewise.training.step_loss import StepLoss
from likewise.training.updater import Updater

ADAPT_AT = 0.2  # of the epochs: when a recipe may change for high noise
HIGH_NOISE = 0.5  # share of perceived classes that T keeps, below which it does
STATISTICS_OF, STATISTICS_BATCH = 4096, 512  # items that give averaged weights their statistics


class TrainingRun:
    """One model being trained.

    Parameters
    ----------
    model : takes raw items, returns (n, C) logits; trained in place
    items, held_items : training and held-out items, as they came
    objective, recipe : what to minimise, and how
    seed : decides order, crops, flips and mixing of every epoch
    name : what its checkpoints are called; "" where the driver is to number them
    capture : replay CUDA graphs; None tries and falls back to plain steps where it is impossible
    process_group, shards : as in `likewise.training.batches.Batches`
    """

    def __init__(
        self,
        model: nn.Module,
        items: Items | ItemSource,
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
        device = device or torch.device("cpu")
        self.name, self.objective = name, objective
        self.recipe = self.planned = recipe  # the recipe may change on the way
        self.batches = Batches(
            items,
            objective,
            recipe,
            seed=seed,
            device=device,
            process_group=process_group,
            shards=shards,
        )
        self.held_items = on_device(held_items, device)
        self.model = model.to(device)
        if device.type == "cuda" and self.batches.source.holds_images:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.train()
        self.updater = Updater(self.model, recipe, self.batches)
        self.loss = StepLoss(self.model, self.updater.ema, objective, recipe, self.batches)
        self.log = EpochLog(self.batches.steps_per_epoch, device, recipe)
        self.epoch, self.best = 0, BestEpoch(self.scored_model, objective.tensors())
        self.until: int | None = None  # stop before the last epoch, to go on later or not at all
        if process_group is not None or not self.batches.source.is_resident:
            capture = False  # messages between processes, reading from disk: outside of graphs
        randomness = StepRandomness(seed, device) if may_draw(self.model) else None
        self.captured = CapturedStep(device, capture, randomness)
        self.stream = new_stream(device) if device.type == "cuda" else None
        if self.stream is not None:  # what was put on the device just now must have arrived
            self.stream.wait_stream(torch.cuda.current_stream(device))

    # -- the loop, from the whole to its parts ---------------------------------------------------

    def train(
        self,
        progress: Callable[[Row], None] | None = None,
        checkpoint: Callable[[TrainingRun], None] | None = None,
    ) -> None:
        """All remaining epochs of this run alone; ``checkpoint`` is called after each."""
        group = current_process_group()  # also of ranks that train each for itself one writes
        with self.on_stream():
            while not self.finished:
                self.begin_epoch()
                for done in range(self.steps_per_epoch):
                    self.step()
                    advance((self.epoch + (done + 1) / self.steps_per_epoch) / self.recipe.epochs)
                self.end_epoch()
                if progress is not None and self.history:
                    progress(self.history[-1])
                if checkpoint is not None and (group is None or group.is_first):
                    checkpoint(self)
        if self.stream is not None:
            self.stream.synchronize()

    def begin_epoch(self) -> None:
        """Draw the epoch's plan and, on a GPU, capture the step if it has changed."""
        self.log.begin_epoch()
        self.batches.begin_epoch(self.recipe, self.epoch)
        due = self.epoch == round(ADAPT_AT * self.recipe.epochs)
        if self.recipe.high_noise and due and self._noise_is_high():
            self._change_recipe()
        self.loss.begin_epoch(self.recipe, self.epoch)
        self.captured.begin_epoch(self, self.epoch, variant=self.loss.has_mean_teacher)

    def step(self) -> None:
        """One optimisation step."""
        self.captured(self)

    def eager_step(self) -> None:
        """A step as it is captured: loss, gradients, update, figures; all on the device."""
        loss, skipped = self.updater.step(self.loss)
        self.log.add_step(self.counter.in_epoch, loss, skipped)
        self.counter.advance()

    def end_epoch(self) -> None:
        """Score on held-out judgements, keep the best weights, re-estimate T; no host wait."""
        group, model = self.batches.process_group, self.scored_model
        if model is not self.model and batch_norms(model):
            self._update_bn(model)
        logits = self._held_logits(model)
        with torch.no_grad():
            self.objective.refine(logits, self.epoch + 1, self.recipe.epochs)
            if group is not None:
                group.broadcast(self.objective.tensors().values())
            score = self.objective.score(logits).detach()
        self.best.offer(score, self.epoch, model, self.objective.tensors())
        last = min((self.epoch + 1) * self.steps_per_epoch, self.batches.total_steps) - 1
        self.log.end_epoch(self.epoch, score, self.updater.rates[last])
        self.epoch += 1
        if self.finished:
            self.log.flush()

    def select(self, best: bool = True) -> nn.Module:
        """The model with the weights of the best epoch (or the last one), ready for prediction."""
        chosen = copy.deepcopy(self.scored_model)
        if best:
            self.best.load_into(chosen)
        return chosen.eval().requires_grad_(False)

    # -- what happens between epochs -------------------------------------------------------------

    def split_merged_outputs(self) -> None:
        """Split merged classes into free outputs, and forget the best epoch, which lacked a class.

        A run that was resumed later than here has done so before. Processes that share the items
        cannot: none sees the judgements between all of them.
        """
        source, alone = self.batches.source, self.batches.process_group is None
        if self.epoch != self.until or not alone or not isinstance(source, ResidentItems):
            return
        with self.on_stream(), torch.no_grad():
            split = split_if_mendable(
                self.model, source.items, self.objective, self.batches.seed, cost=self._held_cost
            )
            if split:
                self.best.forget()
                if self.ema is not None:
                    copy_output_layer(self.model, self.ema)

    def _noise_is_high(self) -> bool:
        """By the T estimated so far; waits for the device."""
        transition = self.objective.tensors().get("transition")
        return transition is not None and float(transition.diagonal().mean()) < HIGH_NOISE

    def _change_recipe(self) -> None:
        self.recipe = self.recipe.with_(**(self.recipe.high_noise or {}))
        self.updater.change(self.recipe)
        self.captured.invalidate()

    def _update_bn(self, averaged: nn.Module) -> None:
        with self.loss.autocast():
            update_bn(without_tta(averaged), self.batches.sample(STATISTICS_OF, STATISTICS_BATCH))
        group = self.batches.process_group
        if group is not None:  # each process has seen its own share of the items
            group.broadcast(b for layer in batch_norms(averaged) for b in layer.buffers())

    def _held_cost(self) -> Tensor:
        return self.objective.score(self._held_logits(self.model))

    def _held_logits(self, model: nn.Module) -> Tensor:
        """From one side alone: that chooses the same epoch in half the time."""
        with self.loss.autocast():
            return logits_of(without_tta(model), self.held_items, self.device)

    def on_stream(self) -> AbstractContextManager[object]:
        """This run's own CUDA stream, so that runs side by side overlap."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    # -- state: for captures, checkpoints and resuming -------------------------------------------

    @property
    def _parts(self) -> dict[str, Stateful]:
        return {
            "model": self.model,
            "objective": self.objective,
            "updater": self.updater,
            "best": self.best,
            "counter": self.counter,
            "log": self.log,
        }

    def snapshot(self) -> State:
        """A copy of everything that training changes, as named tensors."""
        return {name: t.detach().clone() for name, t in gather_state(self._parts).items()}

    def restore(self, state: State) -> None:
        """Take over a snapshot in place (captured graphs keep working)."""
        scatter_state(self._parts, state)

    def resume(
        self,
        state: State,
        epoch: int,
        history: list[Row],
        *,
        adapted: bool = False,
        seconds: float = 0.0,
    ) -> None:
        """Go on from the snapshot that a run of the same kind made after ``epoch`` epochs."""
        self.restore(state)
        self.epoch = epoch
        self.log.resume(history, seconds)
        if adapted:
            self._change_recipe()
        if self.stream is not None:  # what was copied here is read on the run's own stream
            torch.cuda.synchronize(self.device)

    def forget_gradients(self) -> None:
        self.updater.optimizer.zero_grad(set_to_none=True)

    # -- what others read ------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        return self.epoch >= (self.until or self.recipe.epochs)

    @property
    def adapted(self) -> bool:
        """Whether the recipe was changed on the way, since the noise turned out to be high."""
        return self.recipe is not self.planned

    @property
    def ema(self) -> nn.Module | None:
        return self.updater.ema

    @property
    def scored_model(self) -> nn.Module:
        """The model that is scored and kept: the average where there is one."""
        return self.model if self.ema is None else self.ema

    @property
    def history(self) -> list[Row]:
        return self.log.rows

    @property
    def counter(self) -> StepCounter:
        return self.batches.counter

    @property
    def steps_per_epoch(self) -> int:
        return self.batches.steps_per_epoch

    @property
    def device(self) -> torch.device:
        return self.batches.device
