"""CSV files in which a quote is opened and never closed: all rows after it become one cell."""

from __future__ import annotations

import csv
from pathlib import Path

from likewise.errors import InputError

_BLOCK_BYTES = 1 << 24


def refuse_open_quote(path: Path, delimiter: str) -> None:
    """Say in which line a quote is opened that is never closed.

    Quotes come in twos, doubled ones inside a cell too. Where their number is odd, the file is read
    slowly, once: a quote in the middle of a cell (``5" pipe``) opens nothing.
    """
    if _count_quotes(path) % 2 == 0:
        return
    opened = 1
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                opened = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise InputError(
                    f"{path.name}, line {opened}: a quote is opened and never closed; close it, or "
                    "remove it."
                ) from error


def _count_quotes(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b'"') for block in iter(lambda: file.read(_BLOCK_BYTES), b""))
