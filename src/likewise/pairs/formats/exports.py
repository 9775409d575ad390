"""Flat exports: Zooniverse's classifications, Label Studio's CSV, TSV and JSON_MIN."""

from __future__ import annotations

from likewise.errors import InputError, RowError
from likewise.io.dictionary import Coded
from likewise.io.json import Json, JsonObject, parse_json
from likewise.io.records import RecordTable
from likewise.io.tables import Table, listing, require_columns
from likewise.pairs.answers import DIFFERENT, NO_ANSWER, SAME
from likewise.pairs.container import Pairs
from likewise.pairs.formats.long import ColumnNames, Items, read_columns, read_long, rows_located

ZOONIVERSE = ("user_name", "annotations", "subject_data")
LABEL_STUDIO = ("annotation_id", "lead_time")
# What Label Studio says of an annotation itself; the rest is the task's data and the answers.
_ABOUT_ANNOTATION = {"id", "annotation_id", "annotator", "lead_time", "created_at", "updated_at"}
_ABOUT_ANNOTATION |= {"agreement", "total_annotations", "inner_id", "completed_by", "project"}


def read_zooniverse(table: Table, names: ColumnNames, items: Items) -> Pairs:
    """Zooniverse's classification export: a subject shows two items, a task asks about them.

    The items are two fields of the subject's data: those called ``left`` and ``right``, else the
    only two texts; the answer is that of the task named by ``same``, else of the only one.
    """
    require_columns(table, ZOONIVERSE)
    with rows_located(table):
        columns = read_columns(table, [], list(ZOONIVERSE))
        who, annotations, subjects = (_texts(columns[name]) for name in ZOONIVERSE)
        rows = []
        for k, (person, answer, subject) in enumerate(zip(who, annotations, subjects)):
            left, right = _subject_items(k, subject, names)
            same = _task_value(k, answer, names)
            rows.append({"left": left, "right": right, "same": same, "annotator": person})
    return read_long(RecordTable(table.path, rows, "classification"), ColumnNames(), items)


def read_label_studio_flat(table: Table, names: ColumnNames, items: Items) -> Pairs:
    """Label Studio's CSV, TSV or JSON_MIN export: the task's data and the choice, one a row."""
    require_columns(table, LABEL_STUDIO)
    fields = [name for name in table.columns if name not in _ABOUT_ANNOTATION]
    with rows_located(table):
        columns = read_columns(table, [], [*fields, *_people(table)])
    texts = {name: [_single(text) for text in _texts(columns[name])] for name in fields}
    answer = _answer_field(table, texts, names)
    left, right = _item_fields(table, [name for name in fields if name != answer], names)
    people = [_texts(columns[name]) for name in _people(table)]
    rows = [
        {"left": _local(texts[left][k]), "right": _local(texts[right][k]), "same": texts[answer][k]}
        | ({"annotator": people[0][k]} if people else {})
        for k in range(len(texts[answer]))
    ]
    return read_long(RecordTable(table.path, rows, "annotation"), ColumnNames(), items)


def _people(table: Table) -> list[str]:
    return [name for name in table.columns if name in ("annotator", "completed_by")][:1]


def _answer_field(table: Table, texts: dict[str, list[str]], names: ColumnNames) -> str:
    """The field asked for, else the only one whose every value is an answer."""
    if names.same in texts:
        return names.same
    words = SAME | DIFFERENT | NO_ANSWER
    found = [
        name
        for name, values in texts.items()
        if any(values) and all(value.strip().lower() in words for value in values)
    ]
    if len(found) != 1:
        raise InputError(
            f"{table.path.name} does not say which field is the answer; the fields there are "
            f"{listing(list(texts))}; say which with same= (--same)."
        )
    return found[0]


def _item_fields(table: Table, fields: list[str], names: ColumnNames) -> tuple[str, str]:
    if names.left in fields and names.right in fields:
        return names.left, names.right
    if len(fields) != 2:
        raise InputError(
            f"{table.path.name} does not say which two fields are the items; there are "
            f"{listing(fields)}; say which with left= and right= (--left, --right)."
        )
    return fields[0], fields[1]


def _single(text: str) -> str:
    """The choice itself, where it is written as ``{"choices": ["Same"]}`` or ``["Same"]``."""
    if not text.startswith(("{", "[")):
        return text
    try:
        found: Json = parse_json(text, "a choice", foreign=True)
    except InputError:
        return text  # an item's own text may begin so
    if isinstance(found, dict) and "choices" in found:
        found = found["choices"]
    if isinstance(found, list) and len(found) == 1:
        return str(found[0])
    return text


def _local(text: str) -> str:
    """A local file's name out of Label Studio's link to it."""
    return text.rsplit("?d=", 1)[-1]


def _subject_items(row: int, text: str, names: ColumnNames) -> tuple[str, str]:
    """``{"12345": {"retired": null, "left": "a.jpg", "right": "b.jpg"}}``."""
    found = _object(row, text, "subject_data")
    inner = [value for value in found.values() if isinstance(value, dict)]
    data: JsonObject = inner[0] if len(inner) == 1 else found
    # Fields that begin with # or // are hidden from people, and are named without it.
    plain = {name.lstrip("#/"): value for name, value in data.items() if name != "retired"}
    if names.left in plain and names.right in plain:
        return str(plain[names.left]), str(plain[names.right])
    texts = [name for name, value in plain.items() if isinstance(value, str) and value]
    if len(texts) != 2:
        raise RowError(
            row,
            f"two items are needed, but subject_data has {listing(list(plain))}; say which with "
            "left= and right= (--left, --right).",
        )
    return str(plain[texts[0]]), str(plain[texts[1]])


def _task_value(row: int, text: str, names: ColumnNames) -> str | None:
    """``[{"task": "T0", "task_label": "Same kind?", "value": "Yes"}]``."""
    found = parse_json(text, "annotations", foreign=True) if text else None
    tasks = [task for task in found if isinstance(task, dict)] if isinstance(found, list) else []
    if not tasks:
        raise RowError(row, "annotations must be a list of tasks with a value each.")
    named = [t for t in tasks if names.same in (t.get("task"), t.get("task_label"))]
    chosen = named or tasks
    if len(chosen) > 1:
        labels = ", ".join(str(task.get("task")) for task in chosen)
        raise RowError(row, f"there are several tasks ({labels}); say which with same= (--same).")
    if "value" not in chosen[0]:
        raise RowError(row, "the task of annotations lacks its value.")
    value = chosen[0]["value"]
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    return None if value is None else str(value)


def _object(row: int, text: str, name: str) -> JsonObject:
    found = parse_json(text, name, foreign=True) if text else None
    if not isinstance(found, dict):
        raise RowError(row, f"{name} must be a JSON object.")
    return found


def _texts(column: Coded) -> list[str]:
    filled = column.with_blank()
    texts: list[str] = filled.names[filled.codes].tolist() if len(filled) else []
    return texts
