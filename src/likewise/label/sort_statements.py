"""What sorting asks of the database, each within a transaction of `likewise.label.store`.

A screen is some items that a person sorts into piles. Every move is a row of ``moves`` from the
moment it is acknowledged; how the piles stand follows from the moves that were not taken back.
Finishing a screen writes the piles to ``sorts``, so that whoever reads that table, with whatever
tool, meets whole sorts only.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.label.statements import AnswerConflict, now

_CHANGED = "this screen was changed in another tab or window; here it is as it stands."


@dataclass(frozen=True)
class Screen:
    """A screen that was begun."""

    id: int
    """Its number in the database, which names the sort."""
    number: int
    """Its number among the person's screens, from 0."""
    items: list[str]
    """The ids of its items."""
    piles: dict[str, int]
    """The pile of each item that lies in one."""
    steps: int
    """Moves so far, those taken back among them."""
    last: int | None
    """The last move that stands."""


@dataclass(frozen=True)
class Sorting:
    """What one person has sorted."""

    seen: set[str]
    """The items of all their screens."""
    piles: list[list[str]]
    """The items of each pile of each sort that they finished."""
    finished: int
    """How many screens they have finished."""
    everyone: int
    """How many everybody has."""
    open: Screen | None
    """The first screen that is begun and not finished."""
    number: int
    """The number of their next screen."""
    last_finished: int | None
    """The id of the finished screen that an undo would open again."""


def sorting(db: sqlite3.Connection, annotator: str) -> Sorting:
    """What one person has sorted, and what lies open."""
    rows = db.execute(
        "SELECT id, number, items, finished_at FROM screens WHERE annotator = ? ORDER BY number",
        (annotator,),
    ).fetchall()
    unfinished = next((row for row in rows if row[3] is None), None)
    number = len(rows) if unfinished is None else int(unfinished[1])
    before = next((row[0] for row in rows if row[1] == number - 1), None)
    piles: dict[tuple[int, int], list[str]] = defaultdict(list)
    for sort, pile, item in db.execute(
        "SELECT sort, pile, item FROM screens JOIN sorts ON sort = id WHERE screens.annotator = ? "
        "ORDER BY sort, pile, item",
        (annotator,),
    ):
        piles[sort, pile].append(item)
    return Sorting(
        piles=list(piles.values()),
        seen={item for row in rows for item in json.loads(row[2])},
        finished=sum(row[3] is not None for row in rows),
        everyone=db.execute(
            "SELECT count(*) FROM screens WHERE finished_at IS NOT NULL"
        ).fetchone()[0],
        open=None if unfinished is None else _screen(db, *unfinished[:3]),
        number=number,
        last_finished=before,
    )


def move(
    db: sqlite3.Connection,
    annotator: str,
    number: int,
    screen_items: Sequence[str],
    moved: Sequence[str],
    pile: int | None,
    after: int,
) -> int:
    """Move items to a pile, or back to those not sorted, as the step that comes ``after``.

    The same move again (a retry after a lost reply) changes nothing.
    """
    screen = _open_screen(db, annotator, number, screen_items)
    if not set(moved) <= set(screen.items):
        raise AnswerConflict("one of these items is not on this screen.")
    step = after + 1
    if screen.steps == step:
        stored = db.execute(
            "SELECT item, pile, undone_at FROM moves WHERE screen = ? AND step = ?",
            (screen.id, step),
        ).fetchall()
        if {tuple(row) for row in stored} == {(item, pile, None) for item in moved}:
            return step
    if screen.steps != after:
        raise AnswerConflict(_CHANGED)
    at = now()
    db.executemany(
        "INSERT INTO moves (screen, step, item, pile, at) VALUES (?, ?, ?, ?, ?)",
        [(screen.id, step, item, pile, at) for item in dict.fromkeys(moved)],
    )
    return step


