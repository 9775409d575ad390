"""Lines of a CSV file that are no rows: what spreadsheets leave before and between them."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_BLOCK_BYTES = 1 << 24
_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r'"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)


@dataclass(frozen=True)
class FirstLine:
    """The first line of a CSV file, and what it says of the others."""

    delimiter: str
    """Comma, semicolon, tab or bar, whichever it uses most; or as a line ``sep=;`` above it says,
    which is how Excel is told."""
    cells: list[str]
    """As they stand in the file."""
    above: int
    """1 if there is such a line, else 0."""


def first_line(path: Path) -> FirstLine:
    """The first line that is not about the separator."""
    with path.open(encoding="utf-8-sig") as file:
        text = file.readline(_BLOCK_BYTES)
        said = _SEPARATOR.fullmatch(text)
        if said:
            text = file.readline(_BLOCK_BYTES)
    delimiter = said[1] if said else max(_DELIMITERS, key=text.count)
    return FirstLine(delimiter, next(csv.reader([text], delimiter=delimiter), []), int(bool(said)))


def named_columns(cells: Sequence[str]) -> dict[str, str]:
    """What columns are called, without blanks around it, and how that stands in the file.

    Columns without a name at the right are none: spreadsheets leave them. Of others the first is
    one, which is how pandas writes its index.
    """
    last = max((k for k, cell in enumerate(cells) if cell.strip()), default=0)
    return {cell.strip(): cell for cell in cells[: last + 1]}


def is_row(cells: Sequence[str]) -> bool:
    """Whether a line is more than empty, or separators alone (``;;;``)."""
    return len(cells) == 1 or any(cell.strip() for cell in cells)


def empty_rows(path: Path, first: FirstLine) -> list[int]:
    """Which rows, counted without empty lines from the first line on, are separators alone."""
    if not _may_have_empty_rows(path, first.delimiter):
        return []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = (cells for cells in csv.reader(file, delimiter=first.delimiter) if cells)
        for _ in range(first.above):
            next(lines, None)
        return [k for k, cells in enumerate(lines) if not is_row(cells)]


def _may_have_empty_rows(path: Path, delimiter: str) -> bool:
    """Whether any line begins with a separator, which is seen at once."""
    before = b""
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
            if any(end + delimiter.encode() in before + block for end in (b"\n", b"\r")):
                return True
            before = block[-1:]
    return False
