"""As many threads as the work is worth.

The operations of a small fit take microseconds each. Threads that meet after every one of them
gain nothing, and where other programs keep the cores busy each meeting waits for the scheduler:
fits then take ten times as long and more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.pairs import Pairs

# Up to here one thread is enough: numbers in all items together, and listed judgements.
FEW_NUMBERS = 1 << 20
FEW_JUDGEMENTS = 100_000


def is_small(items: NDArray[np.generic], pairs: Pairs) -> bool:
    """Whether a fit to these features (N, d) and judgements consists of small operations only."""
    few = pairs.is_complete or len(pairs) <= FEW_JUDGEMENTS
    return items.ndim == 2 and items.size <= FEW_NUMBERS and few


@contextlib.contextmanager
def one_thread(when: bool) -> Iterator[None]:
    """Where asked for, torch on one thread for a while, and then on as many as before."""
    before = torch.get_num_threads()
    if not when or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
