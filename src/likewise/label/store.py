"""The database at work: answers go in through one thread, and are acknowledged when they are safe.

One commit, one ``fsync``, may carry the answers of everybody who pressed a button meanwhile: a
slow disk then costs each of them one wait, not one wait a colleague.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from likewise.errors import InputError, LikewiseError
from likewise.label.database import open_database

MAX_BATCH = 256
# An answer as the page sends it, and as the database keeps it.
ANSWERS: dict[str, int | None] = {"same": 1, "different": 0, "unsure": None}


class AnswerConflict(LikewiseError):
    """The pair already has another answer of this person, or there is nothing to take back."""


class Judgement(NamedTuple):
    """One standing answer, or one that was taken back."""

    id: int
    left: str
    right: str
    same: int | None


@dataclass(frozen=True)
class History:
    """What one person has answered, oldest first, and what they took back, oldest first."""

    standing: list[Judgement]
    undone: list[Judgement]


@dataclass(frozen=True)
class _Task:
    work: Callable[[sqlite3.Connection], Any]
    done: Future[Any]


class Store:
    """Judgements in SQLite, written by one thread; every method may be called from any thread."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection = open_database(path)
        self.key: bytes = self._connection.execute(
            "SELECT value FROM meta WHERE key = 'key'"
        ).fetchone()[0]
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="likewise-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what was submitted and close the file."""
        if self._thread.is_alive():
            self._tasks.put(None)
            self._thread.join()
            self._connection.close()

    def keep_items(self, ids: Sequence[str]) -> None:
        """Note which items are offered, so that the database says what it is about."""
        rows = [(identity, position) for position, identity in enumerate(ids)]

        def work(db: sqlite3.Connection) -> None:
            db.executemany(
                "INSERT INTO items VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET position = "
                "excluded.position WHERE position <> excluded.position",
                rows,
            )

        try:
            self._submit(work).result()
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be written: {error}.") from error

    def record(self, annotator: str, left: str, right: str, same: int | None) -> Future[int]:
        """Store one answer; the result, its id, comes when it is durable.

        Sending the same answer again (a retry after a lost reply) gives the same id; another
        answer to the same pair is an `AnswerConflict`.
        """
        return self._submit(lambda db: _record(db, annotator, left, right, same))

    def undo(self, annotator: str, judgement: int) -> Future[int]:
        """Take back an answer, the person's own; doing so again (a retry) changes nothing."""
        return self._submit(lambda db: _undo(db, annotator, judgement))

    def history(self, annotator: str) -> Future[History]:
        """Everything that one person answered."""
        return self._submit(lambda db: _history(db, annotator))

    def count(self) -> int:
        """The number of standing answers of everybody."""
        count: int = self._submit(
            lambda db: db.execute("SELECT count(*) FROM judgements").fetchone()[0]
        ).result()
        return count

    def _submit(self, work: Callable[[sqlite3.Connection], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        self._tasks.put(_Task(work, done))
        return done

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            outcomes = self._commit(batch)
            for task, outcome in zip(batch, outcomes, strict=True):
                if not task.done.set_running_or_notify_cancel():
                    continue  # whoever asked has gone; the answer is stored all the same
                if isinstance(outcome, Exception):
                    task.done.set_exception(outcome)
                else:
                    task.done.set_result(outcome)

    def _next_batch(self) -> list[_Task] | None:
        """All tasks that are waiting, at least one; None once the store is closed and empty."""
        first = self._tasks.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is None:
                self._tasks.put(None)  # close after this batch
                break
            batch.append(task)
        return batch

    def _commit(self, batch: list[_Task]) -> list[Any]:
        """Do all tasks in one transaction; a result, or the exception of each.

        A task that fails takes back only its own changes. A commit that fails (a full disk) fails
        every task: nobody is told that an answer is safe when it is not.
        """
        db, outcomes = self._connection, []
        try:
            db.execute("BEGIN IMMEDIATE")
            for task in batch:
                db.execute("SAVEPOINT task")
                try:
                    outcomes.append(task.work(db))
                except (LikewiseError, sqlite3.IntegrityError) as error:
                    db.execute("ROLLBACK TO task")
                    outcomes.append(error)
                db.execute("RELEASE task")
            db.execute("COMMIT")
        except Exception as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            return [error] * len(batch)
        return outcomes


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _record(db: sqlite3.Connection, annotator: str, left: str, right: str, same: int | None) -> int:
    known = db.execute(
        'SELECT id, same FROM judgements WHERE annotator = ? AND min("left", "right") = ? '
        'AND max("left", "right") = ?',
        (annotator, min(left, right), max(left, right)),
    ).fetchone()
    if known is None:
        cursor = db.execute(
            'INSERT INTO judgements ("left", "right", same, annotator, at) VALUES (?, ?, ?, ?, ?)',
            (left, right, same, annotator, _now()),
        )
        return int(cursor.lastrowid or 0)
    if known[1] != same:
        raise AnswerConflict("you have already answered this pair; undo that answer to change it.")
    return int(known[0])


def _undo(db: sqlite3.Connection, annotator: str, judgement: int) -> int:
    if db.execute(
        "SELECT 1 FROM undone WHERE id = ? AND annotator = ?", (judgement, annotator)
    ).fetchone():
        return judgement  # a retry after a lost reply
    if not db.execute(
        "SELECT 1 FROM judgements WHERE id = ? AND annotator = ?", (judgement, annotator)
    ).fetchone():
        raise AnswerConflict("there is no such answer of yours to undo.")
    db.execute(
        'INSERT INTO undone SELECT id, "left", "right", same, annotator, at, ? FROM judgements '
        "WHERE id = ?",
        (_now(), judgement),
    )
    db.execute("DELETE FROM judgements WHERE id = ?", (judgement,))
    return judgement


def _history(db: sqlite3.Connection, annotator: str) -> History:
    def rows(query: str) -> list[Judgement]:
        return [Judgement(*row) for row in db.execute(query, (annotator,))]

    standing = rows(
        'SELECT id, "left", "right", same FROM judgements WHERE annotator = ? ORDER BY id'
    )
    undone = rows(
        'SELECT id, "left", "right", answer FROM undone WHERE annotator = ? '
        "ORDER BY undone_at, id DESC"
    )
    return History(standing, undone)
