"""The database at work: answers go in through one thread, and are acknowledged when they are safe.

One commit, one ``fsync``, may carry the answers of everybody who pressed a button meanwhile: a
slow disk then costs each of them one wait, not one wait a colleague.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from likewise.errors import InputError, LikewiseError
from likewise.label import statements
from likewise.label.database import open_database
from likewise.label.statements import History

MAX_BATCH = 256
# Answers go to SQLite's log first. They are moved to the file itself when nobody has answered for
# a moment, and now and then however busy it is: so that a copy of the file is a backup.
IDLE_SECONDS = 0.2
BUSY_SECONDS = 2.0
Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], Result]


class DatabaseLost(LikewiseError):
    """The file is no longer where it was: what is written now, nobody would find again."""


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

    def keep_items(self, ids: Sequence[str], looks: statements.Looks | None = None) -> None:
        """Note which items are offered; refused where the answers so far are about other ones.

        ``looks`` gives digests of the items of some ids, for items that go by a number and could
        be anything.
        """
        try:
            self.submit(
                lambda db: statements.keep_items(db, self.path, ids, looks), writes=True
            ).result()
        except sqlite3.Error as error:
            raise InputError(f"{self.path} cannot be written: {error}.") from error

    def record(
        self, annotator: str, left: str, right: str, same: int | None, expected: int | None = None
    ) -> Future[int]:
        """Store one answer; the result, its id, comes when it is durable.

        Where the ``expected`` answer is known, it is kept apart from the others.

        Sending the same answer again (a retry after a lost reply) gives the same id; another
        answer to the same pair is an `AnswerConflict`.
        """
        return self.submit(
            lambda db: statements.record(db, annotator, left, right, same, expected), writes=True
        )

    def undo(self, annotator: str, judgement: int) -> Future[int]:
        """Take back an answer, the person's own; doing so again (a retry) changes nothing."""
        return self.submit(lambda db: statements.undo(db, annotator, judgement), writes=True)

    def history(self, annotator: str) -> Future[History]:
        """Everything that one person answered."""
        return self.submit(lambda db: statements.history(db, annotator))

    def count(self) -> int:
        """The number of standing answers of everybody."""
        count: int = self.submit(
            lambda db: db.execute(
                "SELECT (SELECT count(*) FROM judgements) + (SELECT count(*) FROM gold)"
            ).fetchone()[0]
        ).result()
        return count

    def submit(self, work: Work[Result], writes: bool = False) -> Future[Result]:
        """Do some work within a transaction; what ``writes`` is acknowledged once it is durable."""
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
            if due > 0:
                with suppress(queue.Empty):
                    return self._tasks.get(timeout=min(IDLE_SECONDS, due))
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
