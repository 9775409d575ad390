"""Small matrices by one thread: sharing them out costs more than it saves, many times more where
other work keeps the cores busy."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

P = ParamSpec("P")
R = TypeVar("R")


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The same, while linear algebra has one thread."""

    @wraps(function)
    def limited(*arguments: P.args, **named: P.kwargs) -> R:
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*arguments, **named)

    return limited
