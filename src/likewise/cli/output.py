"""What commands say: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from likewise.io.json import Record, plain
from likewise.io.terminal import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

WIDTH = 120  # where no terminal says how wide it is


def emit(as_json: bool, result: Record, *shown: RenderableType) -> None:
    """The result of a command: one JSON object and nothing else, or what is ``shown`` of it."""
    if as_json:
        sys.stdout.write(json.dumps(plain(result), allow_nan=False, default=str) + "\n")
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    for part in shown:
        shown_part = printable(part) if isinstance(part, str) else part
        console.print(shown_part, markup=False, emoji=False)


def emit_lines(as_json: bool, name: str, lines: Sequence[str]) -> None:
    """Lines for another program: as they are and however long, or a list in a JSON object."""
    if as_json:
        emit(True, {name: list(lines)})
    else:
        sys.stdout.writelines(line + "\n" for line in lines)


def say(message: str) -> None:
    """A message to the person at the terminal."""
    sys.stderr.write(printable(message) + "\n")


def complain(message: str, status: int) -> int:
    """Say in one line what went wrong; returns the exit status."""
    say("likewise: " + " ".join(message.split()))
    return status


def table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> RenderableType:
    """A table in which columns of numbers are flush right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    drawn = Table(title=_title(title), box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for k, name in enumerate(columns):
        is_number = bool(listed) and all(isinstance(row[k], int | float | None) for row in listed)
        drawn.add_column(
            Text(printable(name)), justify="right" if is_number else "left", overflow="fold"
        )
    for row in listed:
        drawn.add_row(*(Text(cell_text(cell)) for cell in row))
    return drawn


def facts(title: str | None, rows: Iterable[tuple[str, Any]]) -> RenderableType:
    """Names and values, one a line."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=_title(title), box=None, show_header=False, title_justify="left")
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    for name, value in rows:
        drawn.add_row(Text(printable(name)), Text(cell_text(value)))
    return drawn


def _title(title: str | None) -> Text | None:
    from rich.text import Text

    return None if title is None else Text(printable(title))


def cell_text(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "–"
    if isinstance(value, int):
        return f"{value:,}"
    return printable(str(value))
