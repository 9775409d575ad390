"""Judgements made from known classes, with the noise that one wants to try a method on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.io.atomic import new_folder
from likewise.io.spreadsheets import write_csv
from likewise.items.labels import read_label_file
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.pairs import Pairs

KINDS = ("symmetric", "pair")


@dataclass(frozen=True)
class Simulation:
    """The noise of simulated judgements."""

    class_noise: float = 0.0
    """The rate at which an item is, once and for all, taken for another class."""
    kind: str = "symmetric"
    """For which: any other ("symmetric"), or the next ("pair")."""
    miss: float = 0.0
    """P("different" | same) of a single judgement."""
    false_alarm: float = 0.0
    """P("same" | different) of a single judgement."""
    per_item: int | None = None
    """Judgements an item on average; None for every pair."""
    annotators: int = 0
    """People who share the judgements; 0 for none named."""
    careless: float = 0.0
    """The share of these people who answer by the toss of a coin."""

    def __post_init__(self) -> None:
        for name in ("class_noise", "miss", "false_alarm", "careless"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"{name.replace('_', ' ')} must lie between 0 and 1, but is "
                    f"{getattr(self, name)}."
                )
        if self.kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}.")
        if self.annotators < 0:
            raise InputError(f"annotators must not be negative, but is {self.annotators}.")
        if self.careless and not self.annotators:
            raise InputError("careless people need annotators; say how many there are.")

    def transition(self, n_classes: int) -> NDArray[np.float64]:
        """(C, C) the T that the perceived classes are drawn from."""
        make = symmetric if self.kind == "symmetric" else pair_flip
        return make(n_classes, self.class_noise)


def simulate(labels: ArrayLike, how: Simulation, rng: np.random.Generator) -> Pairs:
    """Judgements about items of true classes ``labels`` (N,): names or numbers, two at least."""
    names, y = np.unique(np.asarray(labels), return_inverse=True)
    if len(names) < 2:
        raise InputError(f"judgements need items of two classes at least, not {len(names)}.")
    z = corrupt_labels(y, how.transition(len(names)), rng)
    pairs = Pairs.from_labels(z, how.per_item, rng)
    if not (how.miss or how.false_alarm or how.annotators):
        return pairs
    if how.annotators > len(pairs):
        raise InputError(
            f"there are only {len(pairs):,} judgements, too few for {how.annotators:,} annotators "
            "to give one each; name fewer."
        )
    listed = pairs.explicit()
    who = rng.integers(how.annotators, size=len(listed)) if how.annotators else None
    chance = np.where(listed.same, 1 - how.miss, how.false_alarm)
    if who is not None:
        is_careless = rng.random(how.annotators) < how.careless
        chance = np.where(is_careless[who], 0.5, chance)
    answers = rng.random(len(listed)) < chance
    people = None if who is None else np.array([f"person{k + 1}" for k in range(how.annotators)])
    return Pairs(
        listed.left, listed.right, answers, who, n_items=listed.n_items, annotator_names=people
    )


def simulate_digits(folder: str | Path, how: Simulation, rng: np.random.Generator) -> Pairs:
    """A new folder with scikit-learn's digits as items, judgements about them, and the truth."""
    from likewise.datasets.digits import load_digits

    digits = load_digits()
    if digits.train_y is None:
        raise InputError("the digits have lost their classes.")
    pairs = simulate(digits.train_y, how, rng)
    with new_folder(Path(folder)) as temporary:
        pairs.write(temporary / "pairs.csv")
        for prefix, x, y in (
            ("", digits.train_x, digits.train_y),
            ("test_", digits.test_x, digits.test_y),
        ):
            np.save(temporary / f"{prefix}items.npy", x, allow_pickle=False)
            write_csv(
                temporary / f"{prefix}truth.csv", {"item": range(len(y)), "label": y.tolist()}
            )
    return pairs


def simulate_labels(
    labels: str | Path, folder: str | Path, how: Simulation, rng: np.random.Generator
) -> Pairs:
    """A new folder with judgements about items whose classes a file (CSV, .npy) tells."""
    ids, classes = read_label_file(labels)
    pairs = simulate(classes, how, rng).explicit().with_item_ids(ids)
    with new_folder(Path(folder)) as temporary:
        pairs.write(temporary / "pairs.csv")
    return pairs
