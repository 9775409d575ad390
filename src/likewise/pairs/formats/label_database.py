"""The labelling page's database, read: the standing answers, and the finished sorts.

An answer is a row of ``judgements``; a sort is a row an item of ``sorts``, and says of each two of
its items whether they lie in one pile.

Needs nothing but the standard library, and opens the file read-only, so that it may be in use.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from itertools import combinations
from pathlib import Path

from likewise.errors import InputError
from likewise.io.sqlite_files import BoundedConnection, connect_read_only, fetch_all

APPLICATION_ID = 0x4C494B45  # "LIKE", in SQLite's header: says whose file it is
VERSION = 2  # 1 had no sorts
MAX_SORTED = 35  # items on a screen: a sort of n items is n(n - 1)/2 judgements
COLUMNS = ("left", "right", "same", "annotator")

Answers = dict[str, list[str | int | None]]


def read_judgements(path: str | Path, *, gold: bool = False) -> Answers:
    """The standing answers as columns: left, right, same (1, 0, or None for not sure), annotator.

    In the order in which they were given. Where people have sorted, each two items of a finished
    sort are a judgement too, after the answers, and a further column ``sort`` numbers the sort
    (None for an answer of its own). Answers to questions whose answer was known (``gold``) are left
    out unless asked for. The file is opened read-only, so it may be in use.
    """
    place = Path(path)
    connection = open_read_only(place)
    try:
        rows = fetch_all(connection, _answers_query(connection, gold), place)
        sorts = _read_sorts(connection, place)
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
    return _with_sorts(found, sorts) if sorts else found


def _answers_query(connection: BoundedConnection, gold: bool) -> str:
    columns = '"left", "right", same, annotator'
    if not gold or not _has_sorts(connection):
        return f"SELECT {columns} FROM judgements ORDER BY id"
    return (
        f"SELECT {columns} FROM (SELECT id, {columns} FROM judgements UNION ALL "
        f"SELECT id, {columns} FROM gold) ORDER BY id"
    )


Sort = list[tuple[str, int]]  # (item, pile)


def _read_sorts(connection: BoundedConnection, path: Path) -> dict[tuple[int, str], Sort]:
    """The finished sorts by (number, annotator)."""
    if not _has_sorts(connection):
        return {}
    query = "SELECT sort, annotator, item, pile FROM sorts ORDER BY sort, item"
    sorts: dict[tuple[int, str], Sort] = defaultdict(list)
    for sort, annotator, item, pile in fetch_all(connection, query, path):
        if not (isinstance(sort, int) and isinstance(annotator, str)):
            raise InputError(f"{path} holds a sort without a number or a person; it is damaged.")
        if not (isinstance(item, str) and isinstance(pile, int)):
            raise InputError(f"{path} holds a sort of what is no item; it is damaged.")
        items = sorts[sort, annotator]
        items.append((item, pile))
        if len(items) > MAX_SORTED:
            raise InputError(
                f"{path} holds a sort of more than {MAX_SORTED} items, which no screen has; it is "
                "damaged."
            )
    return sorts


def _with_sorts(found: Answers, sorts: dict[tuple[int, str], Sort]) -> Answers:
    rows: list[tuple[str, str, int, str, int]] = [
        (left, right, int(a == b), annotator, sort)
        for (sort, annotator), items in sorts.items()
        for (left, a), (right, b) in combinations(items, 2)
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * (len(COLUMNS) + 1)
    alone: Answers = {**found, "sort": [None] * len(found["same"])}
    return {
        name: before + list(after)
        for (name, before), after in zip(alone.items(), columns, strict=True)
    }


def _has_sorts(connection: BoundedConnection) -> bool:
    """Whether the file is of a format that knows sorts and gold questions."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] >= 2)


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
