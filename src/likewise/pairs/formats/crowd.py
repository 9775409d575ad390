"""Results of crowds for hire: Mechanical Turk's batch results and Toloka's assignments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded
from likewise.io.json import Json, parse_json
from likewise.io.tables import Table, listing
from likewise.pairs.answers import SAME
from likewise.pairs.container import Pairs
from likewise.pairs.formats.ids import IdColumn
from likewise.pairs.formats.long import (
    ColumnNames,
    Items,
    assemble,
    parse_answer_column,
    read_columns,
    rows_located,
)


@dataclass(frozen=True)
class Platform:
    """How a platform names the columns of its results."""

    title: str
    """What people call it."""
    inputs: str
    """What the columns of a task's data begin with."""
    answers: str
    """What the columns of its answers begin with."""
    worker: str
    """The column of the person."""
    status: str
    """The column that says what became of the work."""
    refused: tuple[str, ...]
    """In that column: work that does not count."""
    gold: str | None = None
    """What the columns of known answers begin with, where there are any."""

    def is_of(self, table: Table) -> bool:
        """Whether the table is one of its results."""
        return any(name.startswith((self.inputs, self.answers)) for name in table.columns)


MTURK = Platform(
    "Mechanical Turk", "Input.", "Answer.", "WorkerId", "AssignmentStatus", ("rejected",)
)
TOLOKA = Platform(
    title="Toloka",
    inputs="INPUT:",
    answers="OUTPUT:",
    worker="ASSIGNMENT:worker_id",
    status="ASSIGNMENT:status",
    refused=("rejected", "skipped", "expired"),
    gold="GOLDEN:",
)


def read_platform(
    table: Table, platform: Platform, names: ColumnNames, items: Items, gold: bool
) -> Pairs:
    """The judgements of a platform's results; work that was refused does not count.

    Control tasks, whose answer was known beforehand, are left out: people were tested by them.
    With ``gold`` it is those known answers that are read.
    """
    left, right = _two_inputs(table, platform, names)
    answers = _answer_columns(table, platform.answers, names, platform)
    known = _gold_columns(table, platform, names) if platform.gold else []
    others = [name for name in (platform.worker, platform.status) if name in table.columns]
    with rows_located(table):
        columns = read_columns(table, [], [*answers, *known, *others], [left, right], items)
        same, answered = _answers(columns, answers, platform.answers)
        control = np.zeros(len(same), bool)
        if known:
            gold_same, control = _answers(columns, known, str(platform.gold))
        if gold:
            _refuse_no_gold(table, control)
            rows = _first_of_each(columns[left], columns[right], control)
            return _gold_pairs(rows, columns[left], columns[right], gold_same, items)
        answered &= ~control & ~_refused(columns.get(platform.status), platform, len(same))
        worker = columns.get(platform.worker)
        return assemble(columns[left], columns[right], same, answered, worker, None, items)


def _two_inputs(table: Table, platform: Platform, names: ColumnNames) -> tuple[str, str]:
    """The columns of the two items: those asked for, those called left and right, the only two."""
    prefix = platform.inputs
    usual = ColumnNames()
    there = [name for name in table.columns if name.startswith(prefix)]
    asked = [_named(table, prefix, name) for name in (names.left, names.right)]
    if asked[0] is not None and asked[1] is not None:
        return asked[0], asked[1]
    if (names.left, names.right) != (usual.left, usual.right):
        missing = names.left if asked[0] is None else names.right
        raise InputError(
            f"{table.path.name} has no column {missing}, nor {prefix}{missing}; the columns there "
            f"are {listing(table.columns)}."
        )
    if len(there) != 2:
        raise InputError(
            f"{table.path.name} looks like results of {platform.title}, of which two columns "
            f"{prefix}... must be the items, but there are {listing(there)}; say which with left= "
            "and right= (--left, --right)."
        )
    return there[0], there[1]


def _answer_columns(table: Table, prefix: str, names: ColumnNames, platform: Platform) -> list[str]:
    """The column of the answer, or those of its choices (``Answer.same.yes`` and so on)."""
    if (asked := _named(table, prefix, names.same)) is not None:
        return [asked]
    choices = [name for name in table.columns if name.startswith(f"{prefix}{names.same}.")]
    if len(choices) > 1:
        return choices
    there = [name for name in table.columns if name.startswith(prefix)]
    if len(there) == 1:
        return there
    questions = {name.removeprefix(prefix).rpartition(".")[0] for name in there}
    if len(questions) == 1 and questions != {""}:
        return there
    raise InputError(
        f"{table.path.name} looks like results of {platform.title}, of which a column {prefix}... "
        f"must be the answer, but there are {listing(there)}; say which with same= (--same)."
    )


