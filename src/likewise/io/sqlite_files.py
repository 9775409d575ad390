"""SQLite files from strangers: read-only, with a schema that is not trusted, and bounded.

A database holds programs: a view may compute rows without end. So what a query may take, in steps,
in memory and in the length of a cell, follows from the size of the file.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from likewise.errors import InputError
from likewise.io.limits import VARIABLE, memory_limit
from likewise.io.regular import open_regular

Cell = str | bytes | int | float | None
MAX_CELL = 1_000_000
MAX_STEPS = 10**8  # of SQLite's machine; some seconds
MAX_SECONDS = 20.0  # a step may be long: text of a megabyte is one
_STEPS_AT_A_TIME = 5000
_BYTES_A_SECOND = 5_000_000  # that a slow disk gives
_ROWS_AT_A_TIME = 100
_ROW_BYTES = 200  # what Python takes for a row beside its text


class BoundedConnection(sqlite3.Connection):
    """A connection whose queries end after so many steps; see `connect_read_only`."""

    is_spent = False
    _steps_left, _until = 0, 0.0

    def bound(self, steps: int, seconds: float) -> None:
        """Allow that many steps, and that much time, from here on."""
        self._steps_left, self._until = steps, time.monotonic() + seconds
        self.set_progress_handler(self._count, _STEPS_AT_A_TIME)

    def _count(self) -> int:
        self._steps_left -= _STEPS_AT_A_TIME
        self.is_spent = self._steps_left < 0 or time.monotonic() > self._until
        return int(self.is_spent)  # anything but 0 stops the query


def connect_read_only(path: Path) -> BoundedConnection:
    """A connection that changes nothing, runs nothing that the file asks for, and ends in time."""
    with open_regular(path) as file:  # a pipe or a device is no database
        file.seek(0, 2)
        size = file.tell()
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, factory=BoundedConnection)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
    connection.bound(MAX_STEPS + 4 * size, MAX_SECONDS + size / _BYTES_A_SECOND)
    return connection


def fetch_all(connection: BoundedConnection, query: str, path: Path) -> list[tuple[Cell, ...]]:
    """The rows of a query, as many as a file of that size may give."""
    rows: list[tuple[Cell, ...]] = []
    left = memory_limit() + 20 * path.stat().st_size  # a byte on disk is more as a Python object
    try:
        cursor = connection.execute(query)
        while some := cursor.fetchmany(_ROWS_AT_A_TIME):
            rows += some
            texts = (cell for row in some for cell in row if isinstance(cell, str | bytes))
            left -= _ROW_BYTES * len(some) + sum(map(len, texts))
            if left < 0:
                raise InputError(
                    f"{path.name} gives more than {len(rows):,} rows, far more than it holds: one "
                    f"of its views has no end. Copy the rows to a table, or set {VARIABLE}."
                )
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        if not connection.is_spent:  # not by us: SQLite swallows what Ctrl-C raises
            raise KeyboardInterrupt from None
        raise InputError(
            f"{path.name} takes too long to read: one of its views computes without end. Copy the "
            "rows to a table."
        ) from error
    return rows
