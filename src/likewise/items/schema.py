"""What the items were like that a model was fitted to, so that others are read the same way.

A model sees numbers. It cannot see that two columns changed places, or that pixels which were 0 to
255 are now 0 to 1: it would answer, and be wrong. So it keeps the columns' names, the type and the
range, puts columns in their order, and refuses what it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError

Array = NDArray[np.generic]
SAMPLE = 1000  # items that a range is taken of
BYTE = 255


@dataclass(frozen=True)
class ItemSchema:
    """Names, type and range of the items of a fit."""

    dtype: str
    """"uint8" or "float32", as items are kept."""
    low: float
    """The smallest number, of a sample."""
    high: float
    """The largest number, of a sample."""
    columns: tuple[str, ...] | None = None
    """(d,) the names of the features, in their order; None where nobody named them."""
    encoder: str | None = None
    """What made the numbers, where something did, in words."""

    @classmethod
    def of(cls, items: Array, columns: Sequence[str] | None = None) -> ItemSchema:
        """That of items (N, ...), and of their columns where they are a table."""
        sample = _sample(items)
        names = None if columns is None else tuple(str(name) for name in columns)
        if names is not None and (items.ndim != 2 or len(names) != items.shape[1]):
            raise InputError(
                f"there are {len(names)} names of columns for items of shape {items.shape[1:]}."
            )
        return cls(str(items.dtype), float(sample.min()), float(sample.max()), names)

    def arranged(self, items: Array, columns: Sequence[str] | None) -> Array:
        """Items (N, d) with named columns, in the order of the fit; refused if they are others."""
        if self.columns is None or columns is None or tuple(columns) == self.columns:
            return items
        place = {str(name): k for k, name in enumerate(columns)}
        missing = [name for name in self.columns if name not in place]
        strange = [name for name in place if name not in set(self.columns)]
        if missing or strange:
            what = [f"lack {_listed(missing)}"] if missing else []
            what += [f"have {_listed(strange)}, which it was not fitted to"] if strange else []
            raise InputError(
                f"these items {' and '.join(what)}; the model's columns are "
                f"{_listed(self.columns)}."
            )
        return items[:, [place[name] for name in self.columns]]

    def check_scale(self, items: Array) -> None:
        """Refuse items that are on another scale than those of the fit: pixels as 0 to 255, or as
        0 to 1."""
        sample = _sample(items).astype(np.float64)
        low, high = float(sample.min()), float(sample.max())
        whole = bool((sample == np.round(sample)).all())
        if self.dtype == "uint8" and self.high > 1 and not whole and low >= 0 and high <= 1:
            raise InputError(
                f"the model was fitted to whole numbers (uint8) up to {self.high:.0f}, but these "
                f"items are fractions from {low:.2g} to {high:.2g}; give them as they were, or "
                f"multiply them by {BYTE}."
            )
        fractions = self.dtype != "uint8" and self.low >= 0 and self.high <= 1
        if fractions and (items.dtype == np.uint8 or items.ndim > 2) and whole and high > 1:
            raise InputError(
                f"the model was fitted to numbers from {self.low:.2g} to {self.high:.2g}, but "
                f"these items are whole numbers up to {high:.0f}; give them as they were, or "
                f"divide them by {BYTE}."
            )

    def to_dict(self) -> dict[str, object]:
        """Plain JSON."""
        return {
            "dtype": self.dtype,
            "low": self.low,
            "high": self.high,
            "columns": None if self.columns is None else list(self.columns),
            "encoder": self.encoder,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ItemSchema:
        """From `to_dict`, or an `InputError` that names what does not fit."""
        dtype, low, high = (data.get(name) for name in ("dtype", "low", "high"))
        columns, encoder = data.get("columns"), data.get("encoder")
        if dtype not in ("uint8", "float32"):
            raise InputError(f"the type of its items is {dtype!r}, which cannot be.")
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            raise InputError("the range of its items is no pair of numbers.")
        if columns is not None and not isinstance(columns, list):
            raise InputError("the columns of its items are no list of names.")
        names = None if columns is None else tuple(str(name) for name in columns)
        note = None if encoder is None else str(encoder)
        return cls(str(dtype), float(low), float(high), names, note)


def column_names(X: object) -> list[str] | None:
    """The names of a data frame's columns; None where X has none, or they are numbers."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _sample(items: Array) -> Array:
    return np.asarray(items[:: max(1, len(items) // SAMPLE)])


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} ... ({len(names)} in all)"
