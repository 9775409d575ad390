"""The labelling page's database, read: the standing answers, each a row of ``judgements``.

Needs nothing but the standard library, and opens the file read-only, so that it may be in use.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from likewise.errors import InputError
from likewise.io.sqlite_files import BoundedConnection, connect_read_only, fetch_all

APPLICATION_ID = 0x4C494B45  # "LIKE", in SQLite's header: says whose file it is
VERSION = 1
COLUMNS = ("left", "right", "same", "annotator")

Answers = dict[str, list[str | int | None]]


def read_judgements(path: str | Path) -> Answers:
    """The standing answers as columns: left, right, same (1, 0, or None for not sure), annotator.

    In the order in which they were given. The file is opened read-only, so it may be in use.
    """
    connection = open_read_only(Path(path))
    try:
        query = 'SELECT "left", "right", same, annotator FROM judgements ORDER BY id'
        rows = fetch_all(connection, query, Path(path))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as judgements: it is damaged.") from error
    finally:
        connection.close()
    found: Answers = {name: [] for name in COLUMNS}
    for left, right, same, annotator in rows:
        if not (isinstance(left, str) and isinstance(right, str) and isinstance(annotator, str)):
            raise InputError(f"{path} holds an item or annotator that is not text; it is damaged.")
        if not (same is None or (isinstance(same, int) and same in (0, 1))):
            raise InputError(f"{path} holds the answer {same!r}, which is none of 1, 0 and null.")
        for name, value in zip(COLUMNS, (left, right, same, annotator), strict=True):
            found[name].append(value)
    return found


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


def open_read_only(path: Path) -> BoundedConnection:
    """A read-only connection to a database of ours; any other file is refused in a sentence."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; give the database that `likewise label` wrote.")
    try:
        connection = connect_read_only(path)
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
