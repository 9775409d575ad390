"""From what a file calls its items to their positions.

Ids are text. They are positions only where nobody says what the items are called and all ids, of
both columns, are plain whole numbers. With the items' own ids nothing ever falls back to positions:
an id that names no item is an error.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded
from likewise.io.limits import check_memory
from likewise.pairs.columns import Column, IndexArray
from likewise.pairs.formats.shortening import Matches, match_ids

IdColumn = Coded | Column

# As numbers are written: 008 is a name; 3.0 is what a table of floats makes of 3.
WHOLE = r"(?:0|-?[1-9][0-9]*)(?:\.0+)?"
_WHOLE = re.compile(WHOLE)
_LONGEST = 18  # digits that int64 holds for certain


@dataclass(frozen=True)
class Resolved:
    """The two items of each judgement, found."""

    left: IndexArray
    """(M,) position of the first item."""
    right: IndexArray
    """(M,) position of the second."""
    names: NDArray[np.str_] | None
    """(N,) the items' names; None where the file gave positions."""
    shortened: int = 0
    """Ids that were matched by a shorter form."""
    unknown: NDArray[np.bool_] | None = None
    """(M,) the judgements of an item that is not there, whose positions mean nothing."""


def resolve_ids(
    left: IdColumn,
    right: IdColumn,
    item_ids: ArrayLike | None,
    named: bool = False,
    may_lack: bool = False,
) -> Resolved:
    """Find the items of judgements whose columns (M,) hold ids.

    With ``item_ids``, ids are looked up there: whole, else with or without folder and extension
    where that leaves no doubt (`likewise.pairs.formats.shortening`), which is counted and said.
    An id that is none of them is refused, or with ``may_lack`` told of, where it is not most of
    them. Without, whole numbers are positions and other ids are numbered in sorted order; with
    ``named``, whole numbers are too.
    """
    if item_ids is None and not (named or isinstance(left, Coded) or isinstance(right, Coded)):
        return Resolved(left, right, None)
    columns = tuple(c if isinstance(c, Coded) else Coded.from_numbers(c) for c in (left, right))
    for name, column in zip(("left", "right"), columns, strict=True):
        column.refuse_missing(name)
    if item_ids is not None:
        return _look_up(columns, _as_names(item_ids), may_lack)
    return _number(columns, named)


def is_name(word: str) -> bool:
    """Whether an id can only be a name: it is no whole number, or not as numbers are written."""
    return _WHOLE.fullmatch(word) is None


def _as_names(item_ids: ArrayLike) -> NDArray[np.str_]:
    names = np.asarray(item_ids).astype(np.str_)
    if names.ndim != 1:
        raise InputError(f"item_ids must be one name per item, but has shape {names.shape}.")
    ordered = np.sort(names)
    if (repeated := ordered[1:] == ordered[:-1]).any():
        first = str(ordered[1:][repeated][0])
        raise InputError(f"item_ids must be distinct, but {first!r} stands for two items.")
    return names


def _look_up(columns: Sequence[Coded], item_ids: NDArray[np.str_], may_lack: bool) -> Resolved:
    words = _words(columns, item_ids)
    found = match_ids(words, item_ids)
    unknown = None
    if np.any(found.position < 0):
        unknown = _unknown(columns, words, found)
        # What is in doubt may be an item; what is mostly unknown is about other items.
        if not may_lack or found.doubt or 2 * np.count_nonzero(unknown) > len(unknown):
            _refuse_unknown(columns, words, found, item_ids)
        _tell_unknown(unknown, words[found.position < 0])
    if found.shortened:
        word, item = found.example
        warnings.warn(
            f"{found.shortened} of {len(words)} ids are not the items' own and were matched "
            f"without folder or extension, such as {word!r} to {item!r}.",
            stacklevel=2,
        )
    left, right = _translate(columns, words, found.position)
    if unknown is not None:  # any position will do: these are left out
        left, right = np.where(unknown, 0, left), np.where(unknown, 0, right)
    return Resolved(left, right, item_ids, found.shortened, unknown)


def _words(columns: Sequence[Coded], item_ids: NDArray[np.str_] | None = None) -> NDArray[np.str_]:
    """The distinct ids (U,), sorted.

    Side by side, and beside the items' own, each takes as much memory as the longest of all, and
    there are about three copies on the way.
    """
    parts = [column.names for column in columns]
    beside = parts if item_ids is None else [*parts, item_ids]
    count, width = sum(map(len, beside)), max(part.itemsize for part in beside)
    check_memory(
        f"comparing {count:,} ids of up to {width // 4:,} characters",
        3 * count * width,
        sum(part.nbytes for part in beside),
        instead="shorten the longest",
    )
    return np.unique(np.concatenate(parts))


def _number(columns: Sequence[Coded], named: bool) -> Resolved:
    words = _words(columns)
    if not named:
        if len(words) and (numbers := _whole_numbers(words)) is not None:
            left, right = _translate(columns, words, numbers)
            return Resolved(left, right, names=None)
        _refuse_odd_ones(columns)
    left, right = _translate(columns, words, np.arange(len(words)))
    return Resolved(left, right, names=words)


def _whole_numbers(words: NDArray[np.str_]) -> NDArray[np.int64] | None:
    """The value of each word (U,), None unless all are plain whole numbers."""
    plain = [word.split(".")[0] for word in words.tolist() if _WHOLE.fullmatch(word)]
    if len(plain) < len(words) or any(len(digits) > _LONGEST for digits in plain):
        return None
    return np.array(plain, np.int64)


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
            raise RowError(
                m,
                f"{name} is {word!r}, not a whole number like the others; if these are the items' "
                "names, say what the items are called with item_ids=.",
            )


def _unknown(
    columns: Sequence[Coded], words: NDArray[np.str_], found: Matches
) -> NDArray[np.bool_]:
    """(M,) where either id is that of no item."""
    left, right = _translate(columns, words, found.position)
    return (left < 0) | (right < 0)


def _tell_unknown(unknown: NDArray[np.bool_], words: NDArray[np.str_]) -> None:
    warnings.warn(
        f"{np.count_nonzero(unknown):,} of {len(unknown):,} judgements were left out, because they "
        f"name {len(words):,} items that are not there, such as {str(words[0])!r}.",
        stacklevel=2,
    )


def _refuse_unknown(
    columns: Sequence[Coded], words: NDArray[np.str_], found: Matches, item_ids: NDArray[np.str_]
) -> None:
    rows = [found.position[np.searchsorted(words, c.names)][c.codes] < 0 for c in columns]
    name, unknown, column = min(
        zip(("left", "right"), rows, columns, strict=True),
        key=lambda entry: int(np.argmax(entry[1])) if entry[1].any() else len(entry[1]),
    )
    m = int(np.argmax(unknown))
    word = str(column.names[column.codes[m]])
    like = f" (called {str(item_ids[0])!r} and the like)" if len(item_ids) else ""
    why = found.doubt.get(word, f"which is none of the {len(item_ids)} items{like}.")
    raise RowError(m, f"{name} is {word!r}, {why}")
