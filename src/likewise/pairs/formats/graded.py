"""Graded answers: how alike two items are, on a scale, as in DURel's judgements of word uses.

DURel (Schlechtweg, Schulte im Walde and Eckmann, 2018) asks for 1 (unrelated) to 4 (identical); 0,
or "-", is "cannot decide". A grade is read as word usage graphs do (Schlechtweg et al., 2021): its
distance from the middle of the scale says how much it counts, the side which answer it is. With a
threshold, grades above it are "same", the others "different", and all count alike.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from likewise.errors import RowError
from likewise.io.dictionary import Coded
from likewise.io.tables import Table, require_columns
from likewise.pairs.answers import NO_ANSWER
from likewise.pairs.container import Pairs
from likewise.pairs.formats.long import ColumnNames, Items, assemble, read_columns, rows_located

DUREL = ("identifier1", "identifier2", "judgment")
SCALE = (1.0, 4.0)
UNDECIDED = ("0", "0.0", "-")


def read_durel(table: Table, names: ColumnNames, items: Items, threshold: float | None) -> Pairs:
    """DURel's table of judgements: two uses, who, and a grade from 1 to 4."""
    require_columns(table, DUREL)
    return _read(table, DUREL, names.annotator, items, threshold, SCALE)


def read_graded(table: Table, names: ColumnNames, items: Items, threshold: float) -> Pairs:
    """A table with a judgement a row whose answers are grades."""
    require_columns(
        table,
        [names.left, names.right, names.same],
        "; say which is which with left=, right= and same= (--left, --right, --same)",
    )
    columns = names.left, names.right, names.same
    return _read(table, columns, names.annotator, items, threshold, None)


def _read(
    table: Table,
    columns: tuple[str, str, str],
    person: str,
    items: Items,
    threshold: float | None,
    scale: tuple[float, float] | None,
) -> Pairs:
    left, right, answer = columns
    people = [name for name in (person,) if name in table.columns]
    with rows_located(table):
        found = read_columns(table, [], [answer, *people], [left, right], items)
        grade = _grades(found[answer], answer, scale)
        answered = ~np.isnan(grade)
        middle = sum(scale) / 2 if threshold is None and scale is not None else threshold
        assert middle is not None  # a table without a scale is read by a threshold
        weight = None
        if threshold is None and scale is not None:
            weight = np.nan_to_num(np.abs(grade - middle) / (scale[1] - middle))
            answered &= weight > 0
        same = np.nan_to_num(grade, nan=middle) > middle
        who = found[people[0]] if people else None
        return assemble(found[left], found[right], same, answered, who, weight, items)


def _grades(column: Coded, name: str, scale: tuple[float, float] | None) -> NDArray[np.float64]:
    """(M,) grades; NaN where there is none."""
    filled = column.with_blank()
    values = np.array([_grade(word, scale) for word in filled.names.tolist()], np.float64)
    if np.isinf(values).any():
        bad = int(np.argmax(np.isinf(values)))
        wanted = "a number" if scale is None else f"a grade from {scale[0]:g} to {scale[1]:g}"
        row = int(np.argmax(filled.codes == bad))
        raise RowError(row, f"{name} is {filled.names[bad].item()!r}, which is not {wanted}.")
    return values[filled.codes]


def _grade(word: str, scale: tuple[float, float] | None) -> float:
    """The grade, NaN for no answer, infinity for what is neither."""
    plain = word.strip().lower()
    if plain in NO_ANSWER or (scale is not None and plain in UNDECIDED):
        return math.nan
    try:
        value = float(plain.replace(",", "."))
    except ValueError:
        return math.inf
    is_grade = math.isfinite(value) and (scale is None or scale[0] <= value <= scale[1])
    return value if is_grade else math.inf
