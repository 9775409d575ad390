"""Before hours of training: is there a place to write to, and is nobody else writing there?"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from likewise.errors import InputError
from likewise.io.atomic import check_vacant
from likewise.io.places import CHECKPOINTS, check_writable

LONGEST_ENDING = len(f".{CHECKPOINTS}.00000000.0000000.tmp")  # what is put around the name of a run
SPACE = 50 * 2**20  # bytes, of a small run with its checkpoints


def check_output(out: Path) -> None:
    """Refuse, in the first second, a place where no new folder can be written."""
    if out.name in ("", ".."):
        raise InputError(f"--out must name a new folder, not {str(out)!r}; such as runs/first.")
    if out.name.endswith(CHECKPOINTS):
        raise InputError(
            f"{out} would be taken for the checkpoints of {out.name.removesuffix(CHECKPOINTS)}; "
            "choose another name."
        )
    _check_length(out)
    if out.is_symlink() and not out.exists():
        raise InputError(f"{out} is a link to something that is not there; choose another name.")
    check_vacant(out)
    above = next(parent for parent in out.absolute().parents if parent.exists())
    check_writable(out, above)
    _check_space(out, above)


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold a lock on an output folder; refused while another process holds it.

    The lock is the kernel's: it goes when its process does, however that ends.
    """
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    path = out.with_name(f".{out.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "unknown"
            raise InputError(
                f"another fit (process {who}) is writing to {out}; wait until it is done, or "
                "choose another name for --out."
            ) from None
        except OSError:  # a file system without locks, such as some network drives
            yield
            return
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def remove_own_leftovers(out: Path) -> None:
    """Remove what a killed process left of this very folder, and of none with a longer name."""
    ours = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}(\.\d+)?\.tmp")
    if out.parent.is_dir():
        for path in out.parent.iterdir():
            if ours.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)


def _check_length(out: Path) -> None:
    above = next(parent for parent in out.absolute().parents if _exists(parent))
    try:
        most = os.pathconf(above, "PC_NAME_MAX")
    except (OSError, ValueError, AttributeError):
        most = 255
    for part in out.parts:
        if any(0xD800 <= ord(letter) < 0xE000 for letter in part):  # bytes that are no text
            raise InputError(
                f"the name {part!r} is not text in UTF-8, which a run must be able to write down; "
                "choose another one."
            )
        room = most - (LONGEST_ENDING if part == out.name else 0)
        if len(os.fsencode(part)) > room:
            raise InputError(
                f"the name {part[:20]}... has {len(os.fsencode(part))} bytes, but at most {room} "
                "can be used here; choose a shorter one."
            )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long to ask for
        return False


def _check_space(out: Path, above: Path) -> None:
    free = shutil.disk_usage(above).free
    if free < SPACE:
        raise InputError(
            f"only {free / 2**20:.0f} MiB are free where {out} would be, and a run needs about "
            f"{SPACE // 2**20}; make room, or choose another place for --out."
        )
