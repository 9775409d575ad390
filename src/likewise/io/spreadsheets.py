"""CSV files for people: whole or not at all, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.errors import InputError
from likewise.io.atomic import replacing

# Where a spreadsheet may see a cell begin: at the start, and after what it may take for the
# separator (a semicolon in half of Europe, whatever quotes stand around the cell) or a line's end.
_CELL_STARTS = re.compile(r"""(^|[;\t\r\n])([\s"]*)(?=[=+\-@\t\r＝＋－＠])""")


def harmless(cell: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front of it."""
    return _CELL_STARTS.sub(r"\1\2'", cell) if isinstance(cell, str) else cell


def check_target(target: Path | None) -> None:
    """Refuse, before any work, a place where no file can be written."""
    if target is None:
        return
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a CSV file.")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent} to write {target.name} to.")


def write_csv(path: str | Path, columns: Mapping[str, Sequence[object]]) -> None:
    """Write columns of equal length; an older file is replaced at once, when all is written."""
    target = Path(path)
    check_target(target)
    with replacing(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(harmless(name) for name in columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([harmless(cell) for cell in row])
