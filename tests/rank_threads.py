"""Processes that have judgements between them, as threads of this one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")


class Threads:
    """An exchange between threads, which stand for processes."""

    def __init__(self, rank: int, world: int, barrier: threading.Barrier, board: list) -> None:
        self.rank, self.world, self._barrier, self._board = rank, world, barrier, board

    def gather_rows(self, local: NDArray) -> NDArray:
        self._board[self.rank] = local
        self._barrier.wait(60)
        found = np.concatenate(self._board)
        self._barrier.wait(60)
        return found


def on_ranks(world: int, work: Callable[[Threads], Result]) -> list[Result]:
    """What each of ``world`` ranks makes of it."""
    barrier, board = threading.Barrier(world), [np.empty(0)] * world
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(Threads(rank, world, barrier, board))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next(e for e in errors if not isinstance(e, threading.BrokenBarrierError))
    return [results[rank] for rank in range(world)]
