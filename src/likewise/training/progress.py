"""A progress bar on stderr, where somebody is looking."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Report = Callable[[dict[str, float]], None]


@contextlib.contextmanager
def epoch_bar(show: bool, label: str = "training") -> Iterator[Report | None]:
    """A callback for each epoch's figures; None where nothing is to be shown."""
    if not show or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label)

        def report(row: dict[str, float]) -> None:
            text = f"{label}: epoch {int(row['epoch']) + 1}, loss {row['loss']:.4f}"
            bar.update(task, description=f"{text}, held-out {row['held_out']:.4f}")

        yield report
