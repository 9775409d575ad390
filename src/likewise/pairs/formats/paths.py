"""Files and folders by their names: those of ours, and those that the system refuses."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likewise.errors import InputError

# The user's mistakes, each with what it says; a full disk or a lost one is not among them.
_REFUSED = {
    errno.ENAMETOOLONG: "its name is longer than the system allows",
    errno.ELOOP: "it is a link that leads back to itself",
    errno.ENOTDIR: "a part of its path is a file and no folder",
    errno.EACCES: "permission is denied",
}

COMPACT_MANIFEST = "compact.json"


def is_compact(path: Path) -> bool:
    """Whether ``path`` is a folder that ``likewise compact`` finished."""
    return (path / COMPACT_MANIFEST).is_file()


@contextmanager
def path_errors(path: Path) -> Iterator[None]:
    """Say of a file that cannot be opened or made what is wrong with its name or place."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        name = path.name if len(path.name) <= 60 else f"{path.name[:40]}..."
        raise InputError(f"the file {name} cannot be used: {_REFUSED[error.errno]}.") from error
