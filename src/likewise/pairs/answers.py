"""What counts as "same", as "different" and as no answer, in every spelling we accept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError, RowError
from likewise.pairs.columns import BoolArray, IndexArray

SAME = frozenset(
    {"1", "1.0", "+1", "true", "t", "yes", "y", "same", "similar", "match", "must-link"}
)
DIFFERENT = frozenset(
    {"0", "0.0", "-1", "-1.0", "false", "f", "no", "n", "different", "dissimilar", "distinct"}
    | {"not same", "not the same", "no match", "non-match", "cannot-link"}
)
NO_ANSWER = frozenset(
    {"", "unsure", "not sure", "not_sure", "uncertain", "unknown", "skip", "none", "null", "nan"}
    | {"na", "n/a", "?", "<na>", "don't know"}
)
EXPECTED = (
    "1/0, 1/-1, yes/no, true/false, same/different, match/distinct, or blank or unsure for no "
    "answer"
)


def parse_answers(same: ArrayLike) -> tuple[BoolArray, BoolArray]:
    """Answers as ``(same (M,), answered (M,))``; where not answered, ``same`` means nothing."""
    array = np.asarray(same)
    if array.ndim != 1:
        raise InputError(f"same must be one answer per judgement, but has shape {array.shape}.")
    if array.dtype.kind == "b":
        return array, np.ones(len(array), bool)
    if array.dtype.kind in "iuf":
        return _from_numbers(array)
    distinct, codes = np.unique(array.astype(str), return_inverse=True)
    return parse_coded_answers(codes, [str(word) for word in distinct])


def parse_coded_answers(codes: IndexArray, words: list[str]) -> tuple[BoolArray, BoolArray]:
    """The same for answers given as ``words[codes]``: a hundred million answers are few words."""
    plain = [word.strip().lower() for word in words]
    for k, word in enumerate(plain):
        if word not in SAME and word not in DIFFERENT and word not in NO_ANSWER:
            raise RowError(int(np.argmax(codes == k)), _not_known(words[k]))
    _refuse_zero_beside_minus_one(codes, plain)
    is_same = np.array([word in SAME for word in plain], bool)
    answered = np.array([word not in NO_ANSWER for word in plain], bool)
    return is_same[codes], answered[codes]


def _from_numbers(array: NDArray[np.generic]) -> tuple[BoolArray, BoolArray]:
    answered = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(len(array), bool)
    is_same = array == 1
    negative, zero = array == -1, array == 0
    known = is_same | zero | negative | ~answered
    if not known.all():
        m = int(np.argmin(known))
        raise RowError(m, _not_known(array[m]))
    if negative.any() and zero.any():
        raise RowError(int(np.argmax(zero)), _AMBIGUOUS_ZERO)
    return is_same, answered


def _refuse_zero_beside_minus_one(codes: IndexArray, plain: list[str]) -> None:
    zeros = [k for k, word in enumerate(plain) if word in {"0", "0.0"}]
    if zeros and any(word in {"-1", "-1.0"} for word in plain):
        raise RowError(int(np.argmax(codes == zeros[0])), _AMBIGUOUS_ZERO)


# With both, 0 can only mean "neither": taking it for "different" would be a silent error.
_AMBIGUOUS_ZERO = (
    "same is 0 while other answers are -1; use 1/0 or 1/-1, and leave it blank for no answer."
)


def _not_known(answer: object) -> str:
    shown = answer.item() if isinstance(answer, np.generic) else answer
    return f"same is {shown!r}, which is none of {EXPECTED}."
