"""The file that holds the judgements: its tables, how it is opened, and how it is read again.

A standing answer is a row of ``judgements``; an answer that was taken back moves to ``undone``, so
that whoever reads ``judgements``, with whatever tool, never meets one.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from likewise.errors import InputError

APPLICATION_ID = 0x4C494B45  # "LIKE", in SQLite's header: says whose file it is
VERSION = 1
COLUMNS = ("left", "right", "same", "annotator")

_SCHEMA = """
CREATE TABLE items (id TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE judgements (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    "left" TEXT NOT NULL,
    "right" TEXT NOT NULL CHECK ("right" <> "left"),
    same INTEGER CHECK (same IN (0, 1)),  -- NULL: not sure
    annotator TEXT NOT NULL,
    at TEXT NOT NULL
);
-- Nobody answers a pair twice, whichever of its items stood on the left.
CREATE UNIQUE INDEX once ON judgements (annotator, min("left", "right"), max("left", "right"));
CREATE TABLE undone (
    id INTEGER PRIMARY KEY, "left" TEXT NOT NULL, "right" TEXT NOT NULL, answer INTEGER,
    annotator TEXT NOT NULL, at TEXT NOT NULL, undone_at TEXT NOT NULL
);
CREATE INDEX undone_by ON undone (annotator);
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""


def open_database(path: str | Path) -> sqlite3.Connection:
    """Open the database for writing, making it where there is none.

    Write-ahead logging with full synchronisation: a committed answer survives the process and the
    power cord, and readers never wait for writers. The file is its owner's alone, because it holds
    the key that signs sessions.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first.")
    if path.exists():
        _check_is_ours(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA busy_timeout = 5000")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        # The tables before the log, so that the file itself says what it is from the first moment.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            _create(connection)
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be opened for writing: {error}.") from error
    return connection


def read_judgements(path: str | Path) -> dict[str, list[Any]]:
    """The standing answers as columns: left, right, same (1, 0, or None for not sure), annotator.

    In the order in which they were given. The file is opened read-only, so it may be in use.
    """
    connection = _open_read_only(Path(path))
    try:
        rows = connection.execute(
            'SELECT "left", "right", same, annotator FROM judgements ORDER BY id'
        ).fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as judgements: it is damaged.") from error
    finally:
        connection.close()
    for row in rows:
        if not (isinstance(row[0], str) and isinstance(row[1], str) and isinstance(row[3], str)):
            raise InputError(f"{path} holds an item or annotator that is not text; it is damaged.")
        if row[2] not in (0, 1, None):
            raise InputError(f"{path} holds the answer {row[2]!r}, which is none of 1, 0 and null.")
    return {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)}


def is_judgements_database(path: str | Path) -> bool:
    """Whether the file says that it is a database of this page."""
    try:
        with Path(path).open("rb") as file:
            header = file.read(72)
    except OSError:
        return False
    return (
        header.startswith(b"SQLite format 3\x00")
        and int.from_bytes(header[68:72], "big") == APPLICATION_ID
    )


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables, all or none of them: a kill in the middle leaves an empty file."""
    key = secrets.token_bytes(32)
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('key', ?)", (key,))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _check_is_ours(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file for the judgements.")
    if path.stat().st_size > 0:
        _open_read_only(path).close()


def _open_read_only(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise InputError(f"there is no file {path}; give the database that `likewise label` wrote.")
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA busy_timeout = 5000")
        ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a database that can be read: {error}.") from error
    # A database whose tables are still in the making has neither mark nor content.
    if not ours and (version != 0 or pages > 1):
        connection.close()
        raise InputError(f"{path} is a database, but not one of judgements; name another file.")
    if version > VERSION:
        connection.close()
        raise InputError(
            f"{path} was written by a newer version of Likewise (format {version}, this one reads "
            f"{VERSION}); update Likewise."
        )
    return connection
