"""One process at a time: a lock that its holder's death releases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from likewise.errors import InputError

_HAS_LOCKS = os.name == "posix"  # on Windows the lock is a comfort, not a promise


@contextmanager
def exclusive(path: Path, refusal: str) -> Iterator[None]:
    """Hold the lock of ``path`` (a file beside it), or say that another process holds it.

    ``refusal`` ends the sentence that begins with the path. The lock is the system's, not the
    file's presence: after a kill it is free.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first.")
    lock = target.with_name(f".{target.name}.lock")
    descriptor = _acquire(lock)
    if descriptor is None:
        raise InputError(f"{path} {refusal}")
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def _acquire(lock: Path) -> int | None:
    """The descriptor that holds the lock; None where somebody else does."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        if not _HAS_LOCKS:
            return descriptor
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        # Its last holder may have removed the file between our opening and our locking it.
        with suppress(FileNotFoundError):
            if os.stat(lock).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)
