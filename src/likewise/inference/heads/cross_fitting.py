"""Heads: what EM fits to the inferred classes, always *cross-fitted*.

An item's prediction comes from a head that never saw that item's own judgements. That is what
keeps EM honest: a network that had memorised its items would confirm whatever was inferred first.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from likewise.inference.heads.ensemble import TINY, make_bank
from likewise.io.progress import tracked
from likewise.nn.model import InputLayer
from likewise.training.ema import ema_update_
from likewise.training.optimizers import make_optimizer
from likewise.training.replay_cache import ReplayCache

# Nats an item by which held-out items must be explained better, to go on training: averaged
# weights creep upwards for ever.
WORTH = 0.01


@dataclass(frozen=True)
class Targets:
    """What EM knows of the items: (N, C) but for ``weight``.

    ``perceived``: posterior of z; ``judged``: likelihood of the judgements about each item alone,
    rows sum to 1 (uniform: nothing known); ``classes``: posterior of y; ``weight`` (N,): 0 leaves
    an item out of training.
    """

    perceived: Tensor
    judged: Tensor
    classes: Tensor
    weight: Tensor

    def informed(self) -> Tensor:
        """(N,) bool: the items about which the judgements say anything at all."""
        spread = self.judged.amax(1) - self.judged.amin(1)
        return (spread > 1e-3) & (self.weight > 0)


class Head(Protocol):
    """A classifier that EM can fit to soft targets."""

    reads_transition: ClassVar[bool]
    """Whether EM estimates T from it; if not, what people see is what an item is."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        """By what EM may divide this head's logits, to mend its confidence."""

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        """(N, C) log p(x, y) of every item, from a fit without its fold (N,).

        Over any density of x that knows no classes; a head that knows the density not at all says
        log g, whose rows sum to 1.
        """

    def finish(self, targets: Targets, generator: torch.Generator) -> nn.Module:
        """One module from items to (n, C) logits of g, fitted to all items."""


@dataclass(frozen=True)
class WrappedHead:
    """A head that does as its ``classifier`` does, in all that it does not override."""

    classifier: Head
    reads_transition: ClassVar[bool] = True
    classifier_chosen: ClassVar[bool] = True
    """Whether unseen judgements chose the classifier, used as it is here."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        return self.classifier.temperatures

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        return self.classifier.crossfit(targets, transition, folds, generator)

    def finish(self, targets: Targets, generator: torch.Generator) -> nn.Module:
        return self.classifier.finish(targets, generator)


@dataclass(frozen=True)
class ReplayedHead(WrappedHead):
    """A head whose cross-fits are kept, so that a fit that was cut short can go on."""

    replay_cache: ReplayCache

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        fitted = self.replay_cache.step(
            lambda: self.classifier.crossfit(targets, transition, folds, generator), generator
        )
        return fitted.to(targets.perceived.device)


def log_perceived(log_g: Tensor, transition: Tensor) -> Tensor:
    """log f = log(g @ T), (N, C), stable where g is nearly certain."""
    log_t = torch.log(transition.clamp_min(TINY)).to(log_g)
    return torch.logsumexp(log_g.unsqueeze(2) + log_t, dim=1)


def judged_score(log_g: Tensor, transition: Tensor, judged: Tensor) -> Tensor:
    """(N,) log P(judgements about an item | its features), up to a constant of the judgements."""
    f = log_g.exp() @ transition.to(log_g)
    return torch.log((f * judged).sum(1).clamp_min(TINY))


@dataclass
class NetworkHead:
    """Any network, fitted by AdamW with averaged weights, stopped on the items left out.

    ``build(seed)`` makes a fresh module from raw items to (n, C) logits.
    """

    reads_transition: ClassVar[bool] = True
    items: Tensor
    build: Callable[[int], nn.Module]
    epochs: int = 40
    patience: int = 5
    batch_size: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 1e-2
    averaging: float = 0.98
    final_epochs: int = 60

    @property
    def temperatures(self) -> tuple[float, ...]:
        return (0.4, 0.55, 0.75, 1.0, 1.35)

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        usable = targets.weight > 0
        held = [torch.where(folds == k)[0] for k in range(int(folds.max()) + 1)]
        rows = [torch.where((folds != k) & usable)[0] for k in range(len(held))]
        if (
            min(len(part) for part in rows) == 0
        ):  # without its own fold, nothing is known of an item
            return torch.full_like(targets.perceived, -math.log(targets.perceived.shape[1]))
        fit = _Fit(self, rows, generator)
        watch = [_Best(targets, transition, items) for items in held]
        for _ in tracked(range(self.epochs), of=self.epochs):
            fit.epoch(targets.perceived, transition)
            for best, log_held in zip(watch, fit.average.predict(fit.items, held)):
                best.offer(log_held)
            if all(best.waited >= self.patience for best in watch):
                break
        log_g = torch.zeros_like(targets.perceived)
        for best in watch:
            log_g[best.items] = best.log_g
        return log_g

    def finish(self, targets: Targets, generator: torch.Generator) -> nn.Module:
        # The class posterior is already cleaned by networks that did not see the item: fitting
        # it outright leaves nothing to memorise.
        rows = torch.arange(len(targets.classes), device=targets.classes.device)
        fit = _Fit(self, [rows], generator)
        identity = torch.eye(targets.classes.shape[1], device=rows.device)
        for _ in range(self.final_epochs):
            fit.epoch(targets.classes, identity)
        return fit.average.network(0).eval()


class _Best:
    """The predictions, over the epochs, that explain the held items' judgements best."""

    def __init__(self, targets: Targets, transition: Tensor, items: Tensor) -> None:
        self.items, self.transition = items, transition
        self.judged = targets.judged[items]
        self.informed = targets.informed()[items]
        self.log_g = torch.zeros_like(self.judged)
        self.score, self.waited = -float("inf"), 0
        self._surpass = self.score  # what ends the waiting

    def offer(self, log_g: Tensor) -> None:
        scores = judged_score(log_g, self.transition, self.judged)[self.informed]
        score = float(scores.mean()) if len(scores) else 0.0
        self.waited += 1
        if score > self.score:
            self.log_g, self.score = log_g, score
        if score > self._surpass:
            self._surpass, self.waited = score + WORTH, 0


