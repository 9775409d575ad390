"""What is trained for a cell, as a program that `likewise.lanes` can run alone or beside others."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise.batches import Model, logits_of, network_shape
from likewise.experiments.cells import Cell
from likewise.experiments.problem import Problems, Supervision, Truth
from likewise.experiments.scoring import score
from likewise.experiments.settings import TableSettings
from likewise.lanes import Program
from likewise.matching import best_matching, confusion
from likewise.networks import build_network
from likewise.objectives import CompletePairwise, Objective, PairwiseLoss, PerceivedClasses
from likewise.training import TrainingRun
from likewise.transition import anchor_transition, likelihood_transition


@dataclass(frozen=True)
class Outcome:
    """A trained cell: its figures, its learning curve, and the model of the chosen epoch."""

    cell: Cell
    result: dict[str, Any]
    history: list[dict[str, float]]
    model: nn.Module


def chain_program(
    chain: Sequence[Cell],
    problems: Problems,
    settings: TableSettings,
    finished: Callable[[Outcome], None],
    stage_one: dict[str, Tensor] | None = None,
) -> Program[None]:
    """Train the cells of a chain one after the other; ``finished`` is told of each.

    ``stage_one`` are the weights of the MCL cell, where that was trained before.
    """
    supervision, truth = problems(chain[0])
    trained = None
    if stage_one is not None:
        trained = new_model(settings, supervision, chain[0].trial).to(problems.device).eval()
        trained.load_state_dict(stage_one)
    for cell in chain:
        start = time.perf_counter()
        transition, estimator = _transition_for(cell, supervision, truth, trained, settings)
        run = yield _training_run(cell, supervision, settings, transition, trained)
        trained = run.select()
        if isinstance(run.objective, PerceivedClasses):
            transition, estimator = run.objective.transition, "likelihood"
        figures = score(cell, trained, run.select(best=False), transition, supervision, truth)
        figures |= {
            "estimator": estimator,
            "best_epoch": int(run.best_epoch),
            "epochs": run.recipe.epochs,
            "seconds": round(time.perf_counter() - start, 2),
        }
        finished(Outcome(cell, figures, run.history, trained))


def new_model(settings: TableSettings, supervision: Supervision, seed: int) -> nn.Module:
    """A fresh network behind its input layer, scaled by the training items."""
    # All that network_shape looks at is the shape of the array.
    shape = network_shape(np.empty((0, *supervision.items.shape[1:])))
    network = build_network(settings.network, shape, supervision.n_classes, seed)
    return Model(copy.deepcopy(supervision.inputs), network)


def _training_run(
    cell: Cell,
    supervision: Supervision,
    settings: TableSettings,
    transition: Tensor | None,
    stage_one: nn.Module | None,
) -> TrainingRun:
    device = supervision.items.device
    model = new_model(settings, supervision, cell.trial)
    if cell.method == "mns_estimated" and stage_one is not None:
        # T was estimated in the order of these classes, and their basin is a good one.
        model.load_state_dict(stage_one.state_dict())
    return TrainingRun(
        model,
        supervision.items,
        supervision.held_items,
        _objective(cell, supervision, transition),
        settings.recipe(cell.method),
        seed=cell.trial,
        device=device,
    )


def _objective(cell: Cell, s: Supervision, transition: Tensor | None) -> Objective:
    device = s.items.device
    if cell.method == "joint":
        return PerceivedClasses(s.ids, s.held_ids, s.n_classes, device)
    kind = "kcl" if cell.method == "kcl" else "mcl" if transition is None else "mns"
    return CompletePairwise(PairwiseLoss(kind, transition), s.pairs, s.held_pairs, device)


def _transition_for(
    cell: Cell,
    supervision: Supervision,
    truth: Truth,
    stage_one: nn.Module | None,
    settings: TableSettings,
) -> tuple[Tensor | None, str | None]:
    """The T that a pairwise method is given, and where it comes from."""
    device = supervision.items.device
    if cell.method == "mns_true" and truth.transition is not None:
        return torch.as_tensor(truth.transition, dtype=torch.float32, device=device), "true"
    if cell.method == "mns_estimated" and stage_one is not None:
        return estimate_transition(stage_one, supervision, settings.estimator), settings.estimator
    return None, None


def estimate_transition(stage_one: nn.Module, s: Supervision, estimator: str) -> Tensor:
    """(C, C) T from the stage-1 network and held-out items, in the network's class order.

    "anchor" is the paper's argmax on the training items, "quantile" its robust form on held-out
    items. "likelihood" takes the perceived classes of the held-out items, which the judgements
    give up to a renumbering, matches them to the network's classes, and maximises their likelihood.
    """
    device = s.items.device
    if estimator in ("anchor", "quantile"):
        items = s.items if estimator == "anchor" else s.held_items
        f = logits_of(stage_one, items, device).softmax(dim=1).cpu().numpy()
        matrix = anchor_transition(f, None if estimator == "anchor" else 0.97)
        return torch.as_tensor(matrix, dtype=torch.float32, device=device)
    logits = logits_of(stage_one, s.held_items, device)
    counts = confusion(s.held_ids, logits.argmax(dim=1).cpu().numpy(), s.n_classes)
    match = best_matching(counts)  # perceived id -> class of the network
    perceived = torch.as_tensor(match[s.held_ids.astype(np.int64)], device=device)
    return likelihood_transition(logits, perceived)[0]
