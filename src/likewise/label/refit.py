"""A model that chooses the questions, fitted in a process of its own.

A process and not a thread: a fit keeps the interpreter busy, and answers would wait for it. The
child runs at low priority and gets the judgements so far on its standard input; its last line of
output is the pairs to ask, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.errors import InputError
from likewise.pairs.formats.label_database import Answers

if TYPE_CHECKING:
    from likewise.items.files import ItemFile

COUNT = 500  # suggestions at a time
NICENESS = 10


@dataclass
class ModelSuggester:
    """A suggester (see `likewise.label.suggesting`) that fits a classifier to the answers."""

    items: str | Path
    """What `likewise fit` takes: pictures, or a table or array of numbers."""
    classes: int | str = "auto"
    """How many there are, or "auto"."""
    id_column: str | None = None
    """The column of a table that names the items."""
    image_size: int = 32
    """Pixels a side to which pictures are scaled."""
    command: Sequence[str] = (sys.executable, "-m", "likewise.label.refit")
    """The child process, which reads a task from its input and writes pairs to its output."""
    _child: subprocess.Popen[str] | None = field(default=None, init=False, repr=False)

    def __call__(self, judgements: Answers) -> list[tuple[str, str]]:
        """Pairs of item ids, the most telling first."""
        task = {
            "items": str(self.items),
            "classes": self.classes,
            "id_column": self.id_column,
            "image_size": self.image_size,
            "judgements": judgements,
        }
        pipe = subprocess.PIPE
        with subprocess.Popen(
            list(self.command), stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as child:
            self._child = child
            output, errors = child.communicate(json.dumps(task))
        if child.returncode != 0:
            lines = errors.strip().splitlines() or [f"status {child.returncode}"]
            raise InputError(f"the model could not be fitted: {lines[-1]}")
        return [(str(left), str(right)) for left, right in json.loads(output.splitlines()[-1])]

    def check(self) -> None:
        """Raise `InputError` where the items of a file are not numbers, before anybody judges."""
        if not Path(self.items).is_dir():
            _read_items(self.items, self.id_column, self.image_size)

    def close(self) -> None:
        """End a fit that is under way."""
        if self._child is not None and self._child.poll() is None:
            self._child.kill()


def choose_pairs(task: dict[str, Any]) -> list[tuple[str, str]]:
    """Fit a classifier to the judgements of a task and let it choose."""
    from likewise.active.suggestion import suggest
    from likewise.classifier import SimilarityClassifier
    from likewise.pairs import Pairs

    data = _read_items(task["items"], task["id_column"], task["image_size"])
    names = [str(name) for name in data.names]
    position = {name: k for k, name in enumerate(names)}
    columns = task["judgements"]
    known = [
        row
        for row in zip(*(columns[n] for n in ("left", "right", "same", "annotator")), strict=True)
        if row[0] in position and row[1] in position and row[2] is not None
    ]
    pairs = Pairs(
        [position[row[0]] for row in known],
        [position[row[1]] for row in known],
        [row[2] for row in known],
        [row[3] for row in known],
        n_items=len(names),
    )
    model = SimilarityClassifier(task["classes"], random_state=0, device="cpu", verbose=False)
    model.fit(data.items, pairs)
    return [(names[i], names[j]) for i, j in suggest(model, data.items, pairs, COUNT)]


def _read_items(path: str | Path, id_column: str | None, image_size: int) -> ItemFile:
    """As `likewise fit` reads them: few photographs, and texts, as features that take seconds."""
    from likewise.items.encoders.reading import Encoding, read_to_fit

    size = image_size if Path(path).is_dir() else None
    return read_to_fit(path, Encoding(), id_column=id_column, image_size=size).data


def main() -> int:
    """The child: a task on standard input, pairs on standard output."""
    import torch

    if hasattr(os, "nice"):
        os.nice(NICENESS)
    torch.set_num_threads(1)
    try:
        pairs = choose_pairs(json.load(sys.stdin))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"\n{json.dumps(pairs)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
