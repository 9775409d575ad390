"""The database at work: answers go in through one thread, and are acknowledged when they are safe.

One commit, one ``fsync``, may carry the answers of everybody who pressed a button meanwhile: a
slow disk then costs each of them one wait, not one wait a colleague.
"""

from __future__ import annotations

import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from likewise.errors import InputError, LikewiseError
from likewise.label.database import open_database

MAX_BATCH = 256
# Answers go to SQLite's log first. They are moved to the file itself when nobody has answered for
# a moment, and now and then however busy it is: so that a copy of the file is a backup.
IDLE_SECONDS = 0.2
BUSY_SECONDS = 2.0
LOOKED_AT = 64  # items whose content is noted, where they go by a number only
Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], Result]
# An answer as the page sends it, and as the database keeps it.
ANSWERS: dict[str, int | None] = {"same": 1, "different": 0, "unsure": None}


class AnswerConflict(LikewiseError):
    """The pair already has another answer of this person, or there is nothing to take back."""


class DatabaseLost(LikewiseError):
    """The file is no longer where it was: what is written now, nobody would find again."""


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


@dataclass(frozen=True)
class _Task(Generic[Result]):
    work: Work[Result]
    """What to do with the database."""
    done: Future[Result]
    """Whoever waits for it."""
    writes: bool
    """Whether it must not be acknowledged where the file is lost."""


class Store:
    """Judgements in SQLite, written by one thread; every method may be called from any thread."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection = open_database(path)
        self.key: bytes = self._connection.execute(
            "SELECT value FROM meta WHERE key = 'key'"
        ).fetchone()[0]
        self._place = _identity(self.path)
        self._is_copied, self._copied_at = False, time.monotonic()
        self._tasks: queue.SimpleQueue[_Task[object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="likewise-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what was submitted and close the file."""
        if self._thread.is_alive():
            self._tasks.put(None)
            self._thread.join()
            self._connection.close()

    def keep_items(
        self, ids: Sequence[str], looks: Callable[[Sequence[str]], Mapping[str, str]] | None = None
    ) -> None:
        """Note which items are offered; refused where the answers so far are about other ones.

        ``looks`` gives digests of the items of some ids, for items that go by a number and could
        be anything.
        """
        try:
            self._submit(lambda db: _keep_items(db, self.path, ids, looks), writes=True).result()
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be written: {error}.") from error

    def record(self, annotator: str, left: str, right: str, same: int | None) -> Future[int]:
        """Store one answer; the result, its id, comes when it is durable.

        Sending the same answer again (a retry after a lost reply) gives the same id; another
        answer to the same pair is an `AnswerConflict`.
        """
        return self._submit(lambda db: _record(db, annotator, left, right, same), writes=True)

    def undo(self, annotator: str, judgement: int) -> Future[int]:
        """Take back an answer, the person's own; doing so again (a retry) changes nothing."""
        return self._submit(lambda db: _undo(db, annotator, judgement), writes=True)

    def history(self, annotator: str) -> Future[History]:
        """Everything that one person answered."""
        return self._submit(lambda db: _history(db, annotator))

    def count(self) -> int:
        """The number of standing answers of everybody."""
        count: int = self._submit(
            lambda db: db.execute("SELECT count(*) FROM judgements").fetchone()[0]
        ).result()
        return count

    def _submit(self, work: Work[Result], writes: bool = False) -> Future[Result]:
        done: Future[Result] = Future()
        self._tasks.put(_Task(work, done, writes))  # type: ignore[arg-type]
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

    def _next_batch(self) -> list[_Task[object]] | None:
        """All tasks that are waiting, at least one; None once the store is closed and empty."""
        first = self._next_task()
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

    def _next_task(self) -> _Task[object] | None:
        """The next task; while there is none, answers are moved from the log to the file."""
        while not self._is_copied:
            due = self._copied_at + BUSY_SECONDS - time.monotonic()
            try:
                return self._tasks.get(timeout=max(0.0, min(IDLE_SECONDS, due)))
            except queue.Empty:
                self._copy_to_file()
        return self._tasks.get()

    def _copy_to_file(self) -> None:
        """Move the log's content to the file, as far as no reader still needs the old one."""
        self._copied_at = time.monotonic()
        with suppress(sqlite3.Error):  # a full disk: the log is safe, and the next answer will say
            busy, logged, moved = self._connection.execute("PRAGMA wal_checkpoint").fetchone()
            self._is_copied = not busy and logged == moved

    def _commit(self, batch: list[_Task[object]]) -> list[object]:
        """A result, or the exception, of each task; what writes is refused once the file is lost.

        Looked at before and after: a file that went away meanwhile took the answers with it.
        """
        if any(task.writes for task in batch):
            self._is_copied = False
        outcomes = self._transact(batch)
        if _identity(self.path) != self._place:
            lost = DatabaseLost(f"{self.path} was removed, renamed or replaced while in use.")
            return [lost if task.writes else o for task, o in zip(batch, outcomes, strict=True)]
        return outcomes

    def _transact(self, batch: list[_Task[object]]) -> list[object]:
        """Do all tasks in one transaction; a result, or the exception of each.

        A task that fails takes back only its own changes. A commit that fails (a full disk) fails
        every task: nobody is told that an answer is safe when it is not.
        """
        db, outcomes = self._connection, list[object]()
        is_lost = _identity(self.path) != self._place
        try:
            db.execute("BEGIN IMMEDIATE")
            for task in batch:
                if is_lost and task.writes:
                    outcomes.append(None)  # `_commit` says why
                    continue
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


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies there; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _keep_items(
    db: sqlite3.Connection,
    path: Path,
    ids: Sequence[str],
    looks: Callable[[Sequence[str]], Mapping[str, str]] | None,
) -> None:
    judged = {
        row[0]
        for row in db.execute('SELECT "left" FROM judgements UNION SELECT "right" FROM judgements')
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


def _keep_looks(
    db: sqlite3.Connection,
    path: Path,
    ids: Sequence[str],
    looks: Callable[[Sequence[str]], Mapping[str, str]],
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
