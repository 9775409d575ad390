"""How to train: a recipe is data, and the paper's and ours are written down here."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from likewise.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """Everything about optimisation that is not the objective.

    ``schedule`` "step" multiplies the rate by ``gamma`` at each of ``milestones`` (fractions of
    the epochs); "cosine" goes to zero; both after ``warmup`` (a fraction too). ``averaging`` is
    the decay of the averaged weights (0: none), which never reach over more than about a ninth of
    the steps so far. ``shift`` moves images by up to that many pixels, reflected; ``flip`` mirrors
    them. ``mixup`` is the Beta parameter (0: none). The teacher (joint objective only) takes over
    after ``mean_teacher_from`` of the epochs: see `likewise.training.step_loss`. Its ``mean_teacher_temperature`` goes
    from the first to the second number; None takes the temperature that suits held-out judgements
    best, as it is estimated along the way.
    ``nonfinite`` says what a batch with a loss or gradient that is not finite does: "stop", or
    "skip" it and count.
    With ``starts`` > 1 a pairwise method begins that often, for ``start_share`` of the epochs, and
    goes on with the start of the best held-out score: the pairwise loss has bad basins. At each of
    ``split_merged_at`` (fractions of the epochs) it gives empty outputs half of a merged class, if the
    judgements show one (`likewise.training.splitting`).
    ``teachers`` (exact joint only) are networks that are trained first, each from a start of
    its own; then one more learns the classes that they find together (`likewise.methods.joint`).
    ``high_noise`` are changes to the recipe once the *estimated* T, a fifth of the way through,
    keeps less than half of the perceived classes.
    """

    epochs: int = 30
    batch_size: int = 128
    optimizer: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: str = "step"
    milestones: tuple[float, ...] = ()
    gamma: float = 0.1
    warmup: float = 0.0
    ema_decay: float = 0.0
    shift: int = 0
    flip: bool = False
    mixup: float = 0.0
    mean_teacher_from: float | None = None
    mean_teacher_temperature: tuple[float, float] | None = (1.0, 1.0)
    balance: float = 0.0
    starts: int = 1
    start_share: float = 0.1
    split_merged_at: tuple[float, ...] = ()
    teachers: int = 0
    # Changes for each generation of students (joint): the last learns from all items, those before
    # are cross-fitted as teachers are, and teach the next (born-again networks).
    students: tuple[dict[str, Any], ...] = ({},)
    # How strongly images are augmented for learning (0: crop and flip alone), see
    # `likewise.training.augmentation`.
    augment_strength: float = 0.0
    high_noise: dict[str, Any] | None = None
    nonfinite: str = "stop"

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))
        object.__setattr__(self, "split_merged_at", tuple(self.split_merged_at))
        if self.mean_teacher_temperature is not None:
            object.__setattr__(
                self, "mean_teacher_temperature", tuple(self.mean_teacher_temperature)
            )
        object.__setattr__(self, "students", tuple(dict(changes) for changes in self.students))
        if self.high_noise is not None:  # tuples, as above: JSON makes lists of them
            changes = {
                k: tuple(v) if isinstance(v, list) else v for k, v in self.high_noise.items()
            }
            object.__setattr__(self, "high_noise", changes)
        problems = {
            "epochs must be at least 1": self.epochs < 1,
            "batch_size must be at least 2": self.batch_size < 2,
            "optimizer must be 'adam' or 'sgd'": self.optimizer not in ("adam", "sgd"),
            "schedule must be 'step' or 'cosine'": self.schedule not in ("step", "cosine"),
            "nonfinite must be 'stop' or 'skip'": self.nonfinite not in ("stop", "skip"),
            "lr must be positive and finite": not 0 < self.lr < math.inf,
            "ema_decay must lie in 0 to 1": not 0 <= self.ema_decay < 1,
            "warmup must lie in 0 to 1": not 0 <= self.warmup < 1,
            "starts must be at least 1": self.starts < 1,
            "teachers must not be negative": self.teachers < 0,
            "students must name at least one generation": not self.students,
            "augment_strength must not be negative": self.augment_strength < 0,
            "start_share must lie in 0 to 1": not 0 < self.start_share <= 1,
            "a teacher needs averaged weights": self.mean_teacher_from is not None
            and not self.ema_decay,
        }
        if found := [problem for problem, holds in problems.items() if holds]:
            raise InputError(f"this training recipe cannot work: {'; '.join(found)}.")

    def with_(self, **changes: Any) -> Recipe:
        """The same recipe with some fields changed."""
        known = {field.name for field in fields(self)}
        if unknown := sorted(set(changes) - known):
            raise InputError(
                f"a recipe has no {', '.join(unknown)}; it has {', '.join(sorted(known))}."
            )
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


# The paper's settings (section 5): Adam at 1e-3, dropped tenfold.
PAPER: dict[str, Recipe] = {
    "lenet": Recipe(epochs=30, batch_size=128, milestones=(1 / 3, 2 / 3)),
    "resnet32": Recipe(epochs=120, batch_size=128, milestones=(1 / 3, 2 / 3), shift=4, flip=True),
    "vgg8": Recipe(epochs=200, batch_size=1000, milestones=(0.4, 0.8), shift=4, flip=True),
    "resnet50": Recipe(epochs=10, batch_size=256, milestones=(0.5,), flip=True),
}

# For features the paper has none: full use of small data, averaged weights.
FEATURES = Recipe(epochs=150, batch_size=128, schedule="cosine", ema_decay=0.98)

# What was measured to help the joint objective (docs/measured.md): large steps, averaged weights,
# mixup, on CIFAR-10 a teacher, and teachers.
JOINT: dict[str, Recipe] = {
    "lenet": Recipe(
        epochs=40, batch_size=256, optimizer="sgd", lr=0.05, weight_decay=5e-4, schedule="cosine",
        warmup=0.05, ema_decay=0.998, shift=2, mixup=0.5, teachers=2,
        students=({"epochs": 60, "augment_strength": 0.3},),
    ),
    "resnet32": Recipe(
        epochs=60, batch_size=256, optimizer="sgd", lr=0.15, weight_decay=5e-4, schedule="cosine",
        warmup=0.03, ema_decay=0.998, shift=4, flip=True, mixup=0.5, teachers=2,
        students=(
            {"epochs": 60, "augment_strength": 0.3}, {"epochs": 120, "augment_strength": 0.4},
        ),
    ),
    "vgg8": Recipe(
        epochs=60, batch_size=256, optimizer="sgd", lr=0.1, weight_decay=1e-3, schedule="cosine",
        warmup=0.03, ema_decay=0.9995, shift=4, flip=True, mixup=0.5, teachers=2,
        students=(
            {"epochs": 60, "augment_strength": 0.2}, {"epochs": 120, "augment_strength": 0.3},
        ),
    ),
    "resnet18": Recipe(
        epochs=40, batch_size=256, optimizer="sgd", lr=0.1, weight_decay=5e-4, schedule="cosine",
        warmup=0.05, ema_decay=0.998, shift=4, flip=True, mixup=0.5, teachers=2,
        augment_strength=0.3,
        students=(
            {"epochs": 60, "augment_strength": 0.7}, {"epochs": 80, "augment_strength": 0.9},
        ),
    ),
}  # fmt: skip
# Mixing items delays memorisation, and the rate falls to zero before it sets in. How much mixing,
# and how many teachers: by noisy judgements of other digits (benchmarks/digits_recipe.py).
JOINT["mlp"] = FEATURES.with_(epochs=40, lr=3e-3, mixup=2.0, teachers=4)


def default_recipe(network: str | None, joint: bool) -> Recipe:
    """The recipe for a named network (None: a module of the user's) and kind of objective."""
    known = JOINT if joint else PAPER
    return known.get(network or "", FEATURES)
