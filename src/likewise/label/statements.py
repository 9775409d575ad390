"""What is asked of the database, each within a transaction of `likewise.label.store`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from likewise.errors import InputError, LikewiseError

# An answer as the page sends it, and as the database keeps it.
ANSWERS: dict[str, int | None] = {"same": 1, "different": 0, "unsure": None}
TABLES = ("judgements", "gold")  # where a standing answer may be
LOOKED_AT = 64  # items whose content is noted, where they go by a number only
Looks = Callable[[Sequence[str]], Mapping[str, str]]  # digests of the items of some ids


class AnswerConflict(LikewiseError):
    """The pair already has another answer of this person, or there is nothing to take back."""


class Judgement(NamedTuple):
    """One standing answer, or one that was taken back."""

    id: int
    """Its number in the database."""
    left: str
    """The id of the item on the left."""
    right: str
    """The id of the item on the right."""
    same: int | None
    """1 or 0; None for "not sure"."""


@dataclass(frozen=True)
class History:
    """What one person has answered."""

    standing: list[Judgement]
    """Answers that count, oldest first."""
    undone: list[Judgement]
    """Answers that were taken back, oldest first."""


def keep_items(
    db: sqlite3.Connection,
    path: Path,
    ids: Sequence[str],
    looks: Looks | None,
) -> None:
    """Note which items are offered, or refuse them; see `Store.keep_items`."""
    judged = {
        row[0]
        for row in db.execute(
            'SELECT "left" FROM judgements UNION SELECT "right" FROM judgements UNION '
            'SELECT "left" FROM gold UNION SELECT "right" FROM gold UNION SELECT item FROM moves'
        )
    }
    gone = sorted(judged.difference(ids))
    if 2 * len(gone) > len(judged):
        raise InputError(
            f"{path} holds answers about other items: {gone[0]!r} and {len(gone) - 1} more of "
            f"{len(judged)} that were judged are not among these. Give the items that it was made "
            "with, or another --out."
        )
    if not judged:
        db.execute("DELETE FROM items")
    if looks is not None:
        _keep_looks(db, path, ids, looks, is_new=not judged)
    db.executemany(
        "INSERT INTO items VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET position = "
        "excluded.position WHERE position <> excluded.position",
        [(identity, position) for position, identity in enumerate(ids)],
    )


def record(
    db: sqlite3.Connection,
    annotator: str,
    left: str,
    right: str,
    same: int | None,
    expected: int | None = None,
) -> int:
    """Store an answer, or find it stored; its number.

    The answer to a gold question, of which the ``expected`` one is known, is stored apart.
    """
    low, high = min(left, right), max(left, right)
    for table in TABLES:
        known = db.execute(
            f'SELECT id, same FROM {table} WHERE annotator = ? AND min("left", "right") = ? '
            'AND max("left", "right") = ?',
            (annotator, low, high),
        ).fetchone()
        if known is not None and known[1] != same:
            raise AnswerConflict(
                "you have already answered this pair; undo that answer to change it."
            )
        if known is not None:
            return int(known[0])
    number = db.execute(
        'INSERT INTO judgements ("left", "right", same, annotator, at) VALUES (?, ?, ?, ?, ?)',
        (left, right, same, annotator, now()),
    ).lastrowid
    if expected is not None:  # numbered with the others, so that nobody sees which they were
        db.execute(
            'INSERT INTO gold SELECT id, "left", "right", same, annotator, at, ? FROM judgements '
            "WHERE id = ?",
            (expected, number),
        )
        db.execute("DELETE FROM judgements WHERE id = ?", (number,))
    return int(number or 0)


def undo(db: sqlite3.Connection, annotator: str, judgement: int) -> int:
    """Move an answer to those that were taken back."""
    mine = (judgement, annotator)
    if db.execute("SELECT 1 FROM undone WHERE id = ? AND annotator = ?", mine).fetchone():
        return judgement  # a retry after a lost reply
    for table in TABLES:
        moved = db.execute(
            'INSERT INTO undone SELECT id, "left", "right", same, annotator, at, ? '
            f"FROM {table} WHERE id = ? AND annotator = ?",
            (now(), *mine),
        ).rowcount
        if moved:
            db.execute(f"DELETE FROM {table} WHERE id = ?", (judgement,))
            return judgement
    raise AnswerConflict("there is no such answer of yours to undo.")


def history(db: sqlite3.Connection, annotator: str) -> History:
    """Everything that one person answered."""

    def rows(query: str) -> list[Judgement]:
        return [Judgement(*row) for row in db.execute(query, {"annotator": annotator})]

    columns = 'SELECT id, "left", "right", same FROM'
    own = "WHERE annotator = :annotator"
    standing = rows(f"{columns} judgements {own} UNION ALL {columns} gold {own} ORDER BY id")
    undone = rows(
        f'SELECT id, "left", "right", answer FROM undone {own} ORDER BY undone_at, id DESC'
    )
    return History(standing, undone)


def counts(db: sqlite3.Connection) -> list[tuple[str, str, int]]:
    """(left, right, standing answers) of every pair that was judged, as often as it stands so."""
    query = 'SELECT "left", "right", count(*) FROM judgements GROUP BY "left", "right"'
    return [(left, right, number) for left, right, number in db.execute(query)]


def _keep_looks(
    db: sqlite3.Connection,
    path: Path,
    ids: Sequence[str],
    looks: Looks,
    is_new: bool,
) -> None:
    """Note what some items look like, or compare with what they looked like."""
    row = db.execute("SELECT value FROM meta WHERE key = 'looks'").fetchone()
    if is_new or row is None:
        some = ids[:: -(-len(ids) // LOOKED_AT)]
        content = json.dumps(dict(looks(some))).encode()
        db.execute("INSERT OR REPLACE INTO meta VALUES ('looks', ?)", (content,))
        return
    before: dict[str, str] = json.loads(row[0])
    there = set(ids)
    now = looks([identity for identity in before if identity in there])
    other = [identity for identity in before if now.get(identity) != before[identity]]
    if 2 * len(other) > len(before):
        raise InputError(
            f"{path} holds answers about other items: number {other[0]} is not what it was. Give "
            "the items that it was made with, or another --out."
        )


def now() -> str:
    """The time, as the database keeps it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
