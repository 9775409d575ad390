"""Text lists of image files, as Clothing1M and Food-101 publish them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that hold anything."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path} is missing: this list belongs to the data set.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file ({error.reason}).") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path} is empty.")
    return lines


def read_key_values(path: Path) -> dict[str, int]:
    """Lines ``image/path.jpg 7`` as a mapping."""
    table: dict[str, int] = {}
    for line in read_lines(path):
        key, _, value = line.rpartition(" ")
        if not key or not value.isdigit():
            raise InputError(f"{path}: expected 'image class' in each line, but found {line!r}.")
        table[key.strip()] = int(value)
    return table


def inside(root: Path, key: str) -> str:
    """The path of a listed image; refuses keys that would lead out of the data folder."""
    pure = PurePosixPath(key)
    if pure.is_absolute() or ".." in pure.parts:
        raise InputError(f"a list names {key!r}, which lies outside {root}.")
    return str(root / pure)


def path_array(paths: Sequence[str]) -> NDArray[np.str_]:
    """(N,) array of paths."""
    return np.array(list(paths), dtype=np.str_)
