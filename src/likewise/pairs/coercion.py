"""What people have, as judgements: arrays, tuples, data frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import InputError
from likewise.pairs.container import Pairs
from likewise.pairs.table import COLUMNS


@runtime_checkable
class Frame(Protocol):
    """A data frame of any library (pandas, Polars): named columns."""

    @property
    def columns(self) -> Iterable[object]:
        """The names."""
        ...

    def __getitem__(self, name: str, /) -> ArrayLike:
        """The column of that name, (M,)."""
        ...


def as_pairs(
    pairs: Pairs | Frame | ArrayLike, same: ArrayLike | None = None, n_items: int | None = None
) -> Pairs:
    """Accept what people have: a `Pairs`, ``((M, 2), (M,))``, or a frame with the columns.

    A frame has the columns left, right, same and, where there, annotator and weight.
    """
    if isinstance(pairs, Pairs):
        if n_items is not None and pairs.n_items > n_items:
            raise InputError(
                f"a judgement names item {pairs.n_items - 1}, but there are only {n_items} items."
            )
        return pairs
    if isinstance(pairs, Frame):
        return _from_frame(pairs, n_items)
    given: ArrayLike = pairs
    if same is None and isinstance(pairs, tuple) and len(pairs) == 2:
        given, same = pairs
    index = np.asarray(given)
    if same is None or index.ndim != 2 or index.shape[1] != 2:
        raise InputError(
            "judgements must be a Pairs, a data frame with columns left, right, same, "
            f"or a tuple ((M, 2) indices, (M,) answers), not {type(pairs).__name__}."
        )
    return Pairs(index[:, 0], index[:, 1], same, n_items=n_items)


def _from_frame(frame: Frame, n_items: int | None) -> Pairs:
    columns = [str(name) for name in frame.columns]
    if missing := [name for name in ("left", "right", "same") if name not in columns]:
        raise InputError(
            f"the judgements lack the column {', '.join(missing)}; "
            f"the columns there are {', '.join(columns)}."
        )
    given = {name: np.asarray(frame[name]) for name in COLUMNS if name in columns}
    return Pairs(**given, n_items=n_items)
