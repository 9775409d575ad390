"""The file that holds the judgements: its tables, and how it is opened for writing.

A standing answer is a row of ``judgements``; an answer that was taken back moves to ``undone``, so
that whoever reads ``judgements``, with whatever tool, never meets one. A finished sort is a row an
item of ``sorts``; what is still being sorted is in ``screens`` and ``moves``. Answers to questions
whose answer was known are in ``gold``. Reading the file is a format of judgements:
`likewise.pairs.formats.label_database`.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path

from likewise.errors import InputError
from likewise.pairs.formats.label_database import (
    APPLICATION_ID,
    VERSION,
    open_read_only,
)

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
# What came with format 2.
_SCHEMA_2 = """
CREATE TABLE sorts (
    sort INTEGER NOT NULL, annotator TEXT NOT NULL, item TEXT NOT NULL,
    pile INTEGER NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (sort, item)
) WITHOUT ROWID;
CREATE TABLE screens (
    id INTEGER PRIMARY KEY AUTOINCREMENT, annotator TEXT NOT NULL, number INTEGER NOT NULL,
    items TEXT NOT NULL,  -- a JSON list of ids
    begun_at TEXT NOT NULL, finished_at TEXT,
    UNIQUE (annotator, number)
);
CREATE TABLE moves (
    screen INTEGER NOT NULL, step INTEGER NOT NULL, item TEXT NOT NULL,
    pile INTEGER,  -- NULL: back to those not sorted
    at TEXT NOT NULL, undone_at TEXT,
    PRIMARY KEY (screen, step, item)
) WITHOUT ROWID;
-- Like judgements, and numbered with them.
CREATE TABLE gold (
    id INTEGER PRIMARY KEY,
    "left" TEXT NOT NULL,
    "right" TEXT NOT NULL CHECK ("right" <> "left"),
    same INTEGER CHECK (same IN (0, 1)),
    annotator TEXT NOT NULL,
    at TEXT NOT NULL,
    expected INTEGER NOT NULL CHECK (expected IN (0, 1))
);
CREATE UNIQUE INDEX gold_once ON gold (annotator, min("left", "right"), max("left", "right"));
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
        if (version := connection.execute("PRAGMA user_version").fetchone()[0]) < VERSION:
            _create(connection, is_new=version == 0)
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be opened for writing: {error}.") from error
    return connection


def _create(connection: sqlite3.Connection, is_new: bool) -> None:
    """Make the tables that are missing, all or none: a kill in the middle leaves what was there."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in ((_SCHEMA if is_new else "") + _SCHEMA_2).split(";\n"):
        if statement.strip():
            connection.execute(statement)
    if is_new:
        key = secrets.token_bytes(32)
        connection.execute("INSERT INTO meta VALUES ('key', ?)", (key,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _check_is_ours(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file for the judgements.")
    if path.stat().st_size > 0:
        open_read_only(path).close()
