"""What a malformed input is: a name, and how to make the command line that meets it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bench:
    """Good inputs that a case may spoil: a fitted run, and the items and judgements behind it."""

    folder: Path  # the case's own, empty
    run: Path
    items: Path
    pairs: Path

    def write(self, name: str, content: bytes | str) -> Path:
        """A file in the case's own folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


Make = Callable[[Bench], list[str | Path]]


@dataclass(frozen=True)
class Case:
    """A malformed input; ``make`` writes its files and returns the command line."""

    name: str
    make: Make


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return (Path.touch, (self.mark,))


def bomb(bench: Bench, protocol: int = 4) -> bytes:
    """A pickle that leaves the mark ``exploded`` in the case's folder when it is opened."""
    return pickle.dumps(Bomb(bench.folder / "exploded"), protocol)
