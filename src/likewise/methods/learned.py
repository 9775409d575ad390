"""What a fitted estimator shows of its result, as attributes that end in an underscore."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from likewise.io.npy import Array
from likewise.methods.result import Columns, FitResult, FloatMatrix, Row
from likewise.noise.channels import Channel

FIELDS = frozenset(field.name for field in fields(FitResult))


class Learned:
    """Attributes read off ``result_``: its field ``transition`` is ``transition_`` here.

    Every field is one, also those that are not annotated below.
    """

    result_: FitResult
    classes_: Array
    model_: nn.Module
    transition_: FloatMatrix | None
    channel_: Channel | None
    annotators_: Columns | None
    posterior_: NDArray[np.float32] | None
    history_: list[Row]
    choice_: str
    method_: str
    best_epoch_: int
    score_: float
    class_evidence_: dict[str, object] | None
    warnings_: list[str]

    def __getattr__(self, name: str) -> Any:
        field = name.removesuffix("_")
        result = self.__dict__.get("result_")
        if field == name or result is None or field not in FIELDS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(result, field)

    @property
    def labels_(self) -> Array | None:
        """(N,) the fitted items' classes *given their judgements*; None where none are known."""
        labels = self.result_.labels
        if labels is None and self.result_.posterior is not None:
            labels = self.result_.posterior.argmax(axis=1)
        return None if labels is None else np.asarray(self.classes_[labels])