def _gold_columns(table: Table, platform: Platform, names: ColumnNames) -> list[str]:
    there = [name for name in table.columns if name.startswith(str(platform.gold))]
    if len(there) < 2:
        return there
    return _answer_columns(table, str(platform.gold), names, platform)


def _named(table: Table, prefix: str, name: str) -> str | None:
    return next((column for column in (name, prefix + name) if column in table.columns), None)


def _answers(
    columns: dict[str, Coded], names: Sequence[str], prefix: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """``(same (M,), answered (M,))`` of one column, or of one for each choice."""
    if len(names) == 1:
        return parse_answer_column(_unfolded(columns[names[0]]))
    ticked = np.column_stack([_ticked(columns[name]) for name in names])
    if (ticked.sum(1) > 1).any():
        row = int(np.argmax(ticked.sum(1) > 1))
        raise RowError(row, f"several of {', '.join(names)} are chosen, but an answer is one.")
    words = [name.rpartition(".")[2] for name in names]
    chosen = [words[int(row.argmax())] if row.any() else "" for row in ticked]
    return parse_answer_column(Coded.from_list(chosen))


def _ticked(column: Coded) -> NDArray[np.bool_]:
    filled = column.with_blank()
    is_true = np.array([word.strip().lower() in SAME for word in filled.names.tolist()], bool)
    return is_true[filled.codes] if len(is_true) else np.zeros(len(column), bool)


def _unfolded(column: Coded) -> Coded:
    """The answers themselves, where a form wrote them as JSON (``Answer.taskAnswers``)."""
    if not any(word.lstrip().startswith(("[", "{")) for word in column.names.tolist()):
        return column
    filled = column.with_blank()
    words = [_one_answer(word) for word in filled.names.tolist()]
    return Coded.from_list([words[k] for k in filled.codes.tolist()])


def _one_answer(text: str) -> str:
    """What was chosen in ``[{"same": {"yes": true, "no": false}}]``, ``{"same": "yes"}`` ..."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    found: Json = parse_json(text, "an answer", foreign=True)
    while True:
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        elif isinstance(found, dict) and all(isinstance(v, bool) for v in found.values()):
            chosen = [name for name, is_chosen in found.items() if is_chosen]
            return chosen[0] if len(chosen) == 1 else ""
        elif isinstance(found, dict) and len(found) == 1:
            found = next(iter(found.values()))
        elif isinstance(found, list | dict):
            raise InputError(f"an answer holds more than one choice: {json.dumps(found)[:80]}.")
        else:
            return "" if found is None else str(found)


def _refused(column: Coded | None, platform: Platform, rows: int) -> NDArray[np.bool_]:
    if column is None:
        return np.zeros(rows, bool)
    filled = column.with_blank()
    bad = np.array([name.strip().lower() in platform.refused for name in filled.names.tolist()])
    return np.asarray(bad[filled.codes], bool)


def _refuse_no_gold(table: Table, control: NDArray[np.bool_]) -> None:
    if not control.any():
        raise InputError(f"{table.path.name} holds no known answer: no GOLDEN: column is filled.")


def _first_of_each(
    left: IdColumn, right: IdColumn, control: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The first row of each control task: its known answer is repeated for everybody it tests."""
    keys = [column.codes if isinstance(column, Coded) else column for column in (left, right)]
    rows = np.flatnonzero(control)
    both = np.column_stack([np.asarray(key)[rows] for key in keys])
    return rows[np.sort(np.unique(both, axis=0, return_index=True)[1])]


def _gold_pairs(
    rows: NDArray[np.int64],
    left: IdColumn,
    right: IdColumn,
    same: NDArray[np.bool_],
    items: Items,
) -> Pairs:
    def take(column: IdColumn) -> IdColumn:
        return (
            Coded(column.codes[rows], column.names) if isinstance(column, Coded) else column[rows]
        )

    every = np.ones(len(rows), bool)
    return assemble(take(left), take(right), same[rows], every, None, None, items)
