"""Joining several sets of judgements about the same items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.pairs.container import Pairs


def join(parts: Sequence[Pairs]) -> Pairs:
    """All judgements of several sets; what one of them lacks (a person, a weight) is filled in."""
    if not parts:
        raise InputError("there is nothing to concatenate: give at least one Pairs.")
    if len(parts) == 1:
        return parts[0]
    listed = [part.explicit() for part in parts]
    annotator, names = _join_annotators(listed)
    weight = None
    if any(part.weight is not None for part in listed):
        weight = np.concatenate(
            [np.ones(len(p), np.float32) if p.weight is None else p.weight for p in listed]
        )
    joined = Pairs(
        np.concatenate([part.left for part in listed]),
        np.concatenate([part.right for part in listed]),
        np.concatenate([part.same for part in listed]),
        annotator,
        weight,
        n_items=max(part.n_items for part in listed),
        annotator_names=names,
    )
    joined.dropped = sum(part.dropped for part in listed)
    joined.item_ids = _join_item_ids(listed)
    return joined


def _join_annotators(
    parts: Sequence[Pairs],
) -> tuple[NDArray[np.int32] | None, NDArray[np.str_] | None]:
    """The annotator columns of several sets as codes into one list of names; "" is nobody."""
    if all(part.annotator is None for part in parts):
        return None, None
    nobody = np.array([""], np.str_)
    named = [nobody if p.annotator_names is None else p.annotator_names for p in parts]
    names = np.unique(np.concatenate(named))
    codes = [
        np.searchsorted(names, own).astype(np.int32)[
            np.zeros(len(part), np.int32) if part.annotator is None else part.annotator
        ]
        for part, own in zip(parts, named, strict=True)
    ]
    return np.concatenate(codes), names


def _join_item_ids(parts: Sequence[Pairs]) -> NDArray[np.str_] | None:
    ids = [part.item_ids for part in parts if part.item_ids is not None]
    if any(not np.array_equal(ids[0], other) for other in ids[1:]):
        raise InputError(
            "the judgements name different items, so their indices do not agree; read every file "
            "with the same item_ids=."
        )
    return ids[0] if ids else None
