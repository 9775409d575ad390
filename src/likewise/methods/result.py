"""`FitResult`: everything that a fit has learned, in one shape from the method to the files.

A classifier's attributes (``transition`` here is ``transition_`` there), ``model.json`` and
``metrics.json`` are read off it, so that a newly learned number is one line: its field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from torch import nn

from likewise.errors import InputError
from likewise.io.json import JsonObject, plain_object
from likewise.noise import check_transition
from likewise.noise.channels import Channel
from likewise.noise.registry import channel_from_dict
from likewise.training.run import TrainingRun

FloatMatrix = NDArray[np.float64]
Row = dict[str, object]
Columns = dict[str, list[object]]
Arrays = dict[str, NDArray[np.generic]]

# Where a field is kept: "json" unless it says otherwise; "array" in a file of arrays; "not" in none
# (networks are kept as weights, and clocks would make equal fits differ).
KEPT = "kept"
ARRAY = {KEPT: "array"}
NOT = {KEPT: "not"}


@dataclass(frozen=True)
class FitResult:
    """What a method learned. N items, C classes."""

    method: str
    """Its name in `likewise.methods.registry`."""
    model: nn.Module = field(metadata=NOT)
    """Items to (n, C) logits of the class posterior g, at the epoch that was chosen."""
    last_model: nn.Module = field(metadata=NOT)
    """The same at the last epoch."""
    transition: FloatMatrix | None
    """(C, C) T as training used it, rows true classes; where noise depends on the item, T at the
    items of which networks are sure; None where the method has none."""
    history: list[Row]
    """A row an epoch, of all networks that were trained; the kept one's own come last."""
    best_epoch: int
    """The epoch that was chosen, from 0, among the rows of the last stage."""
    score: float
    """The cost by which it was chosen; lower is better."""
    choice: str = ""
    """Which method and noise model, and why, in one line."""
    channel: Channel | None = None
    """How answers come from two perceived classes, where that was learned."""
    annotators: Columns | None = None
    """A table of the people by columns, the most reliable first."""
    posterior: NDArray[np.float32] | None = field(default=None, metadata=ARRAY)
    """(N, C) class posterior of the fitted items *given their judgements*."""
    labels: NDArray[np.int64] | None = field(default=None, metadata=ARRAY)
    """(N,) class of the fitted items given their judgements, as numbers."""
    marginal_transition: FloatMatrix | None = None
    """(C, C) T over all items, sure or not, where noise depends on the item; None elsewhere."""
    calibration_temperature: float | None = None
    """What the logits were divided by, so that probabilities suit judgements not trained on."""
    judgements_held_out: bool = False
    """Whether judgements among the held-out items were kept from training altogether."""
    class_evidence: dict[str, object] | None = None
    """What the number of classes was read off; None where it was given."""
    warnings: list[str] = field(default_factory=list)
    """What a person should know before trusting it, in sentences."""
    seconds_before: float = field(default=0.0, metadata=NOT)
    """Of training, before it was resumed."""

    def to_dict(self) -> JsonObject:
        """All but the networks and the arrays of items and judgements, as plain JSON."""
        values = {name: getattr(self, name) for name in names_kept("json")}
        if self.channel is not None:
            values["channel"] = self.channel.to_dict()
        return plain_object(values)

    def arrays(self) -> Arrays:
        """The arrays of items and judgements that are there, by field."""
        found = {name: getattr(self, name) for name in names_kept("array")}
        return {name: np.asarray(array) for name, array in found.items() if array is not None}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, object], model: nn.Module, arrays: Arrays | None = None
    ) -> FitResult:
        """From `to_dict` and `arrays`; what does not fit is an `InputError` that names the field.

        A field that is lacking takes its default (files of an older version lack some).
        """
        if unknown := sorted(set(data) - set(names_kept("json"))):
            raise InputError(f"there is a result {unknown[0]!r} that no fit has.")
        values: dict[str, object] = {}
        for name, hint in _hints().items():
            if name in data:
                values[name] = _READERS.get(name, _checked(hint))(name, data[name])
        if missing := [name for name in _needed() if name not in values]:
            raise InputError(f"the field {missing[0]!r} is missing; the model was not saved whole.")
        return cls(**values, **(arrays or {}), model=model, last_model=model)  # type: ignore[arg-type]

    def with_(self, **changes: object) -> FitResult:
        """The same with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


@cache
def names_kept(how: str) -> tuple[str, ...]:
    """The fields that are kept as "json", as "array" or "not"."""
    return tuple(f.name for f in fields(FitResult) if f.metadata.get(KEPT, "json") == how)


@cache
def _hints() -> dict[str, object]:
    hints = get_type_hints(FitResult)
    return {name: hints[name] for name in names_kept("json")}


def _needed() -> list[str]:
    """The fields without which there is no result: those that have no default."""
    return [
        f.name
        for f in fields(FitResult)
        if f.name in names_kept("json") and f.default is MISSING and f.default_factory is MISSING
    ]


def _checked(hint: object) -> Callable[[str, object], object]:
    """A reader of a field that JSON holds as it is, by the field's own annotation."""

    def read(name: str, value: object) -> object:
        if value is None and hint is float:
            return math.nan  # as `plain` writes it
        if not fits(value, hint):
            raise InputError(f"the field {name!r} is of the wrong type.")
        return float(value) if hint is float else value  # type: ignore[arg-type]

    return read


def fits(value: object, hint: object) -> bool:
    """Whether a value out of JSON is of an annotated type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if hint is NoneType:
        return value is None
    if hint is float:
        return type(value) in (int, float)
    if origin is list:
        return isinstance(value, list) and all(fits(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(one, inner[1]) for one in value.values())
    return hint is object or type(value) is hint


def _read_matrix(name: str, value: object) -> FloatMatrix | None:
    if value is None:
        return None
    check_transition(value)  # type: ignore[arg-type]
    return np.array(value, np.float64)  # bit for bit, where the check divides by sums of 1


def _read_channel(name: str, value: object) -> Channel | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"the field {name!r} is of the wrong type.")
    return channel_from_dict(value)


_READERS: dict[str, Callable[[str, object], object]] = {
    "transition": _read_matrix,
    "marginal_transition": _read_matrix,
    "channel": _read_channel,
}

MethodProgram = Generator[TrainingRun, TrainingRun, FitResult]


def finish(run: TrainingRun, method: str, transition: FloatMatrix | None) -> FitResult:
    """The outcome of a trained run."""
    return FitResult(
        method=method,
        model=run.select(),
        last_model=run.select(best=False),
        transition=transition,
        history=[{"method": method, **row} for row in run.history],
        best_epoch=int(run.best.epoch),
        score=float(run.best.score),
        judgements_held_out=True,
        seconds_before=run.log.seconds_before,
    )


def last_stage(history: Sequence[Row]) -> list[Row]:
    """The rows of the network that was kept: where several were trained, its own come last."""
    return [row for row in history if row.get("method") == history[-1].get("method")]