def finish(
    db: sqlite3.Connection, annotator: str, number: int, screen_items: Sequence[str], after: int
) -> int:
    """End a screen as it stands after so many steps; its piles become a sort."""
    done = db.execute(
        "SELECT id FROM screens WHERE annotator = ? AND number = ? AND finished_at IS NOT NULL",
        (annotator, number),
    ).fetchone()
    if done is not None:
        return int(done[0])  # a retry after a lost reply
    screen = _open_screen(db, annotator, number, screen_items)
    if screen.steps != after:
        raise AnswerConflict(_CHANGED)
    times = dict(
        db.execute(
            "SELECT item, max(at) FROM moves WHERE screen = ? AND undone_at IS NULL GROUP BY item",
            (screen.id,),
        )
    )
    db.executemany(
        "INSERT INTO sorts (sort, annotator, item, pile, at) VALUES (?, ?, ?, ?, ?)",
        [(screen.id, annotator, item, pile, times[item]) for item, pile in screen.piles.items()],
    )
    db.execute("UPDATE screens SET finished_at = ? WHERE id = ?", (now(), screen.id))
    return screen.id


def undo(db: sqlite3.Connection, annotator: str, screen_id: int, step: int | None) -> int:
    """Take back a move, the last one that stands, or (without a step) that a screen is finished."""
    row = db.execute(
        "SELECT id, number, items, finished_at FROM screens WHERE id = ? AND annotator = ?",
        (screen_id, annotator),
    ).fetchone()
    if row is None:
        raise AnswerConflict("there is no such screen of yours.")
    if step is None:
        _reopen(db, annotator, screen_id, row[1], is_finished=row[3] is not None)
        return screen_id
    if row[3] is not None:
        raise AnswerConflict("this screen is finished; undo that first.")
    screen = _screen(db, *row[:3])
    if screen.last != step:
        undone = "SELECT 1 FROM moves WHERE screen = ? AND step = ? AND undone_at IS NOT NULL"
        if db.execute(undone, (screen_id, step)).fetchone():
            return screen_id  # a retry after a lost reply
        raise AnswerConflict(_CHANGED)
    db.execute(
        "UPDATE moves SET undone_at = ? WHERE screen = ? AND step = ?", (now(), screen_id, step)
    )
    return screen_id


def _reopen(
    db: sqlite3.Connection, annotator: str, screen_id: int, number: int, is_finished: bool
) -> None:
    if not is_finished:
        return  # a retry after a lost reply
    later = db.execute(
        "SELECT 1 FROM screens WHERE annotator = ? AND number > ? AND (finished_at IS NOT NULL OR "
        "EXISTS (SELECT 1 FROM moves WHERE screen = screens.id AND undone_at IS NULL))",
        (annotator, number),
    ).fetchone()
    if later is not None:
        raise AnswerConflict("you have gone on with the next screen; undo what you did there.")
    db.execute("DELETE FROM sorts WHERE sort = ?", (screen_id,))
    db.execute("UPDATE screens SET finished_at = NULL WHERE id = ?", (screen_id,))


def _open_screen(
    db: sqlite3.Connection, annotator: str, number: int, items: Sequence[str]
) -> Screen:
    """The person's screen of that number, begun if it is their next; refused once it is done."""
    rows = db.execute(
        "SELECT id, number, items, finished_at FROM screens WHERE annotator = ?", (annotator,)
    ).fetchall()
    for row in rows:
        if row[1] == number:
            if row[3] is not None:
                raise AnswerConflict("this screen is finished; undo that to change it.")
            return _screen(db, *row[:3])
    if number != len(rows) or any(row[3] is None for row in rows):
        raise AnswerConflict(_CHANGED)
    cursor = db.execute(
        "INSERT INTO screens (annotator, number, items, begun_at) VALUES (?, ?, ?, ?)",
        (annotator, number, json.dumps(list(items)), now()),
    )
    return Screen(int(cursor.lastrowid or 0), number, list(items), {}, 0, None)


def _screen(db: sqlite3.Connection, screen_id: int, number: int, items: str) -> Screen:
    moves = db.execute(
        "SELECT step, item, pile, undone_at FROM moves WHERE screen = ? ORDER BY step", (screen_id,)
    ).fetchall()
    standing = [(step, item, pile) for step, item, pile, undone_at in moves if undone_at is None]
    piles = {item: pile for _, item, pile in standing}  # the last move of each item
    return Screen(
        id=screen_id,
        number=number,
        items=json.loads(items),
        piles={item: pile for item, pile in piles.items() if pile is not None},
        steps=max((row[0] for row in moves), default=0),
        last=max((row[0] for row in standing), default=None),
    )
