"""Every spelling of "same", "different" and of no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from likewise.errors import InputError, RowError
from likewise.pairs.answers import parse_answers, parse_coded_answers

SAME = ["1", "1.0", "+1", "true", "T", "yes", "y", "same", "Similar", "match", "must-link"]
DIFFERENT = [
    *[
        "0",
        "0.0",
        "false",
        "F",
        "no",
        "n",
        "different",
        "dissimilar",
        "distinct",
        "non-match",
        "cannot-link",
    ]
]
DIFFERENT += ["not same", "not the same", "no match"]
NO_ANSWER = ["", " ", "unsure", "not sure", "not_sure", "uncertain", "unknown", "skip", "none"]
NO_ANSWER += ["null", "NaN", "NA", "n/a", "?", "<NA>", "don't know"]


def parsed(same: Any) -> list[bool | None]:
    is_same, answered = parse_answers(same)
    assert is_same.dtype == answered.dtype == bool
    return [bool(s) if a else None for s, a in zip(is_same, answered, strict=True)]


def test_every_spelling() -> None:
    words = [*SAME, *DIFFERENT, *NO_ANSWER]
    expected = [True] * len(SAME) + [False] * len(DIFFERENT) + [None] * len(NO_ANSWER)
    assert parsed([f" {word.upper()} " for word in words]) == expected
    assert parsed(["1", "-1", "-1.0"]) == [True, False, False]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.array([True, False]), [True, False]),
        (np.array([1, 0], np.uint8), [True, False]),
        ([1, -1], [True, False]),
        ([1.0, np.nan, 0.0], [True, None, False]),
        ([-1.0, np.nan], [False, None]),
        (np.array([1, None, "no"], object), [True, None, False]),
        ([], []),
    ],
)
def test_numbers_and_truth(given: Any, expected: list[bool | None]) -> None:
    assert parsed(given) == expected


@pytest.mark.parametrize(
    ("given", "row", "words"),
    [
        ([1, 0, 3, 2], 2, r"same is 3, which is none of 1/0, 1/-1, yes/no, true/false"),
        ([1.0, 0.5], 1, r"same is 0\.5, which"),
        (["yes", "Perhaps", "perhaps"], 1, "same is 'Perhaps', which"),
        ([1, -1, 0, 0], 2, "same is 0 while other answers are -1; use 1/0 or 1/-1"),
        (["yes", "0.0", "-1.0"], 1, "same is 0 while other answers are -1"),
    ],
)
def test_others_name_their_row(given: Any, row: int, words: str) -> None:
    with pytest.raises(RowError, match=words) as caught:
        parse_answers(given)
    assert caught.value.row == row


def test_one_answer_a_judgement() -> None:
    with pytest.raises(InputError, match=r"one answer per judgement, but has shape \(1, 2\)"):
        parse_answers([[1, 0]])


def test_answers_as_codes() -> None:
    is_same, answered = parse_coded_answers(np.array([2, 0, 1, 0]), ["no", "?", "YES"])
    assert is_same[answered].tolist() == [True, False, False]
    assert answered.tolist() == [True, True, False, True]
    with pytest.raises(RowError, match="same is 'maybe'") as caught:
        parse_coded_answers(np.array([0, 0, 1]), ["no", "maybe"])
    assert caught.value.row == 2
