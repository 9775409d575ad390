"""Better questions as answers come in: a model is fitted again in the background.

A suggester is any callable that takes the judgements so far (the columns of `read_judgements`) and
gives pairs of item ids, the most telling first; if it has a method ``close``, that is called at the
end. It runs in a thread of its own: answers never wait for it, and when it fails the questions are
simply random.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from likewise.label.pairing import encode
from likewise.pairs.formats.label_database import Answers, read_judgements

logger = logging.getLogger(__name__)

Suggester = Callable[[Answers], Sequence[tuple[str, str]]]

FIRST_AT = 50  # answers before the first fit
GROWTH = 1.2  # fit again when there are so many times as many
MAX_SUGGESTIONS = 2000


class BackgroundSuggestions:
    """The newest suggestions, as pair codes; `notify` of each answer, and `stop` at the end."""

    def __init__(
        self,
        suggester: Suggester,
        database: Path,
        index: Mapping[str, int],
        *,
        first_at: int = FIRST_AT,
    ) -> None:
        self.codes: Sequence[int] = ()
        self._suggester, self._database, self._index = suggester, database, index
        self._next_at, self._count = first_at, 0
        self._wake, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="likewise-suggest", daemon=True)
        self._thread.start()

    def notify(self, count: int) -> None:
        """Say how many answers there are now; returns at once."""
        self._count = count
        if count >= self._next_at:
            self._wake.set()

    def stop(self) -> None:
        """Ask the thread to end; a fit that is under way is ended or left, not waited for."""
        self._stopping = True
        self._wake.set()
        if (close := getattr(self._suggester, "close", None)) is not None:
            close()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            self._next_at = max(int(self._count * GROWTH), self._count + 10)
            try:
                pairs = self._suggester(read_judgements(self._database))
                self.codes = self._encode(pairs)
            except Exception as error:  # whatever a model may raise, people go on judging
                if not self._stopping:
                    logger.warning("no suggestions, the questions stay as they are: %s", error)

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        known = (
            (self._index[left], self._index[right])
            for left, right in pairs[:MAX_SUGGESTIONS]
            if left in self._index and right in self._index
        )
        return [encode(left, right) for left, right in known if left != right]
