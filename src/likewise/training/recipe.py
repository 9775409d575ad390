"""How to train: a recipe is data, and the paper's and ours are written down here."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace

from likewise.errors import InputError

RecipeValue = int | float | str | bool | tuple[float, ...] | list[float] | None


ITEMS_PER_STEP = 128  # where a recipe does not say
MOST = 1_000_000  # epochs, or items of a batch: more than that is a slip


@dataclass(frozen=True)
class Recipe:
    """Everything about optimisation that is not the objective."""

    # How often every item (or listed judgement) is seen.
    epochs: int = 30
    # Items, or listed judgements, that a step takes; None: 128 items, or as many judgements as
    # their number asks for.
    batch_size: int | None = None
    # "adam" (AdamW: its decay is decoupled) or "sgd" (Nesterov).
    optimizer: str = "adam"
    # The highest learning rate.
    lr: float = 1e-3
    # Of SGD.
    momentum: float = 0.9
    weight_decay: float = 0.0
    # How the rate falls: "step" by ``gamma`` at each of ``milestones``, "cosine" to zero.
    schedule: str = "step"
    # Fractions of the epochs.
    milestones: tuple[float, ...] = ()
    gamma: float = 0.1
    # Fraction of the epochs over which the rate rises to ``lr`` at first.
    warmup: float = 0.0
    # Decay of the exponential moving average of the weights, which is what is kept; 0: none. It
    # never reaches over more than about a ninth of the steps so far.
    ema_decay: float = 0.0
    # Pixels by which images are moved at most, their borders reflected.
    shift: int = 0
    # Whether images are flipped (left to right) half of the time; predictions then take the mean
    # of both sides (test-time augmentation).
    flip: bool = False
    # Beta parameter of mixup (joint objective only); 0: none.
    mixup: float = 0.0
    # From which fraction of the epochs on the averaged weights teach (mean teacher, joint
    # objective only); None: never.
    mean_teacher_from: float | None = None
    # By what the mean teacher's logits are divided, at first and at the end; None: by the
    # temperature that suits held-out judgements, as it is estimated along the way.
    mean_teacher_temperature: tuple[float, float] | None = (1.0, 1.0)
    # Weight of the entropy of the mean prediction, which keeps all classes alive (pairwise only).
    balance: float = 0.0
    # Whether all pairs of a batch include those of an item with itself, as in the authors' code
    # (pairwise only): answers that nobody gave, which bias the noise model.
    self_pairs: bool = False
    # What of held-out judgements chooses the epoch (pairwise only): their "cost", or, as in the
    # paper, the "error" of the perceived class.
    stop_by: str = "cost"
    # How many random starts a pairwise method makes; it goes on with the one of the best held-out
    # score, since the pairwise losses have bad basins.
    starts: int = 1
    # Fraction of the epochs that each start is trained for before they are compared.
    start_share: float = 0.1
    # Fractions of the epochs at which a pairwise method splits merged outputs
    # (`likewise.training.splitting`).
    split_merged_at: tuple[float, ...] = ()
    # Networks that are trained first, each from a start of its own, to teach the one that is kept
    # (joint only): self-distillation as in born-again networks (Furlanello et al., ICML 2018); see
    # `likewise.methods.joint`.
    teachers: int = 0
    # Changes for each generation of students (joint), which learns from all networks before it;
    # the last of several from all items, the held-out ones included.
    students: tuple[dict[str, RecipeValue], ...] = ({},)
    # How strongly images are augmented for learning (0: crop and flip alone), see
    # `likewise.training.augmentation`.
    augment_strength: float = 0.0
    # Changes to this recipe once the *estimated* T, a fifth of the way through, keeps less than
    # half of the perceived classes.
    high_noise: dict[str, RecipeValue] | None = None
    # What a batch with a loss or gradient that is not finite does: "stop" the training, or "skip"
    # it and be counted.
    nonfinite: str = "stop"
    # Whether networks, augmentation and the loss over all pairs are compiled (torch.compile) before
    # the first step: it takes up to a minute and changes no more than rounding, so it pays for long
    # training on a GPU.
    compile: bool = False

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
            f"epochs must lie between 1 and {MOST:,}": not 1 <= self.epochs <= MOST,
            f"batch_size must lie between 2 and {MOST:,}": self.batch_size is not None
            and not 2 <= self.batch_size <= MOST,
            "optimizer must be 'adam' or 'sgd'": self.optimizer not in ("adam", "sgd"),
            "schedule must be 'step' or 'cosine'": self.schedule not in ("step", "cosine"),
            "nonfinite must be 'stop' or 'skip'": self.nonfinite not in ("stop", "skip"),
            "stop_by must be 'cost' or 'error'": self.stop_by not in ("cost", "error"),
            "lr must be positive and finite": not 0 < self.lr < math.inf,
            "ema_decay must lie in 0 to 1": not 0 <= self.ema_decay < 1,
            "warmup must lie in 0 to 1": not 0 <= self.warmup < 1,
            "starts must be at least 1": self.starts < 1,
            "teachers must not be negative": self.teachers < 0,
            "students must name at least one generation": not self.students,
            "augment_strength must not be negative": self.augment_strength < 0,
            "start_share must lie in 0 to 1": not 0 < self.start_share <= 1,
            "a mean teacher needs averaged weights (ema_decay)": self.mean_teacher_from is not None
            and not self.ema_decay,
        }
        if found := [problem for problem, holds in problems.items() if holds]:
            raise InputError(f"this training recipe cannot work: {'; '.join(found)}.")

    @property
    def items_per_step(self) -> int:
        return ITEMS_PER_STEP if self.batch_size is None else self.batch_size

    def with_(self, **changes: object) -> Recipe:
        """The same recipe with some fields changed."""
        known = {field.name for field in fields(self)}
        if unknown := sorted(set(changes) - known):
            raise InputError(
                f"a recipe has no {', '.join(unknown)}; it has {', '.join(sorted(known))}."
            )
        return replace(self, **changes)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """The fields by name, as JSON knows them."""
        return asdict(self)


# For features the paper has no recipe: full use of small data, averaged weights.
FEATURES = Recipe(epochs=150, batch_size=128, schedule="cosine", ema_decay=0.98)
# For modules of the user's on images: nothing that depends on what the images show, as flips do.
IMAGES = Recipe(epochs=60, batch_size=128, schedule="cosine", warmup=0.05, ema_decay=0.998, shift=2)

# The paper's settings (section 5) for KCL, MCL and MNS: Adam at 1e-3, dropped tenfold.
PAPER: dict[str, Recipe] = {
    "lenet": Recipe(epochs=30, batch_size=128, milestones=(1 / 3, 2 / 3)),
    "resnet32": Recipe(epochs=120, batch_size=128, milestones=(1 / 3, 2 / 3), shift=4, flip=True),
    "vgg8": Recipe(epochs=200, batch_size=1000, milestones=(0.4, 0.8), shift=4, flip=True),
    "resnet50": Recipe(epochs=10, batch_size=256, milestones=(0.5,), flip=True),
}
PAPER |= {"lenet_l2c": PAPER["lenet"], "vgg8_l2c": PAPER["vgg8"]}
PAPER["resnet18"] = PAPER["resnet32"]  # not in the paper: its recipe for the same images
PAPER |= dict.fromkeys(("mlp", "linear", "unit_linear"), FEATURES)

# What was measured to help the joint objective (docs/measured.md): large steps, averaged weights,
# mixup, on CIFAR-10 a mean teacher, and teachers.
JOINT: dict[str, Recipe] = {
    "lenet": Recipe(
        epochs=40, batch_size=256, optimizer="sgd", lr=0.05, weight_decay=5e-4, schedule="cosine",
        warmup=0.05, ema_decay=0.998, shift=2, mixup=0.5, teachers=2,
        students=(
            {"epochs": 30, "augment_strength": 0.3}, {"epochs": 60, "augment_strength": 0.3},
        ),
    ),
    "resnet32": Recipe(
        epochs=80, batch_size=256, optimizer="sgd", lr=0.15, weight_decay=5e-4, schedule="cosine",
        warmup=0.03, ema_decay=0.998, shift=4, flip=True, mixup=0.5, teachers=4,
        students=(
            {"epochs": 120, "augment_strength": 0.3}, {"epochs": 200, "augment_strength": 0.4},
        ),
    ),
    "vgg8": Recipe(
        epochs=60, batch_size=256, optimizer="sgd", lr=0.1, weight_decay=1e-3, schedule="cosine",
        warmup=0.03, ema_decay=0.9995, shift=4, flip=True, mixup=0.5, teachers=3,
        students=(
            {"epochs": 100, "augment_strength": 0.2}, {"epochs": 160, "augment_strength": 0.3},
        ),
    ),
    "resnet18": Recipe(
        epochs=40, batch_size=256, optimizer="sgd", lr=0.1, weight_decay=5e-4, schedule="cosine",
        warmup=0.05, ema_decay=0.998, shift=4, flip=True, mixup=0.5, teachers=2,
        augment_strength=0.3,
        students=(
            {"epochs": 60, "augment_strength": 0.7}, {"epochs": 120, "augment_strength": 0.9},
        ),
    ),
    "resnet50": PAPER["resnet50"].with_(ema_decay=0.998),
    "linear": FEATURES,
    "unit_linear": FEATURES,
}  # fmt: skip
# Mixing items delays memorisation, and the rate falls to zero before it sets in. How much mixing:
# by noisy judgements of other digits (benchmarks/digits_recipe.py).
JOINT |= {"lenet_l2c": JOINT["lenet"], "vgg8_l2c": JOINT["vgg8"]}
JOINT["mlp"] = FEATURES.with_(epochs=40, lr=3e-3, mixup=2.0, teachers=4)


def default_recipe(network: str | None, joint: bool, images: bool = False) -> Recipe:
    """The recipe for a named network and kind of objective.

    A network without one of its own (None: a module of the user's) is trained by that for
    ``images``, or for features.
    """
    known = JOINT if joint else PAPER
    other = IMAGES.with_(mixup=0.5 if joint else 0.0) if images else FEATURES
    return known.get(network or "", other)
