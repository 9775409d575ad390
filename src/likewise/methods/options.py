"""How options travel: asked for once, then honoured by the method, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.methods.registry import (
    JOINT_FIELDS,
    PAIRWISE_FIELDS,
    Method,
    methods_that_honour,
)
from likewise.noise.registry import noise_names
from likewise.training.recipe import Recipe

if TYPE_CHECKING:
    from likewise.training.checkpoints import Checkpoints

FloatMatrix = NDArray[np.float64]


@dataclass(frozen=True)
class FitOptions:
    """What may be asked of a method, beside the problem and its recipe."""

    transition: FloatMatrix | str | None = "estimate"
    """T: "estimate", a (C, C) matrix, or None for no class flips."""
    noise: str = "auto"
    """The noise model, by its name in `likewise.noise.registry`."""
    anchors: str | float = "counts"
    """How T is estimated from a network of stage 1: "counts", "argmax" or a quantile."""
    known: NDArray[np.int64] | None = None
    """(N,) classes of items that are certain beforehand, as numbers; -1 for all others."""
    checkpoints: Checkpoints | None = None
    """Where a fit that is cut short goes on from."""

    def __post_init__(self) -> None:
        if isinstance(self.transition, str) and self.transition != "estimate":
            raise InputError(
                f"transition must be 'estimate', a matrix or None, not {self.transition!r}."
            )
        if self.noise not in noise_names():
            raise InputError(
                f"noise must be one of {', '.join(noise_names())}, not {self.noise!r}."
            )
        quantile = isinstance(self.anchors, float) and 0 < self.anchors < 1
        if not quantile and self.anchors not in ("counts", "argmax"):
            raise InputError(
                f"anchors must be 'counts', 'argmax' or a quantile, not {self.anchors!r}."
            )

    @property
    def given_transition(self) -> FloatMatrix | None:
        """T where it was given, else None."""
        return self.transition if isinstance(self.transition, np.ndarray) else None

    @property
    def asked(self) -> dict[str, str]:
        """The options that change what a method would do by itself, in the words of the caller."""
        found: dict[str, str] = {}
        if self.given_transition is not None:
            found["transition"] = "a given transition matrix"
        if self.noise != "auto":
            found["noise"] = f"noise={self.noise!r}"
        if self.anchors != "counts":
            found["anchors"] = f"anchors={self.anchors!r}"
        if self.known is not None:
            found["known"] = "known classes of items"
        return found

    def identity(self) -> dict[str, object]:
        """What checkpoints are recognised by, as JSON knows it."""
        given = self.given_transition
        transition = self.transition if given is None else given.tolist()
        known = {} if self.known is None else {"known": self.known.tolist()}
        return {"noise": self.noise, "anchors": self.anchors, "transition": transition, **known}


def check_asked(
    method: Method, options: FitOptions, recipe: Recipe | Mapping[str, object] | None
) -> None:
    """Refuse what the method would not use: nothing that was asked for is ever ignored."""
    for name, words in options.asked.items():
        if name not in method.honours:
            raise InputError(_refusal(method, name, words))
    for name in _fields_asked(recipe):
        if name in JOINT_FIELDS | PAIRWISE_FIELDS and name not in method.recipe_fields:
            raise InputError(_refusal(method, name, f"the recipe's {name}"))


def _fields_asked(recipe: Recipe | Mapping[str, object] | None) -> list[str]:
    """The fields that differ from what a recipe has by itself: in a whole one all are set."""
    given = recipe.to_dict() if isinstance(recipe, Recipe) else dict(recipe or {})
    usual = Recipe().to_dict()
    as_tuple = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    return [name for name, value in as_tuple.items() if usual.get(name, ...) != value]


def _refusal(method: Method, name: str, words: str) -> str:
    using = " or ".join(f"method={other!r}" for other in methods_that_honour(name))
    return f"method={method.name!r} does not use {words}; leave it out, or take {using}."
