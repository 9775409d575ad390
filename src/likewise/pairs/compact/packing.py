"""A judgement as one whole number, so that sorting brings repeats together.

From the highest bit down: the smaller item, the larger, the person, the answer. The smaller item's
highest bits are left to the number of the *bucket* that a judgement is in: a bucket is a range of
items, small enough to be sorted in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError

Keys = NDArray[np.uint64]

BUCKET_ROWS = 1 << 23
"""Judgements that a bucket holds, about: 64 MB of numbers."""
MAX_BUCKET_BITS = 12  # thousands of files at most


@dataclass(frozen=True)
class Packing:
    """Where the bits of a packed judgement are."""

    item_bits: int
    """Of an item."""
    person_bits: int
    """Of a person; 0 where judgements do not say who gave them."""
    bucket_bits: int
    """Of a bucket: the highest of the smaller item."""

    @classmethod
    def for_table(cls, n_items: int, n_people: int, rows: int) -> Packing:
        """For ``rows`` judgements about ``n_items`` items by ``n_people`` people."""
        item = _bits(n_items)
        person = max(_bits(n_people), 1) if n_people else 0
        needed = 2 * item + person + 1 - 64
        wanted = min(_bits(-(-rows // BUCKET_ROWS)), item)
        if needed > min(MAX_BUCKET_BITS, item):
            raise InputError(
                f"{n_items:,} items and {n_people:,} people are more than one judgement's number "
                "can tell apart; leave the people out (a query without the column annotator)."
            )
        return cls(item, person, min(max(wanted, needed, 0), MAX_BUCKET_BITS))

    @property
    def n_buckets(self) -> int:
        """How many there are."""
        return 1 << self.bucket_bits

    @property
    def _local_bits(self) -> int:
        """Of the smaller item within its bucket."""
        return self.item_bits - self.bucket_bits

    def bucket_sql(self, low: str) -> str:
        """SQL for the bucket of a judgement whose smaller item is ``low``."""
        return f"({low} >> {self._local_bits})::USMALLINT"

    def key_sql(self, low: str, high: str, person: str, same: str) -> str:
        """SQL for a judgement's number within its bucket."""
        local = f"({low} & {(1 << self._local_bits) - 1})::UBIGINT"
        people = f"({person}::UBIGINT << 1)" if self.person_bits else "0::UBIGINT"
        shift = self.person_bits + 1
        return (
            f"({local} << {self.item_bits + shift}) | ({high}::UBIGINT << {shift}) | {people} | "
            f"({same})::UBIGINT"
        )

    def unpack(self, key: Keys, bucket: int) -> dict[str, NDArray[np.generic]]:
        """The columns (n,) of judgements of one bucket."""
        one = np.uint64(1)
        item_mask = np.uint64((1 << self.item_bits) - 1)
        person_mask = np.uint64((1 << self.person_bits) - 1)
        shift = self.person_bits + 1
        local = (key >> np.uint64(self.item_bits + shift)).astype(np.int32)
        columns: dict[str, NDArray[np.generic]] = {
            "left": local + np.int32(bucket << self._local_bits),
            "right": ((key >> np.uint64(shift)) & item_mask).astype(np.int32),
            "same": (key & one).astype(bool),
        }
        if self.person_bits:
            columns["annotator"] = ((key >> one) & person_mask).astype(np.int32)
        return columns


def by_bucket(
    bucket: NDArray[np.uint16], columns: Sequence[NDArray[np.generic]], n_buckets: int
) -> list[tuple[int, list[NDArray[np.generic]]]]:
    """Rows (n,) of ``columns`` by their bucket: ``(bucket, their columns)`` for each that has any.

    Sixteen-bit numbers are sorted by radix, in time that grows as the rows do.
    """
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=n_buckets))
    ordered = [column[order] for column in columns]
    starts = np.concatenate([[0], ends[:-1]])
    return [
        (int(k), [column[starts[k] : ends[k]] for column in ordered])
        for k in np.flatnonzero(ends > starts)
    ]


def merged(key: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Sorted keys once each, and where each first stood (u,); ``key`` (n,) must be sorted."""
    if not len(key):
        return key, np.empty(0, np.int64)
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    return key[first], first


def _bits(count: int) -> int:
    """That tell ``count`` things apart."""
    return max(count - 1, 0).bit_length()
