"""From items and judgements to a trained model: the methods, each a short program.

A program yields the runs it wants trained and returns a `Fitted` (see `likewise.lanes`), so that
one method on a laptop and a grid of them on a GPU are the same code.
"""

from __future__ import annotations

import copy
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.batches import (
    InputLayer,
    Items,
    Model,
    Selection,
    check_outputs,
    logits_of,
    network_shape,
)
from likewise.errors import InputError
from likewise.matching import best_matching, confusion
from likewise.networks import at_temperature, build_network, default_network
from likewise.objectives import (
    CompletePairwise,
    Objective,
    PairwiseLoss,
    PerceivedClasses,
)
from likewise.pairs import Pairs
from likewise.ranks import current_ranks
from likewise.recipes import Recipe, default_recipe
from likewise.shared_pairs import listed_objective
from likewise.training import TrainingRun
from likewise.transition import (
    TEMPERATURES,
    anchor_transition,
    count_transition,
    gram_transition,
)

FloatMatrix = NDArray[np.float64]
# The exact joint objective needs nearly every item in one of the C largest components.
COVERAGE = 0.9
# Weight of H(mean g) that keeps all classes alive where `auto` uses a pairwise method.
BALANCE = 0.03
JUDGEMENTS_PER_STEP = 1024
LARGEST_COPY = 2**31  # bytes of a memory map that are copied to memory rather than read by batch
STARTS_APART = 100_003  # between the seeds of several starts, so that no two fits share them


@dataclass(frozen=True)
class Problem:
    """What every method starts from; the split into training and held-out items is made once."""

    items: NDArray[Any]
    pairs: Pairs
    n_classes: int
    network: str | nn.Module | None = None
    recipe: Recipe | dict[str, Any] | None = None
    held_out: float = 0.1
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    # The items on the device already, where many problems share them.
    resident: Tensor | None = None

    @cached_property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any], Pairs, Pairs]:
        """(train items, held-out items, judgements among each)."""
        return self.pairs.split(self.held_out, np.random.default_rng([self.seed, 1]))

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """(N,) perceived classes where judgements are consistent: the C largest, else -1."""
        ids = self.pairs.components()
        sizes = np.bincount(ids)
        largest = np.argsort(-sizes, kind="stable")[: self.n_classes]
        largest = largest[sizes[largest] > 1]
        number = np.full(len(sizes), -1, np.int32)
        number[np.sort(largest)] = np.arange(len(largest))
        return number[ids]

    @property
    def network_name(self) -> str | None:
        """The network's name, None where it is a module of the user's."""
        if isinstance(self.network, nn.Module):
            return None
        return self.network or default_network(network_shape(self.items))

    def recipe_for(self, joint: bool) -> Recipe:
        """The recipe given; the network's own for this kind of objective, changed as asked."""
        if isinstance(self.recipe, Recipe):
            return self.recipe
        return default_recipe(self.network_name, joint).with_(**(self.recipe or {}))

    def model(self, start: int = 0) -> Model:
        """A fresh model, scaled to the training items; another one for every ``start``."""
        shape = network_shape(self.items)
        seed = self.seed + STARTS_APART * start
        network = build_network(self.network, shape, self.n_classes, seed)
        model = Model(InputLayer.fit(self.items, self.parts[0]), network)
        if isinstance(self.network, nn.Module):
            check_outputs(model, self.items, self.n_classes)
        return model

    def run(
        self, objective: Objective, recipe: Recipe, model: nn.Module | None = None
    ) -> TrainingRun:
        train, held, _, _ = self.parts
        return TrainingRun(
            model or self.model(),
            self.take(train),
            self.take(held),
            objective,
            recipe,
            seed=self.seed,
            device=self.device,
            ranks=current_ranks(),
        )

    def take(self, index: NDArray[Any]) -> Items:
        """Some items: from the device where they are there already, else a copy, or, of a memory
        map too large for that, a selection that is read as it is needed."""
        if self.resident is not None:
            return self.resident[torch.from_numpy(index).to(self.resident.device)]
        if isinstance(self.items, np.memmap) and self.items.nbytes > LARGEST_COPY:
            return Selection(self.items, index)
        chosen: Items = self.items[index]
        return chosen


@dataclass(frozen=True)
class Fitted:
    """What a method learned."""

    method: str
    model: nn.Module
    last_model: nn.Module
    transition: FloatMatrix | None
    history: list[dict[str, float]]
    best_epoch: int
    score: float
    choice: str = ""
    channel: Any = None
    annotators: dict[str, list[Any]] | None = None
    posterior: NDArray[Any] | None = None
    seconds_before: float = 0.0  # of training before it was resumed


