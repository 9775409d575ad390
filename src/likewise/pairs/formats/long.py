"""Judgements one a row: two items, an answer, perhaps a person and a weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded, CodedBuilder, NumberBuilder
from likewise.io.tables import CsvTable, Table, arrow_errors, require_columns
from likewise.pairs.answers import parse_coded_answers
from likewise.pairs.container import Pairs
from likewise.pairs.formats.ids import IdColumn, resolve_ids


@dataclass(frozen=True)
class ColumnNames:
    """What the columns of a table of judgements are called."""

    left: str = "left"
    right: str = "right"
    same: str = "same"
    annotator: str = "annotator"
    weight: str = "weight"

    def optional(self, table: Table) -> list[str]:
        """The annotator and weight columns that are there; one asked for by name must be."""
        usual = ColumnNames()
        asked = [
            name
            for name, default in ((self.annotator, usual.annotator), (self.weight, usual.weight))
            if name != default
        ]
        require_columns(table, asked)
        return [name for name in (self.annotator, self.weight) if name in table.columns]


@dataclass(frozen=True)
class Items:
    """What is known of the items: their own names, or only their number."""

    ids: ArrayLike | None = None
    count: int | None = None


def read_long(table: Table, names: ColumnNames, items: Items) -> Pairs:
    """The judgements of a table with a judgement a row."""
    require_columns(
        table,
        [names.left, names.right, names.same],
        "; say which is which with left=, right= and same= (--left, --right, --same)",
    )
    if len(set(astuple(names))) < len(astuple(names)):
        raise InputError("left, right, same, annotator and weight must be different columns.")
    with rows_located(table):
        columns = _read_columns(table, names, items)
        same, answered = parse_answer_column(columns[names.same])
        return assemble(
            columns[names.left],
            columns[names.right],
            same,
            answered,
            columns.get(names.annotator),
            columns.get(names.weight),
            items,
        )


def assemble(
    left: IdColumn,
    right: IdColumn,
    same: NDArray[np.bool_],
    answered: NDArray[np.bool_],
    annotator: Coded | None,
    weight: NDArray[Any] | None,
    items: Items,
) -> Pairs:
    """Judgements from columns as a file gave them: ids resolved, rows without an answer dropped."""
    left_, right_, item_ids = resolve_ids(left, right, items.ids)
    people = None if annotator is None else annotator.with_blank()
    return Pairs(
        left_,
        right_,
        same if answered.all() else _with_gaps(same, answered),
        None if people is None else people.codes,
        weight,
        n_items=items.count if item_ids is None else len(item_ids),
        annotator_names=None if people is None else people.names,
        item_ids=item_ids,
    )


def parse_answer_column(column: Coded) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Answers ``(same (M,), answered (M,))`` of a text column."""
    filled = column.with_blank()
    return parse_coded_answers(filled.codes, [str(word) for word in filled.names])


@contextmanager
def rows_located(table: Table) -> Iterator[None]:
    """Turn a mistake in a row into a sentence that says where in the file it stands."""
    try:
        yield
    except RowError as error:
        place = table.where(error.row)
        raise InputError(f"{table.path.name}, {place}: {error.problem}") from None


def read_columns(
    table: Table, numbers: Sequence[str], text: Sequence[str], either: Sequence[str] = ()
) -> dict[str, Any]:
    """Whole columns by name: arrays for ``numbers``, `Coded` for ``text``, ``either`` as it is."""
    builders: dict[str, CodedBuilder | NumberBuilder] = {}
    builders |= {name: CodedBuilder() for name in text}
    builders |= {name: NumberBuilder(name) for name in numbers}
    with arrow_errors(table.path):
        for batch in table.batches([*either, *text, *numbers], text):
            _refuse_nested(table, batch)
            for name in either:
                if name not in builders:
                    is_number = _is_number_type(batch.column(name).type)
                    builders[name] = NumberBuilder(name) if is_number else CodedBuilder()
            for name, builder in builders.items():
                builder.append(batch.column(name))
        for name in either:
            builders.setdefault(name, NumberBuilder(name))  # a table without rows
        return {name: builder.finish() for name, builder in builders.items()}


def _read_columns(table: Table, names: ColumnNames, items: Items) -> dict[str, Any]:
    optional = names.optional(table)
    text = [names.same, *(name for name in optional if name == names.annotator)]
    numbers = [name for name in optional if name == names.weight]
    ids = [names.left, names.right]
    if items.ids is not None:
        return read_columns(table, numbers, [*ids, *text])  # "007" must stay "007"
    try:
        return read_columns(table, numbers, text, ids)
    except RowError:
        raise
    except InputError:
        if not isinstance(table, CsvTable):
            raise
        # Arrow guesses a column's type from the first block: ids may turn out to be text later.
        return read_columns(table, numbers, [*ids, *text])


def _with_gaps(same: NDArray[np.bool_], answered: NDArray[np.bool_]) -> NDArray[np.float16]:
    """Answers as `Pairs` takes them, NaN where there is none, in two bytes each."""
    values = same.astype(np.float16)
    values[~answered] = np.nan
    return values


def _refuse_nested(table: Table, batch: Any) -> None:
    import pyarrow as pa

    for field in batch.schema:
        if pa.types.is_nested(field.type):
            raise InputError(
                f"{table.path.name}: the column {field.name} holds lists or objects, but must hold "
                "text or numbers."
            )


def _is_number_type(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
