"""The answers about each pair, of more judgements than memory holds: sorted in buckets on disk.

What `likewise.pairs.triangles.PairIndex` is for judgements in memory. A bucket holds the judgements
whose smaller item lies in one range; all questions are asked in one pass over the buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.agreement import Agreement, PeoplesAnswers
from likewise.pairs.columns import Column, IndexArray
from likewise.pairs.compact.packing import by_bucket
from likewise.pairs.edges import chunks
from likewise.pairs.stream import Piece
from likewise.pairs.triangles import PairIndex

Codes = NDArray[np.int64]

BUCKET = 1 << 25
"""Judgements that a bucket holds, about: they are sorted in memory."""
SPLIT = 1 << 22  # judgements split into buckets at a time: these stay in the cache
MASK = (1 << 20) - 1  # of a bitmap that tells at once of most pairs that they are not looked for


@dataclass(frozen=True)
class Answers:
    """What the buckets hold, in one pass."""

    distinct: int
    """Pairs that were judged."""
    both: int
    """Pairs that got both answers."""
    shares: NDArray[np.float64]
    """Share of "same" among the answers about each pair that was asked for; NaN: not judged."""
    agreement: Agreement | None
    """Between people, where there are any."""


class StreamedPairIndex:
    """Buckets of judgements in a folder; `add` all, then `ask` once."""

    def __init__(self, folder: Path, n_items: int, judgements: int) -> None:
        self._folder, self._n_items = folder, n_items
        self._n_buckets = max(min(-(-judgements // BUCKET), 1 << 15), 1)
        self._width = -(-n_items // self._n_buckets)

    def add(self, piece: Piece) -> None:
        """Write judgements to their buckets, in their order."""
        for part in chunks(len(piece), SPLIT):
            left, right = piece.left[part], piece.right[part]
            low = np.minimum(left, right)
            key = 2 * self.code(left, right) + piece.same[part]
            columns: list[Column] = [key]
            if piece.annotator is not None:
                columns.append(piece.annotator[part])
            bucket = (low // self._width).astype(np.uint16)
            for number, values in by_bucket(bucket, columns, self._n_buckets):
                for kind, column in zip(("key", "person"), values, strict=False):
                    with (self._folder / f"{number:05d}.{kind}").open("ab") as file:
                        column.tofile(file)

    def code(self, a: IndexArray, b: IndexArray) -> Codes:
        """(n,) one number for each unordered pair."""
        return np.minimum(a, b).astype(np.int64) * self._n_items + np.maximum(a, b)

    def ask(self, pairs: Codes) -> Answers:
        """Sort every bucket, count, and look the ``pairs`` (codes) up; the buckets are removed."""
        distinct = both = 0
        shares = np.full(len(pairs), np.nan)
        people = PeoplesAnswers()
        home = pairs // self._n_items // self._width
        for number, key, person in self._buckets():
            unsorted = key if person is None else key.copy()
            index = PairIndex.of_keys(key, self._n_items)
            counted = index.count()
            distinct, both = distinct + counted[0], both + counted[1]
            here = home == number
            shares[here] = index.share(pairs[here])
            if person is not None:
                self._add_people(people, unsorted, person, index.repeated())
        return Answers(distinct, both, shares, people.agreement())

    def _add_people(
        self,
        people: PeoplesAnswers,
        key: Codes,
        person: NDArray[np.int32],
        repeated: Codes,
    ) -> None:
        """The answers about pairs that were judged more than once, which are few or near."""
        bitmap = np.zeros(MASK + 1, bool)
        bitmap[repeated & MASK] = True
        found = [np.empty(0, np.int64)]
        for part in chunks(len(key) if len(repeated) else 0, SPLIT):
            maybe = np.flatnonzero(bitmap[(key[part] >> 1) & MASK]) + part.start
            code = key[maybe] >> 1
            place = np.minimum(np.searchsorted(repeated, code), len(repeated) - 1)
            found.append(maybe[repeated[place] == code])
        rows = np.concatenate(found)
        people.add(key[rows] >> 1, person[rows], key[rows] & 1)

    def _buckets(self) -> Iterator[tuple[int, Codes, NDArray[np.int32] | None]]:
        for number in range(self._n_buckets):
            file = self._folder / f"{number:05d}.key"
            if not file.exists():
                continue
            names = file.with_suffix(".person")
            person = np.fromfile(names, np.int32) if names.exists() else None
            key = np.fromfile(file, np.int64)
            file.unlink()
            names.unlink(missing_ok=True)
            yield number, key, person
