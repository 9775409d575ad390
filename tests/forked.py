"""A process of its own that begins at once: a copy of this one, in which a function runs.

For tests of what processes do to each other (signals, kills, locks, exit status), where a new
interpreter would spend seconds on importing PyTorch.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from likewise.cli import main


class Forked:
    """Runs ``action(*arguments)``; used as `subprocess.Popen` with both streams as pipes."""

    def __init__(
        self,
        action: Callable[..., object],
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_act, args=(action, arguments, to_out, to_err, environment or {}, folder)
        )
        self._process.start()
        os.close(to_out)
        os.close(to_err)
        self.stdout, self.stderr = (
            os.fdopen(out, encoding="utf-8"),
            os.fdopen(err, encoding="utf-8"),
        )

    @property
    def returncode(self) -> int | None:
        """As that of subprocess: the negative number of the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.pid is not None and self.returncode is None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Wait for its end; what it has written since it was last read, a few lines each."""
        self.wait(timeout)
        return self.stdout.read(), self.stderr.read()

    def wait(self, timeout: float = 60) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise TimeoutError(f"not done after {timeout} s")
        return self.returncode


def _act(
    action: Callable[..., object],
    arguments: tuple[object, ...],
    out: int,
    err: int,
    environment: Mapping[str, str],
    folder: Path | None,
) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    action(*arguments)


def print_line(text: str) -> None:
    """What a server may tell its address by."""
    print(text, flush=True)


def likewise(*arguments: object) -> str:
    """Run a command of ours in a process of its own, which must succeed; its output."""
    process = Forked(main, [str(argument) for argument in arguments])
    out, err = process.communicate(300)
    assert process.returncode == 0, err
    return out
