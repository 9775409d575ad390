"""Problems small enough to learn in a second, shared by the tests of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.methods.problem import Problem
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from likewise.training.scheduler import Program

QUICK = Recipe(epochs=8, batch_size=32, lr=0.02, schedule="cosine", ema_decay=0.9)


def blobs(
    n: int = 240, n_classes: int = 3, apart: float = 3.0, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features (n, n_classes + 1) in Gaussian groups, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    centres = apart * np.eye(n_classes, n_classes + 1)
    return (rng.normal(size=(n, n_classes + 1)) + centres[y]).astype(np.float32), y


def pictures(
    n: int = 120, size: int = 8, channels: int | None = None, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """uint8 images with a bright upper or lower half, and which."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    shape = (n, size, size) if channels is None else (n, size, size, channels)
    images = rng.integers(0, 100, size=shape)
    half = size // 2
    images[y == 0, :half] += 120
    images[y == 1, half:] += 120
    return images.astype(np.uint8), y


def noisy(y: NDArray[np.int64], rate: float, seed: int = 1) -> NDArray[np.int64]:
    return corrupt_labels(y, symmetric(int(y.max()) + 1, rate), seed)


def tiny_problem(
    recipe: Recipe | None = QUICK,
    *,
    noise: float = 0.0,
    per_item: int | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Problem, NDArray[np.int64]]:
    """Three blobs with all pairs (or some), and their true classes."""
    X, y = blobs()
    pairs = Pairs.from_labels(noisy(y, noise), per_item, random_state=0)
    return Problem(X, pairs, 3, recipe=recipe, seed=seed, **options), y


def watched(
    program: Program[Any],
    before: Callable[[TrainingRun], None] | None = None,
    after: Callable[[TrainingRun], None] | None = None,
) -> Program[Any]:
    """The same program; each run that it asks for is shown before and after it is trained."""
    run = next(program)
    while True:
        if before is not None:
            before(run)
        run = yield run
        if after is not None:
            after(run)
        try:
            run = program.send(run)
        except StopIteration as stop:
            return stop.value


def flat(module: torch.nn.Module) -> torch.Tensor:
    """All of a module's state as one vector, to compare bit for bit."""
    return torch.cat([t.detach().double().flatten() for t in module.state_dict().values()])
