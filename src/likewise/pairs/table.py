"""The columns of a set of judgements, listed once; what derives from the list derives from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.columns import BoolArray, Column, IndexArray, read_only


@dataclass(frozen=True, init=False, eq=False, repr=False)
class JudgementTable:
    """A row a judgement: read-only arrays of equal length, None for a column that is missing."""

    left: IndexArray
    """(M,) index of the first item of each judgement."""
    right: IndexArray
    """(M,) index of the second item."""
    same: BoolArray
    """(M,) the answers."""
    annotator: NDArray[np.int32] | None
    """(M,) code of whoever gave the judgement, None where nobody says."""
    weight: NDArray[np.float32] | None
    """(M,) how much each counts; None is 1 for all."""

    def columns(self) -> dict[str, Column | None]:
        """`COLUMNS` by name, (M,) each, None where one is missing."""
        return {name: getattr(self, name) for name in COLUMNS}

    def _set(self, values: Mapping[str, object]) -> None:
        """Fill a new table with what was checked; every array is locked."""
        for name, value in values.items():
            locked = read_only(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, locked)

    def __getstate__(self) -> dict[str, object]:
        cached = {
            n for n in vars(self) if isinstance(getattr(type(self), n, None), cached_property)
        }
        return {name: value for name, value in vars(self).items() if name not in cached}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._set(state)  # a pickle forgets that its arrays were locked


COLUMNS = tuple(field.name for field in fields(JudgementTable))


def taken(
    columns: Mapping[str, Column | None], keep: NDArray[np.generic]
) -> dict[str, Column | None]:
    """The rows of every column where ``keep`` (M,) is true, or at those positions."""
    return {name: None if c is None else c[keep] for name, c in columns.items()}
