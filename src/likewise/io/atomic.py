"""Files that are there whole or not at all: a temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from likewise.errors import InputError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well."""
    temporary = _begin(path)
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        _remove(temporary)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` when the block ends well; ``path`` must be new."""
    check_vacant(path)
    temporary = _begin(path)
    try:
        temporary.mkdir()
        yield temporary
        # Some libraries keep what they write to its owner: who may read the folder reads it all.
        rights = stat.S_IMODE(temporary.stat().st_mode) & 0o666
        for file in temporary.rglob("*"):
            if file.is_file():
                file.chmod(rights)
                _sync(file)
        if path.exists():
            path.rmdir()  # empty, as checked
        os.rename(temporary, path)
        _sync(path.parent)
    finally:
        _remove(temporary)


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove temporary files and folders that a killed process left beside ``prefix``...."""
    if folder.is_dir():
        for path in folder.glob(f".{glob.escape(prefix)}*.tmp"):
            _remove(path)


def check_vacant(path: Path) -> None:
    """Refuse an output folder that already holds something."""
    if path.is_dir() and any(path.iterdir()):
        raise InputError(f"{path} already holds something; choose another name or empty it first.")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; choose another name for the output folder.")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise InputError(f"{path} cannot be made, because {above} is a file.")


def write_text(path: Path, text: str) -> None:
    """Text in UTF-8 with its line ends as they are: the same bytes on every system."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


def write_jsons(values: Mapping[Path, object]) -> None:
    """Several JSON files that belong together: all are written before the first takes its place."""
    with contextlib.ExitStack() as removal:
        temporaries = {}
        for path, value in values.items():
            temporaries[path] = temporary = _begin(path)
            removal.callback(_remove, temporary)
            temporary.write_bytes(_json(value).encode())
            _sync(temporary)
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
        for folder in {path.parent for path in values}:
            _sync(folder)


def write_json(
    path: Path, value: object, default: Callable[[object], object] | None = None
) -> None:
    """JSON with NaN refused: a file that every reader can read."""
    write_text(path, _json(value, default))


def _json(value: object, default: Callable[[object], object] | None = None) -> str:
    return json.dumps(value, indent=2, allow_nan=False, default=default) + "\n"


def _begin(path: Path) -> Path:
    """A name beside ``path`` for what is not whole yet; every file of ours begins here.

    It tells the machine and the process, so that what a killed one left can be removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_by_the_dead(path)
    return path.with_name(f".{path.name}.{_host()}{secrets.token_hex(2)}.{os.getpid()}.tmp")


def _remove_left_by_the_dead(path: Path) -> None:
    """Remove temporaries of this very path whose process, of this machine, is no more."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.{_host()}[0-9a-f]{{4}}\.(\d+)\.tmp")
    for other in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        found = ours.fullmatch(other.name)
        if found and not _is_alive(int(found[1])):
            _remove(other)


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:4]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # signal 0 asks only whether there is such a process
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
