"""The files of a run folder, each read back with bounded trust."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.io.json import Record, read_json_object
from likewise.io.npy import Array, read_npz


def read_json(path: Path) -> Record:
    """A JSON object of bounded size, or an `InputError` that says what is wrong with the file."""
    if not path.is_file():
        raise InputError(f"{path.parent} is not a whole run: it has no {path.name}.")
    return read_json_object(path)


def history_text(history: list[Record]) -> str:
    """Rows as CSV; a column that a row does not have is left blank."""
    columns = list(dict.fromkeys(name for row in history for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue()


def read_history(path: Path) -> list[Record]:
    """The rows again, numbers as numbers."""
    if not path.is_file():
        raise InputError(f"{path.parent} is not a whole run: it has no {path.name}.")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if not {"epoch", "round"} & set(reader.fieldnames or ()):
                raise InputError(f"{path} is not the table that Likewise writes there.")
            return [{k: _number(v) for k, v in row.items()} for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not the table that Likewise writes there.") from error


def _number(text: str | None) -> Any:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and "." not in text else value


def read_arrays(path: Path, needed: set[str]) -> dict[str, Array]:
    """Arrays by name, those that are needed among them."""
    if not path.is_file():
        raise InputError(f"{path.parent} is not a whole run: it has no {path.name}.")
    arrays = read_npz(path)
    if missing := sorted(needed - set(arrays)):
        raise InputError(f"{path} lacks {', '.join(missing)}: the run is not whole.")
    return arrays
