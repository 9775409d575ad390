"""CSV files for people: whole or not at all, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.io.atomic import replacing

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def harmless(cell: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell


def write_csv(path: str | Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length; an older file is replaced at once, when all is written."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a CSV file.")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent} to write {target.name} to.")
    with replacing(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(harmless(name) for name in columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([harmless(cell) for cell in row])
