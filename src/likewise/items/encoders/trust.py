"""Where this machine keeps features and its memory of programs that a person has named."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from likewise.io.atomic import write_text

VARIABLE = "LIKEWISE_CACHE"
_named: set[str] = set()  # in this process, where nothing can be written


def cache_folder() -> Path:
    """Features that were computed before, by encoder; may be removed at any time."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "likewise"


def trust(sha256: str) -> None:
    """Remember that a person on this machine has asked for this program."""
    _named.add(sha256)
    with contextlib.suppress(OSError):
        write_text(cache_folder() / "trusted" / sha256, "")


def is_trusted(sha256: str) -> bool:
    """Whether a person on this machine has asked for this program before."""
    is_digest = len(sha256) == 64 and sha256.isalnum()
    return sha256 in _named or (is_digest and (cache_folder() / "trusted" / sha256).exists())
