"""What counts as "same", as "different" and as no answer, in every spelling we accept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError

SAME = frozenset({"1", "1.0", "+1", "true", "t", "yes", "y", "same", "similar", "match"})
DIFFERENT = frozenset(
    {"0", "0.0", "-1", "-1.0", "false", "f", "no", "n", "different", "dissimilar", "distinct"}
)
NO_ANSWER = frozenset(
    {"", "unsure", "not sure", "not_sure", "uncertain", "unknown", "skip", "none", "null", "nan"}
    | {"na", "n/a", "?"}
)
EXPECTED = "1/0, 1/-1, true/false, same/different, or blank or unsure for no answer"


def parse_answers(same: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Answers as ``(same (M,), answered (M,))``; where not answered, ``same`` means nothing."""
    array = np.asarray(same)
    if array.ndim != 1:
        raise InputError(f"same must be one answer per judgement, but has shape {array.shape}.")
    if array.dtype.kind == "b":
        return array.copy(), np.ones(len(array), bool)
    if array.dtype.kind in "iuf":
        return _from_numbers(array)
    return _from_words(array)


def _from_numbers(array: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    answered = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(len(array), bool)
    is_same = array == 1
    known = is_same | (array == 0) | (array == -1) | ~answered
    if not known.all():
        _refuse(int(np.argmin(known)), array)
    if (array == -1).any() and (array == 0).any():
        # With both, 0 can only mean "neither": taking it for "different" would be a silent error.
        m = int(np.argmax(array == 0))
        raise InputError(
            f"same[{m}] is 0 but other answers are -1: use 1/0 or 1/-1, and leave it blank for "
            "no answer."
        )
    return is_same, answered


def _from_words(array: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    distinct, inverse = np.unique(array.astype(str), return_inverse=True)
    words = [word.strip().lower() for word in distinct]
    for k, word in enumerate(words):
        if word not in SAME and word not in DIFFERENT and word not in NO_ANSWER:
            _refuse(int(np.argmax(inverse == k)), array)
    is_same = np.array([word in SAME for word in words], bool)
    answered = np.array([word not in NO_ANSWER for word in words], bool)
    return is_same[inverse], answered[inverse]


def _refuse(m: int, array: NDArray[Any]) -> None:
    raise InputError(f"same[{m}] is {array[m]!r}, which is none of {EXPECTED}.")
