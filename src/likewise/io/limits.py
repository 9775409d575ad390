"""How much memory one input may take beyond its own size, known before the memory is taken."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError

VARIABLE = "LIKEWISE_MAX_GB"
DEFAULT_GB = 2.0


def memory_limit() -> int:
    """Bytes that reading one input may take beyond what it holds on disk."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return int(DEFAULT_GB * 1e9)
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = math.nan
    if not 0 < gigabytes < 1e9:
        raise InputError(f"{VARIABLE} must be a number of gigabytes, such as 8, but is {text!r}.")
    return int(gigabytes * 1e9)


def check_memory(what: str, needed: int, on_disk: int = 0, *, instead: str = "") -> None:
    """Refuse what would take more than the limit, in a sentence that says how to allow it.

    ``what`` begins the sentence, ``on_disk`` is the input's own size, ``instead`` is what else a
    person could do.
    """
    limit = memory_limit()
    if needed - on_disk <= limit:
        return
    raise InputError(
        f"{what} would take {needed / 1e9:,.1f} GB of memory, more than the {limit / 1e9:g} GB "
        f"allowed beyond the size of a file; {instead + ', or ' if instead else ''}set "
        f"{VARIABLE}={math.ceil((needed - on_disk) / 1e9)} to allow it."
    )


def text_array(values: Sequence[str], what: str) -> NDArray[np.str_]:
    """(n,) texts as NumPy keeps them: each takes as much as the longest, so that is bounded."""
    longest = max(map(len, values), default=0)
    check_memory(
        f"{what}: {len(values):,} texts of up to {longest:,} characters",
        4 * longest * len(values),
        4 * sum(map(len, values)),  # what they would take without padding
        instead="shorten the longest",
    )
    return np.array(values, np.str_)
