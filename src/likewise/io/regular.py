"""Opening what a stranger named: a regular file, never a pipe or a device that has no end."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from likewise.errors import InputError

_MANY_EXTENTS = 10_000  # a file torn into more pieces than this is not one that hides its size


def open_regular(path: str | Path, *, follow_links: bool = True) -> BufferedReader:
    """The file opened for reading; a folder, pipe or device is refused in a sentence.

    Without ``follow_links`` a file that was swapped for a link is not followed.
    """
    # Without waiting: opening a pipe that nobody writes to would otherwise never return.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise InputError(f"{path} is missing; is it still there?") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be opened: {reason}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        refuse_irregular(path)
        raise InputError(f"{path} is not a file.")
    return os.fdopen(descriptor, "rb")


def refuse_irregular(path: str | Path) -> None:
    """Refuse a pipe, socket or device: these end when they like, and can be read only once."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # whoever opens it says what is wrong
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
    raise InputError(f"{path} is {what}, not a file; write its content to a file and give that.")


def hole_bytes(path: Path) -> int:
    """How much of a file's size is holes, which take no disk: a sparse file is small and large."""
    if not hasattr(os, "SEEK_HOLE"):
        return 0
    with open_regular(path) as file:
        descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size
        position = data = 0
        for _ in range(_MANY_EXTENTS):
            try:
                start = os.lseek(descriptor, position, os.SEEK_DATA)
                position = os.lseek(descriptor, start, os.SEEK_HOLE)
            except OSError:  # no data beyond this place
                return size - data
            data += position - start
    return 0
