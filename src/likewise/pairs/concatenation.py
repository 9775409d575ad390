"""Joining several sets of judgements about the same items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.pairs.columns import Column
from likewise.pairs.container import Pairs
from likewise.pairs.table import COLUMNS


def join(parts: Sequence[Pairs]) -> Pairs:
    """All judgements of several sets; what one of them lacks (a person, a weight) is filled in."""
    if not parts:
        raise InputError("there is nothing to concatenate: give at least one Pairs.")
    if len(parts) == 1:
        return parts[0]
    listed = [part.explicit() for part in parts]
    names = _join_names(listed)
    tables = [_filled(part, names) for part in listed]
    there = {
        name for part in listed for name, column in part.columns().items() if column is not None
    }
    return listed[0]._like(
        {
            name: np.concatenate([table[name] for table in tables]) if name in there else None
            for name in COLUMNS
        },
        n_items=max(part.n_items for part in listed),
        annotator_names=names,
        item_ids=_join_item_ids(listed),
        dropped=sum(part.dropped for part in listed),
        shortened=sum(part.shortened for part in listed),
        unknown=sum(part.unknown for part in listed),
    )


def _filled(part: Pairs, names: NDArray[np.str_] | None) -> dict[str, Column]:
    """The columns of a set: nobody where it names no people, weight 1 where it has no weights."""
    filled = {name: column for name, column in part.columns().items() if column is not None}
    if part.weight is None:
        filled["weight"] = np.ones(len(part), np.float32)
    if names is not None:
        own = np.array([""]) if part.annotator_names is None else part.annotator_names
        codes = np.zeros(len(part), np.int32) if part.annotator is None else part.annotator
        filled["annotator"] = np.searchsorted(names, own).astype(np.int32)[codes]
    return filled


def _join_names(parts: Sequence[Pairs]) -> NDArray[np.str_] | None:
    """One list of names for several sets; "" is nobody, where one of them names no people."""
    if all(part.annotator is None for part in parts):
        return None
    nobody = np.array([""], np.str_)
    named = [nobody if p.annotator_names is None else p.annotator_names for p in parts]
    return np.unique(np.concatenate(named))


def _join_item_ids(parts: Sequence[Pairs]) -> NDArray[np.str_] | None:
    ids = [part.item_ids for part in parts if part.item_ids is not None]
    if not ids:
        return None
    other = any(not np.array_equal(ids[0], names) for names in ids[1:])
    if other or any(part.n_items > len(ids[0]) for part in parts):
        raise InputError(
            "the judgements name different items, so their indices do not agree; read every file "
            "with the same item_ids=."
        )
    return ids[0]