MethodProgram = Generator[TrainingRun, TrainingRun, Fitted]


def pairwise_program(
    problem: Problem,
    kind: str,
    transition: FloatMatrix | None = None,
    balance: float = 0.0,
    start: nn.Module | None = None,
) -> MethodProgram:
    """MCL, KCL, or MNS with T given: one run over pairs treated as independent."""
    recipe = problem.recipe_for(joint=False)
    _, _, train_pairs, held_pairs = problem.parts
    check_judgements(train_pairs, "training")
    check_judgements(held_pairs, "held-out")
    matrix = None if transition is None else torch.as_tensor(transition, dtype=torch.float32)
    if matrix is not None:
        matrix = matrix.to(problem.device)
    loss = PairwiseLoss(kind, matrix, balance=balance or recipe.balance)
    objective: Objective
    if problem.pairs.is_complete:
        objective = CompletePairwise(loss, train_pairs, held_pairs, problem.device)
    else:
        recipe = recipe.with_(batch_size=JUDGEMENTS_PER_STEP, mixup=0.0)
        objective = listed_objective(
            loss, train_pairs, held_pairs, problem.device, recipe.batch_size, problem.seed
        )
    if start is not None and matrix is not None:
        start = as_sure_as_asked(problem, start, objective)
    if start is None and recipe.starts > 1:
        run = yield from _best_start(problem, objective, recipe)
    else:
        run = problem.run(objective, recipe, start)
    for epoch in sorted({round(share * recipe.epochs) for share in recipe.revivals} - {0}):
        run = yield from _until(run, epoch)
        run.revive()
    run.until = None
    run = yield run
    return finish(run, "mns" if matrix is not None else kind, transition)


def _best_start(
    problem: Problem, objective: Objective, recipe: Recipe
) -> Generator[TrainingRun, TrainingRun, TrainingRun]:
    """Begin several times; go on with the start that explains held-out judgements best."""
    begun = []
    for start in range(recipe.starts):
        run = problem.run(objective, recipe, problem.model(start))
        run.until = max(1, round(recipe.start_share * recipe.epochs))
        begun.append((yield run))
    return min(begun, key=lambda run: float(run.best_score))


def _until(run: TrainingRun, epoch: int) -> Generator[TrainingRun, TrainingRun, TrainingRun]:
    """Go on until an epoch, unless the run is that far."""
    run.until = epoch
    return run if run.finished else (yield run)


def mns_program(
    problem: Problem, anchors: str | float = "counts", balance: float = 0.0
) -> MethodProgram:
    """The paper's Algorithm 1: stage 1 without T, T estimated from it, stage 2 with T fixed."""
    stage1 = yield from pairwise_program(problem, "mcl", balance=balance)
    return (yield from mns_stage2(problem, stage1, anchors, balance))


def mns_stage2(
    problem: Problem, stage1: Fitted, anchors: str | float = "counts", balance: float = 0.0
) -> MethodProgram:
    """Stage 2 of MNS from a finished stage 1 (the MCL run of the same problem)."""
    transition = estimate_transition(problem, stage1.model, anchors)
    start = starting_point(problem, stage1.model)
    fitted = yield from pairwise_program(problem, "mns", transition, balance, start)
    return replace(fitted, history=stage1.history + fitted.history)


def starting_point(problem: Problem, stage1: nn.Module) -> nn.Module | None:
    """Where stage 2 begins: from stage 1 if every class is alive there or can be revived, else
    (None) anew.

    T was estimated in stage 1's order of classes, and from a fresh start the pairwise loss often
    merges classes at high noise; but a class that stage 1 has lost would stay lost.
    """
    logits = logits_of(stage1, problem.take(problem.parts[1]), problem.device)
    alive = torch.bincount(logits.argmax(dim=1), minlength=problem.n_classes) > 0
    if not bool(alive.all()) and not problem.recipe_for(joint=False).revivals:
        return None
    return copy.deepcopy(stage1).requires_grad_(True)


def as_sure_as_asked(problem: Problem, start: nn.Module, objective: Objective) -> nn.Module:
    """A model that goes on with a new objective, made as sure as held-out judgements ask for.

    Stage 1 learned f; with T behind it the same model must be surer, and would spend the first
    epochs on nothing else.
    """
    held = problem.take(problem.parts[1])
    logits = logits_of(start, held, problem.device)
    costs = torch.stack([objective.score(logits / temperature) for temperature in TEMPERATURES])
    few = held[:2]
    return at_temperature(
        start,
        TEMPERATURES[int(costs.argmin())],
        lambda model: logits_of(model, few, problem.device),
    )


