"""Checking the columns of a table of judgements: item indices, annotators, weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError, RowError
from likewise.io.limits import check_memory

IndexArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
Column = NDArray[Any]
"""One value a judgement (M,), of a type that only the column's name tells."""

# Past this an "index" is an id of some other kind; taking it for a position would ask for memory
# for billions of items that do not exist.
MAX_ITEMS = int(np.iinfo(np.int32).max)
BYTES_AN_ITEM = 24  # that describing judgements takes for each item, judged or not


def as_indices(values: ArrayLike, name: str) -> IndexArray:
    """``values`` as an (M,) array of whole numbers, not yet checked for their range."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one index per judgement, but has shape {array.shape}.")
    if array.size == 0:
        return array.astype(np.int32)
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.trunc(array))
        if not whole.all():
            m = int(np.argmin(whole))
            raise RowError(m, f"{name} is {array[m]}, which is not the index of an item.")
        if (huge := np.abs(array) >= 2.0**63).any():
            m = int(np.argmax(huge))
            raise RowError(m, f"{name} is {array[m]:.0f}, {_beyond(None)}")
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must hold whole numbers (item indices), but holds {array[0]!r}; to match the "
            "items' own names, read the file with item_ids=."
        )
    return array


def check_range(left: IndexArray, right: IndexArray, n_items: int | None) -> int:
    """The number of items, once every index is known to lie among them."""
    columns = [(name, index) for name, index in (("left", left), ("right", right)) if len(index)]
    for name, index in columns:
        if int(index.min()) < 0:
            m = int(np.argmax(index < 0))
            raise RowError(m, f"{name} is {index[m]}, but item indices start at 0.")
    limit = MAX_ITEMS if n_items is None else int(n_items)
    for name, index in columns:
        if int(index.max()) >= limit:
            m = int(np.argmax(index >= limit))
            raise RowError(m, f"{name} is {index[m]}, {_beyond(n_items)}")
    if n_items is not None:
        return limit
    count = max((int(index.max()) + 1 for _, index in columns), default=0)
    check_memory(
        f"an item numbered {count - 1:,}, which makes {count:,} items,",
        BYTES_AN_ITEM * count,
        left.nbytes + right.nbytes,
        instead="number the items from 0 without gaps, or give their names with item_ids=",
    )
    return count


def index_dtype(n_items: int) -> type[np.int32] | type[np.int64]:
    """The narrowest type that indexes ``n_items``: four bytes for all but absurd numbers."""
    return np.int32 if n_items <= MAX_ITEMS else np.int64


def annotator_codes(
    annotator: ArrayLike | None, names: ArrayLike | None = None
) -> tuple[NDArray[np.int32] | None, NDArray[np.str_] | None]:
    """Who gave each judgement, as ``(codes (M,), names)``; both None where nobody says.

    With ``names`` the annotators are codes into them already; otherwise the names are sorted, and
    a missing one is the empty name.
    """
    if annotator is None:
        return None, None
    array = np.asarray(annotator)
    if array.ndim != 1:
        raise InputError(f"annotator must be one name per judgement, but has shape {array.shape}.")
    if names is not None:
        return _check_codes(array, np.asarray(names, dtype=np.str_))
    if array.dtype.kind == "O":
        array = np.array(["" if _is_missing(name) else str(name) for name in array], dtype=np.str_)
    found, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.int32), found.astype(np.str_)


def as_weights(weight: ArrayLike) -> NDArray[np.float32]:
    """Finite, non-negative weights (M,)."""
    try:
        array = np.asarray(weight, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError("weight must hold numbers, but some of it is not a number.") from None
    if array.ndim != 1:
        raise InputError(f"weight must be one number per judgement, but has shape {array.shape}.")
    good = np.isfinite(array) & (array >= 0)
    if not good.all():
        m = int(np.argmin(good))
        raise RowError(m, f"weight is {array[m]}, but weights must be finite and at least 0.")
    return array


def as_item_ids(item_ids: ArrayLike, n_items: int | None) -> NDArray[np.str_]:
    """The items' own names (N,)."""
    names = np.asarray(item_ids).astype(np.str_, copy=False)
    if names.ndim != 1 or (n_items is not None and len(names) != n_items):
        expected = "one name per item" if n_items is None else f"{n_items} names, one per item"
        raise InputError(f"item_ids must be {expected}, but has shape {names.shape}.")
    return names


def check_lengths(columns: Mapping[str, Column | None]) -> None:
    """Refuse columns of unequal length; None is a column that is not there."""
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"the columns of a judgement must be equally long, but have {found}.")


def refuse_no_weight(weight: NDArray[np.float32] | None) -> None:
    """Refuse judgements of which none counts."""
    if weight is not None and len(weight) and not weight.any():
        raise InputError(
            "every judgement has weight 0, so that none of them counts; give some a weight above "
            "0, or leave the weights out."
        )


def refuse_self_pairs(
    left: IndexArray,
    right: IndexArray,
    answered: BoolArray,
    names: NDArray[np.str_] | None = None,
) -> None:
    """Refuse an item that is compared with itself; ``names`` (N,) are what items are called."""
    loop = (left == right) & answered
    if loop.any():
        m = int(np.argmax(loop))
        item = left[m] if names is None else repr(str(names[left[m]]))
        raise RowError(
            m,
            f"item {item} is compared with itself; remove such rows "
            f"({int(np.count_nonzero(loop))} of {len(left)}).",
        )


def check_chosen(items: ArrayLike, n_items: int) -> IndexArray:
    """Some of ``n_items`` items, given as distinct indices or as a mask (N,), as indices."""
    chosen = np.asarray(items)
    if chosen.dtype == bool:
        if len(chosen) != n_items:
            raise InputError(f"a mask of items must have {n_items} entries, but has {len(chosen)}.")
        return np.flatnonzero(chosen)
    if chosen.size == 0:
        return chosen.astype(np.int64)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise InputError("items must be a list of indices, or a mask with an entry per item.")
    if chosen.min() < 0 or chosen.max() >= n_items:
        raise InputError(f"items must be indices below {n_items}.")
    if np.bincount(chosen).max() > 1:
        raise InputError("items must not name an item twice.")
    return chosen


def read_only(array: Column) -> Column:
    """The same memory, which cannot be written to through what is returned."""
    view = array.view()
    view.flags.writeable = False
    return view


def for_torch(array: Column) -> Column:
    """A read-only column as `torch.from_numpy` takes it without a warning: the same memory.

    Only where that was read-only from the first (a memory map), a copy. Tensors of it are inputs:
    nothing writes to them.
    """
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:
        return array.copy()
    return view


def _from_objects(array: Column) -> Column:
    """What an object column really holds: integers, or a text that is not."""
    narrowed = np.array(array.tolist())
    return narrowed if narrowed.ndim == 1 else array


def _check_codes(
    codes: Column, names: NDArray[np.str_]
) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    if len(codes) and (
        codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= len(names)
    ):
        raise InputError(f"annotator must hold codes below {len(names)}, the number of names.")
    return codes.astype(np.int32, copy=False), names


def _is_missing(value: object) -> bool:
    return value is None or value != value  # NaN is the value that differs from itself


def _beyond(n_items: int | None) -> str:
    if n_items is None:
        return "too large for an item's position; if it is an id, read the file with item_ids=."
    if n_items == 0:
        return "but there are no items."
    return f"but there are only {n_items} items (0 to {n_items - 1})."
