"""The data of one joint fit, on one device, and the heads that suit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.inference.em import Options
from likewise.inference.heads.cross_fitting import Head, NetworkHead, ReplayedHead
from likewise.inference.heads.gaussian import Features, GaussianHead
from likewise.inference.propagation.graph import Graph
from likewise.items import check_items, network_shape
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network
from likewise.noise import check_transition
from likewise.pairs import Pairs
from likewise.training.replay_cache import ReplayCache

# Gaussian heads take over where a network could memorise at will: few items, many features.
MAX_GAUSSIAN_ITEMS = 3000
RICH_FEATURES = 0.25  # features an item
# With fewer features they compete with a network where several people judged so few items that a
# network alone would hardly find the classes.
FEW_ITEMS = 1000
STIFFNESS = (1.0, 0.5, 0.2)
BRIEF_ROUNDS = 5  # of EM


@dataclass(frozen=True)
class JointProblem:
    """Items and judgements as tensors; randomness comes from its two generators alone."""

    pairs: Pairs
    graph: Graph
    items: Tensor
    build: Callable[[int], nn.Module]
    n_classes: int
    options: Options
    rng: np.random.Generator
    generator: torch.Generator
    features: Features | None = field(default=None, repr=False)
    replay_cache: ReplayCache | None = field(default=None, repr=False)

    @property
    def n_annotators(self) -> int:
        names = self.pairs.annotator_names
        return 0 if names is None else len(names)

    def network_head(self) -> Head:
        epochs, final = self.options.epochs, self.options.final_epochs
        head = NetworkHead(self.items, self.build, epochs=epochs, final_epochs=final)
        return head if self.replay_cache is None else ReplayedHead(head, self.replay_cache)

    def heads(self) -> list[Head]:
        """The heads to choose from: a network; or, where items are few, Gaussian ones.

        The stiffest first: that mends mistakes that people share, the flexible ones keep classes
        that features blur. A network may show what Gaussians cannot where features are few.
        """
        if self.features is None:
            return [self.network_head()]
        heads: list[Head] = [GaussianHead(self.features, stiffness) for stiffness in STIFFNESS]
        return heads if self.rich else [*heads, self.network_head()]

    @property
    def rich(self) -> bool:
        """Whether a network could memorise every item: a feature for four of them, or more."""
        return _are_rich(self.items)

    def with_transition(self, transition: Tensor) -> JointProblem:
        """The same with T fixed."""
        return replace(self, options=replace(self.options, transition=transition))


def make_problem(
    X: ArrayLike,
    pairs: Pairs,
    n_classes: int,
    network: str | nn.Module | None,
    transition: str | ArrayLike | None,
    rng: np.random.Generator,
    device: str | torch.device,
    options: Options,
    replay_cache: ReplayCache | None = None,
    known: Tensor | None = None,
) -> JointProblem:
    """Check what a person handed in, and put what counts of it on the device."""
    items = check_items(X)
    if len(items) < pairs.n_items:
        raise InputError(
            f"a judgement names item {pairs.n_items - 1}, but there are only {len(items)} items."
        )
    if n_classes < 2:
        raise InputError(f"n_classes must be at least 2, but is {n_classes}.")
    pairs = pairs.that_count()
    if not len(pairs):
        raise InputError("there are no judgements to learn from.")
    shape, scaling = network_shape(items), InputLayer.fit(items)

    def build(seed: int) -> nn.Module:
        inputs = InputLayer(scaling.mean.clone(), scaling.scale.clone(), scaling.images)
        return Model(inputs, build_network(network, shape, n_classes, seed))

    known = None if known is None else known.to(device)
    graph = replace(Graph.from_pairs(pairs, device), n_items=len(items), known=known)
    tensor = torch.tensor(items, device=device)  # a copy: a memory map may not be written to
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    several = pairs.annotator_names is not None and len(pairs.annotator_names) > 1
    suited = has_rich_features(items, network) or (
        several and _are_at_most(FEW_ITEMS, items, network)
    )
    return JointProblem(
        pairs,
        graph,
        tensor,
        build,
        n_classes,
        replace(options, transition=_fixed_transition(transition, n_classes)),
        rng,
        generator,
        Features.of(tensor) if suited else None,
        replay_cache,
    )


def make_brief_problem(
    items: ArrayLike, pairs: Pairs, rng: np.random.Generator
) -> JointProblem | None:
    """For short fits by Gaussian heads, to any number of classes; None where no item differs."""
    about = None, "estimate", rng, "cpu", Options(rounds=BRIEF_ROUNDS)
    problem = make_problem(items, pairs, 2, *about)
    features = problem.features or Features.of(problem.items)
    return None if features is None else replace(problem, features=features)


def has_rich_features(items: NDArray[np.generic], network: str | nn.Module | None) -> bool:
    """Whether Gaussian heads suit the items: few, with many features each."""
    return _are_at_most(MAX_GAUSSIAN_ITEMS, items, network) and _are_rich(items)


def _are_rich(items: NDArray[np.generic] | Tensor) -> bool:
    return bool(items.shape[1] >= RICH_FEATURES * len(items))


def _are_at_most(most: int, items: NDArray[np.generic], network: str | nn.Module | None) -> bool:
    return network is None and items.ndim == 2 and len(items) <= most


def spanning(pairs: Pairs) -> Pairs:
    """A few judgements that say as much as a complete set does, where a channel is exact.

    A chain through each perceived class, and the first items of the classes all different.
    """
    group = pairs.components()
    order = np.argsort(group, kind="stable")
    joined = group[order[1:]] == group[order[:-1]]
    first = order[np.append(True, ~joined)]
    i, j = np.triu_indices(len(first), 1)
    left = np.concatenate([order[:-1][joined], first[i]])
    right = np.concatenate([order[1:][joined], first[j]])
    return Pairs(left, right, np.arange(len(left)) < joined.sum(), n_items=pairs.n_items)


def nearly_identity(n_classes: int) -> Tensor:
    """No class flips, but no impossible perception either."""
    return 0.995 * torch.eye(n_classes, dtype=torch.float64) + 0.005 / n_classes


def _fixed_transition(transition: str | ArrayLike | None, n_classes: int) -> Tensor | None:
    if transition is None:
        return nearly_identity(n_classes)
    if not isinstance(transition, str):
        return torch.as_tensor(check_transition(transition, n_classes))
    if transition != "estimate":
        raise InputError(f"transition must be 'estimate', a matrix or None, not {transition!r}.")
    return None
