"""How far a long job is: a share done, a stage in words, for whoever shows it.

The whole is an interval from 0 to 1. A stage takes a part of it and may divide that part further,
in whatever room its code lives: nobody passes anything on. Where nobody listens, nothing happens.
A loop that ends early jumps ahead; so shares are never too large, and estimates never too short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Listener(Protocol):
    """Whoever shows progress."""

    def stage(self, words: str) -> None:
        """What is done from here on."""

    def share(self, done: float) -> None:
        """How much of the whole is done, from 0 to 1."""


class _Span:
    """A part of the whole, and how far it is."""

    def __init__(self, listener: Listener, low: float, high: float) -> None:
        self.listener, self.low, self.high = listener, low, high
        self.position = low
        self.announced: tuple[str, float] | None = None

    def move(self, position: float) -> None:
        if position > self.position:
            self.position = min(position, self.high)
            self.listener.share(self.position)

    def next_part(self, share: float) -> _Span:
        """The next ``share`` of what this span has in all, as far as there is still so much."""
        until = min(self.position + share * (self.high - self.low), self.high)
        return _Span(self.listener, self.position, until)


_current: ContextVar[_Span | None] = ContextVar("progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener of all that happens inside."""
    token = _current.set(_Span(listener, 0.0, 1.0))
    try:
        yield
    finally:
        _current.reset(token)


def has_listener() -> bool:
    """Whether anybody is told already."""
    return _current.get() is not None


@contextmanager
def stage(words: str | None, share: float = 1.0) -> Iterator[None]:
    """A stage of the job at hand, which takes this share of it; without words, silently."""
    span = _current.get()
    if span is None:
        yield
        return
    if words:
        span.listener.stage(words)
    inner = span.next_part(share)
    token = _current.set(inner)
    try:
        yield
    finally:
        _current.reset(token)
    span.move(inner.high)


def tracked(items: Iterable[Item], words: str | None = None, *, of: int) -> Iterator[Item]:
    """The items of a loop, each an equal part of the job at hand; ``of`` is how many, at most."""
    span = _current.get()
    if span is None:
        yield from items
        return
    if words and of:
        span.listener.stage(words)
    low, width = span.position, (span.high - span.position) / max(of, 1)
    for number, item in enumerate(items):
        start = min(low + number * width, span.high)
        inner = _Span(span.listener, start, min(start + width, span.high))
        token = _current.set(inner)
        try:
            yield item
        finally:
            _current.reset(token)
        span.move(inner.high)
    span.move(span.high)


def advance(done: float) -> None:
    """The job at hand is done so far, from 0 to 1."""
    if (span := _current.get()) is not None:
        span.move(span.low + done * (span.high - span.low))


def announce(words: str, share: float) -> None:
    """What the next part, begun by other code with `announced`, is to be called, and takes."""
    if (span := _current.get()) is not None:
        span.announced = (words, share)


@contextmanager
def announced(words: str, share: float = 0.5) -> Iterator[None]:
    """A stage as it was announced; else called so, and of this share of what is left."""
    span = _current.get()
    if span is None:
        yield
        return
    said = span.announced or (words, share)
    span.announced = None
    left = (span.high - span.position) / max(span.high - span.low, 1e-12)
    with stage(said[0], said[1] * left):
        yield