def joint_program(problem: Problem, transition: FloatMatrix | None = None) -> MethodProgram:
    """The joint objective where judgements are consistent: perceived classes are components."""
    train, held, _, _ = problem.parts
    ids = problem.components
    if len(np.unique(ids[ids >= 0])) < 2:
        raise InputError(
            "the judgements form fewer than two groups of items judged the same, so that there "
            "is nothing to tell apart; more judgements are needed."
        )
    matrix = None if transition is None else torch.as_tensor(transition, dtype=torch.float32)
    objective = PerceivedClasses(ids[train], ids[held], problem.n_classes, problem.device, matrix)
    recipe, model = problem.recipe_for(joint=True), problem.model()
    model.mirror = recipe.flip and problem.items.ndim > 2
    run = yield problem.run(objective, recipe, model)
    learned = run.best_objective["transition"].cpu().double().numpy()
    fitted = finish(run, "joint", learned)
    # T was estimated together with this temperature: mixing items leaves a network too unsure.
    temperature = float(run.best_objective["temperature"])
    few = problem.take(held[:2])
    calibrated = at_temperature(
        fitted.model, temperature, lambda model: logits_of(model, few, problem.device)
    )
    return replace(fitted, model=calibrated)


def finish(run: TrainingRun, method: str, transition: FloatMatrix | None) -> Fitted:
    """The outcome of a trained run."""
    return Fitted(
        method=method,
        model=run.select(),
        last_model=run.select(best=False),
        transition=transition,
        history=[{"method": method, **row} for row in run.history],  # type: ignore[dict-item]
        best_epoch=int(run.best_epoch),
        score=float(run.best_score),
        seconds_before=run.seconds_before,
    )


def estimate_transition(
    problem: Problem, stage1: nn.Module, anchors: str | float = "counts"
) -> FloatMatrix:
    """T from a stage-1 model, in that model's class order.

    ``anchors`` is "argmax" (the paper's), a quantile such as 0.97, or "counts": perceived classes
    counted among confident held-out items, where judgements are consistent; where they are not,
    the two rates of "same" within and across predicted classes.
    """
    train, held, _, held_pairs = problem.parts
    if anchors == "argmax" or isinstance(anchors, float):
        logits = logits_of(stage1, problem.take(train), problem.device)
        quantile = anchors if isinstance(anchors, float) else None
        return anchor_transition(logits.softmax(dim=1).cpu().numpy(), quantile)
    if anchors != "counts":
        raise InputError(f"anchors must be 'counts', 'argmax' or a quantile, not {anchors!r}.")
    logits = logits_of(stage1, problem.take(held), problem.device).cpu()
    predicted = logits.argmax(dim=1).numpy()
    ids = problem.components[held]
    if problem.pairs.is_consistent() and (ids >= 0).mean() >= COVERAGE:
        aligned = align(ids, predicted, problem.n_classes)
        counted = count_transition(logits, torch.from_numpy(aligned))
        return counted.double().numpy()
    listed = held_pairs.explicit()
    return gram_transition(
        predicted[listed.left], predicted[listed.right], listed.same, problem.n_classes
    )


def align(
    ids: NDArray[np.integer], predicted: NDArray[np.integer], n_classes: int
) -> NDArray[np.int64]:
    """Component ids renumbered to agree best with predicted classes; -1 stays -1."""
    known = ids >= 0
    counts = confusion(ids[known], predicted[known], n_classes)[:, :n_classes]
    match = best_matching(counts)
    return np.where(known, match[ids], -1).astype(np.int64)


def is_exact(problem: Problem) -> tuple[bool, str]:
    """Whether the judgements allow the exact joint objective, and why (not), in a few words."""
    if not problem.pairs.is_consistent():
        return False, "some judgements contradict each other"
    coverage = float((problem.components >= 0).mean())
    if coverage < COVERAGE:
        return (
            False,
            f"the {problem.n_classes} largest groups cover only {coverage:.0%} of the items",
        )
    return True, f"the judgements are consistent and cover {coverage:.0%} of the items"


def check_judgements(pairs: Pairs, which: str) -> None:
    """Refuse judgements from which nothing can be learned."""
    if len(pairs) == 0:
        raise InputError(
            f"there is no judgement among the {which} items; give more judgements or change "
            "held_out."
        )
    same = pairs.n_same
    if which != "held-out" and same in (0, len(pairs)):
        kind = "same" if same else "different"
        raise InputError(
            f"all {len(pairs)} judgements among the {which} items say {kind!r}; both kinds are "
            "needed."
        )
