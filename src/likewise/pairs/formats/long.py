"""Judgements one a row: two items, an answer, perhaps a person and a weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded, CodedBuilder, NumberBuilder
from likewise.io.tables import CsvTable, Table, arrow_errors, require_columns
from likewise.pairs.answers import parse_coded_answers
from likewise.pairs.columns import Column
from likewise.pairs.container import Pairs
from likewise.pairs.formats.ids import IdColumn, resolve_ids
from likewise.pairs.formats.indices import IndexBuilder, NotPlain

if TYPE_CHECKING:
    import pyarrow as pa

Builder = CodedBuilder | NumberBuilder
# By name; what was asked for as text is `Coded`, as numbers an array: the asker knows which.
Columns = dict[str, Any]


@dataclass(frozen=True)
class ColumnNames:
    """What the columns of a table of judgements are called."""

    left: str = "left"
    """The first item."""
    right: str = "right"
    """The second item."""
    same: str = "same"
    """The answer."""
    annotator: str = "annotator"
    """Who gave it; may be missing."""
    weight: str = "weight"
    """How much it counts; may be missing."""

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
    """(N,) what the items are called."""
    count: int | None = None
    """How many there are."""
    named: bool = False
    """Whether whole numbers are names too: the numbers of records, not positions."""
    may_lack: bool = False
    """Whether judgements of items that are not there are left out, counted and told of."""


def read_long(table: Table, names: ColumnNames, items: Items) -> Pairs:
    """The judgements of a table with a judgement a row."""
    require_columns(
        table,
        [names.left, names.right, names.same],
        "; say which is which with left=, right= and same= (--left, --right, --same), or which "
        "tool wrote it with format= (--format)",
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
    weight: Column | None,
    items: Items,
) -> Pairs:
    """Judgements from columns as a file gave them: ids resolved, rows without an answer dropped."""
    found = resolve_ids(left, right, items.ids, items.named, items.may_lack)
    _refuse_other_number(found.names, items)
    if found.unknown is not None:
        answered = answered & ~found.unknown
    people = None if annotator is None else annotator.with_blank()
    pairs = Pairs(
        found.left,
        found.right,
        same if answered.all() else _with_gaps(same, answered),
        None if people is None else people.codes,
        weight,
        n_items=items.count if found.names is None else len(found.names),
        annotator_names=None if people is None else people.names,
        item_ids=found.names,
    )
    unknown = 0 if found.unknown is None else int(np.count_nonzero(found.unknown))
    return pairs._like(
        pairs.columns(),
        dropped=pairs.dropped - unknown,
        shortened=found.shortened,
        unknown=unknown,
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
    table: Table,
    numbers: Sequence[str] = (),
    text: Sequence[str] = (),
    ids: Sequence[str] = (),
    items: Items | None = None,
) -> Columns:
    """Whole columns by name: arrays for ``numbers``, `Coded` for ``text``.

    ``ids`` are arrays if all of them hold plain whole numbers and the ``items`` have no names of
    their own, otherwise `Coded`: "007" must stay "007", in each column.
    """
    if ids and (items is None or (items.ids is None and not items.named)):
        # Nothing is guessed from single columns of a CSV: they come as text, to be looked at.
        as_text = [*text, *ids] if isinstance(table, CsvTable) else text
        builders = _builders(numbers, text) | {name: IndexBuilder(name) for name in ids}
        try:
            return _read_all(table, builders, as_text)
        except NotPlain:
            pass
    return _read_all(table, _builders(numbers, [*text, *ids]), [*text, *ids])


def _read_all(table: Table, builders: dict[str, Builder], text: Sequence[str]) -> Columns:
    with arrow_errors(table.path):
        for batch in table.batches(list(builders), text):
            _refuse_nested(table, batch)
            for name, builder in builders.items():
                builder.append(batch.column(name))
        return {name: builder.finish() for name, builder in builders.items()}


def _builders(numbers: Sequence[str], text: Sequence[str]) -> dict[str, Builder]:
    return {name: CodedBuilder() for name in text} | {n: NumberBuilder(n) for n in numbers}


def _read_columns(table: Table, names: ColumnNames, items: Items) -> Columns:
    optional = names.optional(table)
    text = [names.same, *(name for name in optional if name == names.annotator)]
    numbers = [name for name in optional if name == names.weight]
    return read_columns(table, numbers, text, [names.left, names.right], items)


def _with_gaps(same: NDArray[np.bool_], answered: NDArray[np.bool_]) -> NDArray[np.float16]:
    """Answers as `Pairs` takes them, NaN where there is none, in two bytes each."""
    values = same.astype(np.float16)
    values[~answered] = np.nan
    return values


def _refuse_nested(table: Table, batch: pa.RecordBatch) -> None:
    import pyarrow as pa

    for field in batch.schema:
        if pa.types.is_nested(field.type):
            raise InputError(
                f"{table.path.name}: the column {field.name} holds lists or objects, but must hold "
                "text or numbers."
            )


def _refuse_other_number(names: NDArray[np.str_] | None, items: Items) -> None:
    """Names whose items nobody has named can be numbered only if none is missing."""
    if names is None or items.ids is not None or items.count in (None, len(names)):
        return
    raise InputError(
        f"the judgements name {len(names)} items, such as {str(names[0])!r}, but there are "
        f"{items.count} items that have no names; give these with item_ids= (a column id of the "
        "items), or write the items' positions, from 0, as whole numbers."
    )
