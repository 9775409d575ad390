"""The command line: parses, calls, prints.

Results go to stdout (a table, or with --json one JSON object), everything else to stderr. The exit
status is 0, 2 for a person's mistake, 1 for anything else. Commands import what they need when
they run, so that help and mistakes in typing cost no seconds.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

import typer

from likewise.cli import data, embed, fit, groups, labelling, models, pages, revise, studies
from likewise.cli.app import app
from likewise.cli.output import complain, say
from likewise.errors import InputError, LikewiseError

__all__ = ["app", "main"]

for part in (studies, data, groups, embed, fit, models, revise, pages, labelling):
    part.register(app)

# What a file that a person named cannot be, whatever is done about the disk.
IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR, errno.EINVAL)
LONGEST_SHOWN = 80  # characters of a file's name
UsageError: Any = typer.BadParameter.__mro__[1]  # click's, wherever typer keeps it


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and end the process with its exit status."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status, having said in one line what went wrong."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            status = _command()(
                args=None if arguments is None else list(arguments), standalone_mode=False
            )
        except KeyboardInterrupt:
            return complain("stopped.", 1)
        except Exception as error:
            return _status_of(error)
    return status if isinstance(status, int) else 0


@functools.cache
def _command() -> Any:
    """Click's command, which typer would otherwise make anew of all signatures at each call."""
    return typer.main.get_command(app)


def _status_of(error: Exception) -> int:
    if isinstance(error, UsageError):
        return complain(f"{error.format_message()} (likewise --help shows how)", 2)
    if isinstance(error, InputError | FileNotFoundError | PermissionError | NotADirectoryError):
        return complain(str(error), 2)  # what opening a file that a person named can raise
    if isinstance(error, OSError) and error.errno in IMPOSSIBLE:
        shown = str(error.filename)
        shown = shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."
        return complain(f"{shown}: {str(error.strerror).lower()}; choose another name.", 2)
    if isinstance(error, LikewiseError):
        return complain(str(error), 1)
    if isinstance(error, BrokenPipeError):  # a reader such as head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if os.environ.get("LIKEWISE_DEBUG"):
        raise error
    if isinstance(error, OSError) and error.strerror:  # a full disk, a name that is too long ...
        about = f"{error.filename}: " if error.filename else ""
        return complain(f"{about}{error.strerror.lower()}; nothing was left half written.", 1)
    if isinstance(error, MemoryError):
        return complain("there is not enough memory for this; give fewer or smaller items.", 1)
    told = f"unexpected {type(error).__name__}: {error}"
    return complain(f"{told} (set LIKEWISE_DEBUG=1 to see where)", 1)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"warning: {' '.join(str(message).split())}")
