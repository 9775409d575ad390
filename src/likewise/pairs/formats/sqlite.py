"""Judgements in an SQLite database: that of the labelling page, or any table with the columns."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from likewise.errors import InputError
from likewise.io.records import RecordTable
from likewise.io.sqlite_files import connect_read_only, fetch_all
from likewise.pairs.container import Pairs
from likewise.pairs.formats.label_database import is_judgements_database, read_judgements
from likewise.pairs.formats.long import ColumnNames, Items, read_long


def read_sqlite(path: Path, names: ColumnNames, items: Items, table: str | None) -> Pairs:
    """The judgements of the table ``table``, else of the only one that has the columns."""
    if table is None and is_judgements_database(path):
        columns = read_judgements(path)
        if not columns["same"]:
            raise InputError(
                f"{path.name} holds no judgement yet: nobody has answered, or finished a screen."
            )
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        return read_long(RecordTable(path, rows, "answer"), ColumnNames(), items)
    return read_long(RecordTable(path, _rows(path, names, table), "row"), names, items)


def _rows(path: Path, names: ColumnNames, table: str | None) -> list[dict[str, object]]:
    try:
        with closing(connect_read_only(path)) as connection:
            tables = _tables(connection)
            chosen = table or _only_table(path, tables, names)
            if chosen not in tables:
                raise InputError(
                    f"{path.name} has no table {chosen}; the tables there are {', '.join(tables)}."
                )
            wanted = ", ".join(quoted(column) for column in tables[chosen])
            query = f"SELECT {wanted} FROM {quoted(chosen)}"
            if _is_table(connection, chosen):  # a view has no order but its own
                query += " ORDER BY rowid"
            rows = fetch_all(connection, query, path)
            return [dict(zip(tables[chosen], row, strict=True)) for row in rows]
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a spoilt message
        reason = error if isinstance(error, sqlite3.Error) else "it is damaged"
        raise InputError(f"{path.name} cannot be read: {reason}.") from error


def _tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return {
        str(name): [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quoted(name)})")]
        for (name,) in found.fetchall()
        if not str(name).startswith("sqlite_")
    }


def _is_table(connection: sqlite3.Connection, name: str) -> bool:
    kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return bool(kind == ("table",))


def _only_table(path: Path, tables: dict[str, list[str]], names: ColumnNames) -> str:
    needed = {names.left, names.right, names.same}
    fitting = [name for name, columns in tables.items() if needed <= set(columns)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise InputError(
            f"{path.name} has several tables of judgements ({', '.join(fitting)}); "
            "say which with table=."
        )
    there = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in tables.items())
    raise InputError(
        f"{path.name} has no table with the columns {names.left}, {names.right} and {names.same}; "
        f"there are {there or 'no tables'}."
    )


def quoted(name: str) -> str:
    """An SQL name."""
    return '"' + name.replace('"', '""') + '"'
