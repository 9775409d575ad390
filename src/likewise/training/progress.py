"""Progress on stderr: a bar with a share done and a time to go, or a line a stage.

A bar where somebody is looking; lines where stderr is a file and the command line asks for them.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from likewise.io.progress import has_listener, listening
from likewise.io.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress

MOMENT = 1.0  # seconds that a job may take without a line about it
SETTLING = 1.0  # seconds before a time to go is worth saying


@contextlib.contextmanager
def progress_shown(show: bool, lines: bool = False) -> Iterator[None]:
    """Show how far all is that happens inside; where somebody outside shows it, leave it to them.

    ``lines``: where stderr is no terminal, one line for each stage.
    """
    if not show or has_listener():
        yield
    elif not sys.stderr.isatty():
        with listening(StageLines()) if lines else contextlib.nullcontext():
            yield
    else:
        with _bar() as bar, listening(ProgressBar(bar)):
            yield


class StageLines:
    """One line for each stage, with the share that is done when it begins.

    A job of a moment, or one that ends in a mistake at once, has none: the first lines wait.
    """

    def __init__(self) -> None:
        self._done, self._said = 0.0, ""
        self._began, self._waiting = time.monotonic(), list[str]()

    def stage(self, words: str) -> None:
        if words != self._said:
            self._waiting.append(f"[{self._done:4.0%}] {printable(words)}\n")
        self._said = words
        self._write()

    def share(self, done: float) -> None:
        self._done = done
        self._write()

    def _write(self) -> None:
        if self._waiting and time.monotonic() - self._began >= MOMENT:
            sys.stderr.write("".join(self._waiting))
            sys.stderr.flush()
            self._waiting.clear()


class ProgressBar:
    """A bar of rich's, the share in per cent, and the time to go by the pace so far."""

    def __init__(self, bar: Progress) -> None:
        self._bar, self._task = bar, bar.add_task("reading", total=1.0)

    def stage(self, words: str) -> None:
        self._bar.update(self._task, description=printable(words))

    def share(self, done: float) -> None:
        self._bar.update(self._task, completed=done)


class Pace:
    """The time to go by how fast the share has grown of late: stages differ in their pace."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque([(0.0, 0.0)])  # (seconds, share)

    def time_to_go(self, elapsed: float, done: float) -> str:
        """In words; nothing where there is no pace yet."""
        if done > self._seen[-1][1]:
            self._seen.append((elapsed, done))
        while len(self._seen) > 2 and self._seen[1][0] <= elapsed / 2:  # the later half counts
            self._seen.popleft()
        since, before = self._seen[0]
        if done <= before:
            since, before = 0.0, 0.0
        if done <= 0 or elapsed < SETTLING:
            return ""
        return f"about {in_words((elapsed - since) * (1 - done) / (done - before))} to go"


def in_words(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TaskProgressColumn,
        TextColumn,
    )
    from rich.text import Text

    pace = Pace()

    class TimeToGo(ProgressColumn):
        """Drawn anew all the time: it grows while nothing moves."""

        def render(self, task: Task) -> Text:
            return Text(pace.time_to_go(task.elapsed or 0.0, task.completed))

    words = TextColumn("{task.description}", markup=False)
    columns = (words, BarColumn(bar_width=24), TaskProgressColumn(), TimeToGo())
    return Progress(*columns, console=Console(stderr=True), transient=True)
