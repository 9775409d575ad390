"""From what a file calls its items to their positions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded

IndexArray = NDArray[np.integer[Any]]
IdColumn = Coded | NDArray[Any]

_WHOLE = re.compile(r"[+-]?\d+")


def resolve_ids(
    left: IdColumn, right: IdColumn, item_ids: ArrayLike | None
) -> tuple[IndexArray, IndexArray, NDArray[np.str_] | None]:
    """Positions ``(left, right)`` and the items' names, None where the file gave positions.

    With ``item_ids``, ids are looked up there: whole, else by file name, else without extension;
    where that fails and every id is a whole number, they are positions. Without, whole numbers are
    positions and other ids are numbered in sorted order.
    """
    if item_ids is None and not isinstance(left, Coded) and not isinstance(right, Coded):
        return left, right, None
    columns = tuple(c if isinstance(c, Coded) else Coded.from_numbers(c) for c in (left, right))
    for name, column in zip(("left", "right"), columns, strict=True):
        column.refuse_missing(name)
    if item_ids is not None:
        return _look_up(columns, _as_names(item_ids))
    return _number(columns)


def _as_names(item_ids: ArrayLike) -> NDArray[np.str_]:
    names = np.asarray(item_ids).astype(np.str_)
    if names.ndim != 1:
        raise InputError(f"item_ids must be one name per item, but has shape {names.shape}.")
    if repeated := [name for name, count in Counter(names.tolist()).items() if count > 1]:
        raise InputError(f"item_ids must be distinct, but {repeated[0]!r} stands for two items.")
    return names


def _look_up(
    columns: Sequence[Coded], item_ids: NDArray[np.str_]
) -> tuple[IndexArray, IndexArray, NDArray[np.str_] | None]:
    words = np.unique(np.concatenate([column.names for column in columns]))
    position = _positions(words, item_ids)
    if np.any(position < 0):
        if (numbers := _whole_numbers(words)) is not None:
            return *_translate(columns, words, numbers), item_ids
        _refuse_unknown(columns, words, position, len(item_ids))
    return *_translate(columns, words, position), item_ids


def _positions(words: NDArray[np.str_], item_ids: NDArray[np.str_]) -> NDArray[np.int64]:
    """(U,) position of each distinct id among the items; -1 where there is none."""
    order = np.argsort(item_ids)
    found = np.searchsorted(item_ids, words, sorter=order)
    found = order[np.minimum(found, len(order) - 1)] if len(order) else np.zeros_like(found)
    exact = item_ids[found] == words if len(order) else np.zeros(len(words), bool)
    position = np.where(exact, found, -1)
    for form in (_file_name, _stem, _without_upload_prefix):
        if not (missing := np.flatnonzero(position < 0)).size:
            break
        known = _unambiguous(item_ids, form)
        position[missing] = [known.get(form(words[m]), -1) for m in missing]
    return position


def _unambiguous(item_ids: NDArray[np.str_], form: Callable[[str], str]) -> dict[str, int]:
    """Position by a shorter form of the id, where only one item has that form."""
    forms = [form(name) for name in item_ids.tolist()]
    counts = Counter(forms)
    return {short: k for k, short in enumerate(forms) if counts[short] == 1}


def _file_name(name: str) -> str:
    return PurePosixPath(str(name).replace("\\", "/")).name


def _stem(name: str) -> str:
    return PurePosixPath(_file_name(name)).stem


def _without_upload_prefix(name: str) -> str:
    """Label Studio stores an uploaded ``cat.jpg`` as ``1f2e3d4c-cat.jpg``."""
    return re.sub(r"^[0-9a-f]{8}-", "", _stem(name))


def _whole_numbers(words: NDArray[np.str_]) -> NDArray[np.int64] | None:
    if all(_WHOLE.fullmatch(word) and len(word) < 19 for word in words.tolist()):
        return words.astype(np.int64)
    return None


def _number(columns: Sequence[Coded]) -> tuple[IndexArray, IndexArray, NDArray[np.str_] | None]:
    words = np.unique(np.concatenate([column.names for column in columns]))
    if len(words) and (numbers := _whole_numbers(words)) is not None:
        return *_translate(columns, words, numbers), None
    _refuse_odd_ones(columns)
    return *_translate(columns, words, np.arange(len(words))), words


def _translate(
    columns: Sequence[Coded], words: NDArray[np.str_], value: NDArray[np.int64]
) -> tuple[IndexArray, IndexArray]:
    """Replace each id by the value of its word."""
    left, right = (value[np.searchsorted(words, c.names)][c.codes] for c in columns)
    return left, right


def _refuse_odd_ones(columns: Sequence[Coded]) -> None:
    """Among mostly whole numbers, a word is a slip and not a name."""
    for name, column in zip(("left", "right"), columns, strict=True):
        whole = np.array([bool(_WHOLE.fullmatch(word)) for word in column.names.tolist()], bool)
        rows = whole[column.codes]
        if 2 * np.count_nonzero(rows) > len(rows) > 0 and not rows.all():
            m = int(np.argmin(rows))
            word = str(column.names[column.codes[m]])
            raise RowError(m, f"{name} is {word!r}, not a whole number like the others.")


def _refuse_unknown(
    columns: Sequence[Coded], words: NDArray[np.str_], position: NDArray[np.int64], n_items: int
) -> None:
    rows = [position[np.searchsorted(words, c.names)][c.codes] < 0 for c in columns]
    name, unknown, column = min(
        zip(("left", "right"), rows, columns, strict=True),
        key=lambda entry: int(np.argmax(entry[1])) if entry[1].any() else len(entry[1]),
    )
    m = int(np.argmax(unknown))
    word = str(column.names[column.codes[m]])
    raise RowError(m, f"{name} is {word!r}, which is none of the {n_items} items.")
