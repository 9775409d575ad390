"""What every method starts from: items, judgements, a network, and the split of the items."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.io.json import Record
from likewise.io.npy import Array
from likewise.items import Items, Selection, network_shape
from likewise.nn.model import InputLayer, Model, check_outputs
from likewise.nn.networks import build_network, default_network
from likewise.pairs import Pairs
from likewise.pairs.shards import same_of, total_of
from likewise.training.distributed import ProcessGroup, current_process_group
from likewise.training.objectives.pairwise import Objective
from likewise.training.recipe import Recipe, default_recipe
from likewise.training.run import TrainingRun

# The exact joint objective needs nearly every item in one of the C largest components.
COVERAGE = 0.9
LARGEST_COPY = 2**31  # bytes of a memory map that are copied to memory rather than read by batch
STARTS_APART = 100_003  # between the seeds of several starts, so that no two fits share them


@dataclass(frozen=True)
class Problem:
    """What every method starts from; the split into training and held-out items is made once."""

    items: Array  # (N, ...) features or images
    pairs: Pairs  # judgements about them
    n_classes: int  # C
    network: str | nn.Module | None = None  # a name, a module, or None: by the items
    recipe: Recipe | Record | None = None  # how to train, or changes to the network's own recipe
    held_out: float = 0.1  # share of the items set aside
    seed: int = 0  # all randomness follows from it
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))  # where to train
    # The items on the device already, where many problems share them.
    resident: Tensor | None = None

    @cached_property
    def parts(self) -> tuple[Array, Array, Pairs, Pairs]:
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
        return default_network(network_shape(self.items)) if self.network is None else self.network

    def recipe_for(self, joint: bool) -> Recipe:
        """The recipe given; the network's own for this kind of objective, changed as asked."""
        if isinstance(self.recipe, Recipe):
            return self.recipe
        own = default_recipe(self.network_name, joint, images=self.items.ndim > 2)
        if not joint and not self.pairs.is_complete:
            own = own.with_(batch_size=None)  # it counts items, where a step takes judgements
        return own.with_(**(self.recipe or {}))

    def seed_of(self, start: int) -> int:
        """The seed of one of several starts; the first has the problem's own."""
        return self.seed + STARTS_APART * start

    def model(self, start: int = 0) -> Model:
        """A fresh model, scaled to the training items; another one for every ``start``."""
        shape = network_shape(self.items)
        network = build_network(self.network, shape, self.n_classes, self.seed_of(start))
        model = Model(InputLayer.fit(self.items, self.parts[0]), network)
        if isinstance(self.network, nn.Module):
            check_outputs(model, self.items, self.n_classes)
        return model

    def run(
        self,
        objective: Objective,
        recipe: Recipe,
        model: nn.Module | None = None,
        start: int = 0,
        split: tuple[Array, Array] | None = None,
    ) -> TrainingRun:
        """A run over the training items; another order of batches for every ``start``.

        ``split`` are the items to train on and those to hold out, where that is not the problem's
        own.
        """
        train, held = self.parts[:2] if split is None else split
        return TrainingRun(
            model or self.model(),
            self.take(train),
            self.take(held),
            objective,
            recipe,
            seed=self.seed_of(start),
            device=self.device,
            process_group=self._process_group,
        )

    @property
    def _process_group(self) -> ProcessGroup | None:
        """The ranks that share the training. Of a network on features a step takes less time than
        exchanging its gradients: every rank trains it whole, to the same end as one process."""
        on_features = self.items.ndim == 2 and self.device.type == "cpu"
        return None if on_features else current_process_group()

    def take(self, index: Array) -> Items:
        """Some items: from the device where they are there already, else a copy, or, of a memory
        map too large for that, a selection that is read as it is needed."""
        if self.resident is not None:
            return self.resident[torch.from_numpy(index).to(self.resident.device)]
        if isinstance(self.items, np.memmap) and self.items.nbytes > LARGEST_COPY:
            return Selection(self.items, index)
        chosen: Items = self.items[index]
        return chosen


def is_exact(problem: Problem) -> tuple[bool, str]:
    """Whether the judgements allow the exact joint objective, and why (not), in a few words.

    Weights say only which judgements count here: see `likewise.pairs.graph`.
    """
    if not problem.pairs.is_consistent():
        return False, "some judgements contradict each other"
    coverage = float((problem.components >= 0).mean())
    if coverage < COVERAGE:
        return (
            False,
            f"the {problem.n_classes} largest groups cover only {coverage:.0%} of the items",
        )
    weight = problem.pairs.weight
    unequal = weight is not None and len(np.unique(weight[weight > 0])) > 1
    note = "; their weights say only which of them count" if unequal else ""
    return True, f"the judgements are consistent and cover {coverage:.0%} of the items{note}"


def check_judgements(pairs: Pairs, which: str) -> None:
    """Refuse judgements from which nothing can be learned; those of all processes count."""
    total = total_of(pairs)
    if total == 0:
        raise InputError(
            f"there is no judgement among the {which} items; give more judgements or change "
            "held_out."
        )
    same = same_of(pairs)
    if which != "held-out" and same in (0, total):
        kind = "same" if same else "different"
        raise InputError(
            f"all {total} judgements among the {which} items say {kind!r}; both kinds are needed."
        )
