"""A run that can be handed on: nobody's name, no item's id or picture, no single judgement.

What is learned of all together stays: the model, the noise, how reliable each (numbered) person
is, and the items' places on the map and their class probabilities, in an order that nobody knows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.io.json import Record

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier
    from likewise.runs.report_data import ReportData

SAID = "private"  # the field of config.json


def without_paths(config: Record) -> Record:
    """What was asked, less where the inputs lay: a path may hold a name."""
    return {
        name: {key: value for key, value in part.items() if key != "path"}
        if isinstance(part, dict)
        else part
        for name, part in config.items()
    } | {SAID: True}


def without_beliefs(classifier: SimilarityClassifier) -> SimilarityClassifier:
    """The classifier without what its fit says of single items and judgements."""
    from likewise.methods.result import names_kept

    private = copy(classifier)
    private.result_ = private.result_.with_(**dict.fromkeys(names_kept("array")))
    return private


def without_items(data: ReportData) -> ReportData:
    """The kept items in another order, no picture of any, and no judgement."""
    order = shuffled(len(data.kept))
    return replace(
        data,
        kept=np.arange(len(order)),
        posterior=data.posterior[order],
        map=data.map[order],
        thumbnails=None,
        thumbnail_of=data.thumbnail_of[:0],
        suspects={name: [] for name in data.suspects},
    )


def shuffled(n: int) -> NDArray[np.int64]:
    """An order of n things that no seed brings back."""
    return np.random.default_rng().permutation(n)


def numbered_items(n: int) -> NDArray[np.str_]:
    """(n,) what items are called that have lost their ids."""
    return np.array([f"item {k}" for k in range(1, n + 1)], np.str_)
