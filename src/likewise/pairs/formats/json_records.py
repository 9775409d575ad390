"""Judgements in JSON: dedupe's training file, Label Studio's export, plain records."""

from __future__ import annotations

import json
from pathlib import Path

from likewise.errors import InputError
from likewise.io.json import Json, read_json
from likewise.io.records import RecordTable
from likewise.pairs.container import Pairs
from likewise.pairs.formats.long import ColumnNames, Items, read_long


def load_json(path: Path) -> Json:
    """The content of a JSON file; of JSON Lines, a list of what the lines hold."""
    return read_json(
        path, max_bytes=2**30, hint="write CSV or Parquet instead", foreign=True, lines=True
    )


def json_format(path: Path, content: Json) -> str:
    """Which tool wrote this content."""
    if isinstance(content, dict) and ("distinct" in content or "match" in content):
        return "dedupe"
    if content and (rows := as_records(content)) is not None:
        return "label-studio" if any("annotations" in row for row in rows) else "pairs"
    raise InputError(
        f"{path.name} is JSON, but neither dedupe's training file (distinct, match), nor Label "
        "Studio's export (annotations), nor sorts (lists of piles), nor a list of records with "
        "left, right and same."
    )


def as_records(content: Json) -> list[dict[str, Json]] | None:
    """The content as a list of objects, None where it is something else."""
    if not isinstance(content, list):
        return None
    rows = [row for row in content if isinstance(row, dict)]
    return rows if len(rows) == len(content) else None


def read_dedupe(path: Path, content: Json, items: Items, item: str | None) -> Pairs:
    """dedupe's training pairs: ``{"distinct": [pair, ...], "match": [pair, ...]}``.

    A record is named by its field ``item``, else by ``id`` where every record has one, else by
    its whole content (JSON with sorted keys).
    """
    found = [
        (*_dedupe_pair(path, field, k, entry), field == "match")
        for field in ("distinct", "match")
        for k, entry in enumerate(_list(path.name, content, field))
    ]
    own = item or _common_id([record for left, right, _ in found for record in (left, right)])
    rows = [
        {"left": _name(path, left, own), "right": _name(path, right, own), "same": int(same)}
        for left, right, same in found
    ]
    return read_long(RecordTable(path, rows, "pair"), ColumnNames(), items)


def read_label_studio(path: Path, tasks: Json, names: ColumnNames, items: Items) -> Pairs:
    """Label Studio's JSON export of a task with two items and one Choices control.

    The items are the task's two data fields, or those named by ``left`` and ``right``; where a
    task has several Choices, ``same`` names the one that counts. A skipped task is no answer.
    """
    if not isinstance(tasks, list):
        raise InputError(f"{path.name} is not Label Studio's export: it is not a list of tasks.")
    rows = [
        {"left": left, "right": right, "same": answer, "annotator": person}
        for k, task in enumerate(tasks)
        for left, right, answer, person in _task_judgements(path, k, task, names)
    ]
    if not rows:
        raise InputError(f"{path.name} holds no annotation: label some tasks and export again.")
    return read_long(RecordTable(path, rows, "annotation"), ColumnNames(), items)


def _dedupe_pair(path: Path, field: str, k: int, entry: Json) -> tuple[Json, Json]:
    """The two records of a pair; dedupe writes tuples as ``{"__class__", "__value__"}``."""
    pair = entry.get("__value__") if isinstance(entry, dict) else entry
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(f"{path.name}, {field} {k}: a pair must hold two records.")
    return pair[0], pair[1]


def _common_id(records: list[Json]) -> str | None:
    return "id" if records and all(isinstance(r, dict) and "id" in r for r in records) else None


def _name(path: Path, record: Json, own: str | None) -> str:
    if own is None:
        return json.dumps(record, sort_keys=True, ensure_ascii=False)
    if not isinstance(record, dict) or own not in record:
        there = ", ".join(record) if isinstance(record, dict) else "none"
        raise InputError(f"{path.name}: a record lacks the field {own}; it has {there}.")
    return str(record[own])


def _task_judgements(
    path: Path, k: int, task: Json, names: ColumnNames
) -> list[tuple[str, str, str | None, str]]:
    place = f"{path.name}, task {k}"
    left, right = _two_items(place, _object(place, task, "data"), names)
    judgements = []
    for annotation in _list(place, task, "annotations"):
        result = _list(f"{place}, annotation", annotation, "result")
        assert isinstance(annotation, dict)  # it has the field
        skipped = annotation.get("was_cancelled")
        answer = None if skipped else _choice(place, result, names)
        judgements.append((left, right, answer, _person(annotation)))
    return judgements


def _two_items(place: str, data: dict[str, Json], names: ColumnNames) -> tuple[str, str]:
    if names.left in data and names.right in data:
        fields = [names.left, names.right]
    else:
        fields = [field for field, value in data.items() if isinstance(value, str)]
    if len(fields) != 2:
        raise InputError(
            f"{place}: two items are needed, but its data has {', '.join(data) or 'nothing'}; "
            "say which with left= and right= (--left, --right)."
        )
    left, right = (str(data[field]).rsplit("?d=", 1)[-1] for field in fields)  # local-files links
    return left, right


def _choice(place: str, result: list[Json], names: ColumnNames) -> str | None:
    """What was chosen; None where nothing was."""
    found = [e for e in result if isinstance(e, dict) and e.get("type") == "choices"]
    named = [entry for entry in found if entry.get("from_name") == names.same]
    chosen = named or found
    if len(chosen) > 1:
        controls = ", ".join(str(entry.get("from_name")) for entry in chosen)
        raise InputError(
            f"{place}: there are several Choices ({controls}); say which with same= (--same)."
        )
    if not chosen:
        return None
    choices = _object(f"{place}, choices", chosen[0], "value")
    values = _list(f"{place}, choices", choices, "choices")
    return str(values[0]) if values else None


def _list(place: str, content: Json, field: str) -> list[Json]:
    """A list that a JSON object holds, or one sentence on what is there instead."""
    if isinstance(found := _field(place, content, field), list):
        return found
    raise InputError(f"{place}: the field {field} must be a list.")


def _object(place: str, content: Json, field: str) -> dict[str, Json]:
    """An object that a JSON object holds, or one sentence on what is there instead."""
    if isinstance(found := _field(place, content, field), dict):
        return found
    raise InputError(f"{place}: the field {field} must be an object.")


def _field(place: str, content: Json, field: str) -> Json:
    if isinstance(content, dict) and field in content:
        return content[field]
    there = ", ".join(map(str, content)) if isinstance(content, dict) else "none"
    raise InputError(f"{place}: lacks the field {field}; the fields there are {there or 'none'}.")


def _person(annotation: dict[str, Json]) -> str:
    person = annotation.get("completed_by", "")
    if isinstance(person, dict):
        person = person.get("email") or person.get("id", "")
    return str(person)