class _Fit:
    """A bank of networks in training, each on its own rows, with averaged weights beside it."""

    def __init__(self, head: NetworkHead, rows: list[Tensor], generator: torch.Generator) -> None:
        seeds = torch.randint(2**31 - 1, (len(rows),), generator=generator).tolist()
        self.head, self.rows, self.generator = head, rows, generator
        self.bank = make_bank([head.build(seed) for seed in seeds]).to(head.items.device)
        self.items = self.bank.prepare(head.items)
        self.average = copy.deepcopy(self.bank)
        self.parameters: list[Tensor] = list(self.bank.parameters())
        self.averages: list[Tensor] = list(self.average.parameters())
        # Running statistics and the like; the scaling of the inputs does not change.
        fixed = {id(b) for part in self.bank.modules() if isinstance(part, InputLayer)
                 for b in part.buffers()}  # fmt: skip
        self.running = [
            (kept, new)
            for kept, new in zip(self.average.buffers(), self.bank.buffers())
            if id(new) not in fixed
        ]
        self.optimizer = make_optimizer(
            self.parameters,
            head.items.device,
            lr=head.learning_rate,
            weight_decay=head.weight_decay,
        )
        self.length = min(len(part) for part in rows)
        self.batch_size = max(16, min(head.batch_size, self.length // 8))
        self.steps = 0

    def epoch(self, target: Tensor, transition: Tensor) -> None:
        """One pass over the rows: forward-corrected cross-entropy against ``target`` (N, C)."""
        self.bank.train()
        forward = transition.to(self.head.items.device, torch.float32)
        target = target.to(forward)
        for batch in torch.split(self._shuffled(), self.batch_size, dim=1):  # (K, b)
            self.bank.backward(self.items[batch], target[batch], forward)
            self.optimizer.step()
            self._average()

    def _shuffled(self) -> Tensor:
        """(K, n) rows of each network in random order, cut to the shortest."""
        orders = [
            torch.randperm(len(r), generator=self.generator)[: self.length] for r in self.rows
        ]
        return torch.stack([r[order.to(r.device)] for r, order in zip(self.rows, orders)])

    @torch.no_grad()
    def _average(self) -> None:
        self.steps += 1
        keep = min(self.head.averaging, self.steps / (self.steps + 10))
        ema_update_(self.averages, self.parameters, 1 - keep)
        for kept, new in self.running:
            kept.copy_(new)
