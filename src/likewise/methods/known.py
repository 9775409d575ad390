"""Classes of some items that a person is certain of: numbers for the fit, names for its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.io.npy import Array

UNKNOWN = -1

Known = Mapping[int, object] | ArrayLike
"""Position of an item to its class, or (N,) classes: None, NaN or "" where one is not known.

The number -1 is refused among the latter: nobody knows whether it is a class."""


@dataclass(frozen=True)
class KnownClasses:
    """What is certain about N items; ``KnownClasses()`` is nothing."""

    numbers: NDArray[np.int64] | None = None
    """(N,) number of each item's class; `UNKNOWN` for most. None where nothing is known."""
    distinct: Array | None = None
    """(n,) the classes as they were given, in the order of their numbers."""

    @classmethod
    def of(cls, known: Known | None, n_items: int) -> KnownClasses:
        """From what a person gave; refused where it fits the items badly."""
        if known is None:
            return cls()
        where, given = _listed(known, n_items)
        if not len(where):
            raise InputError("known names no item's class; leave it out, or give at least one.")
        numbers = np.full(n_items, UNKNOWN, np.int64)
        as_numbers = _whole(given)
        own = given if as_numbers is None else as_numbers
        distinct = _in_order(np.unique(own))
        if as_numbers is not None and distinct[0] >= 0 and distinct[-1] < 2 * len(distinct):
            # Numbers of classes are meant as such: what is known of class 7 is number 7.
            numbers[where], distinct = as_numbers, np.arange(as_numbers.max() + 1)
        else:
            code = {name: number for number, name in enumerate(distinct.tolist())}
            numbers[where] = [code[name] for name in own.tolist()]
        return cls(numbers, distinct)

    @property
    def count(self) -> int:
        """The least number of classes that there must be."""
        return 0 if self.distinct is None else len(self.distinct)

    def names(self, n_classes: int) -> Array:
        """(C,) the classes' names: those given, then "class k"; numbers where those were given."""
        if self.distinct is None or self.distinct.dtype.kind in "iu":
            plain = np.arange(n_classes)
            if self.distinct is None or np.array_equal(self.distinct, plain[: self.count]):
                return plain
        rest = [f"class {k}" for k in range(self.count, n_classes)]
        return np.array([*map(str, self.distinct), *rest])


def _listed(known: Known, n_items: int) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """(n,) positions and (n,) classes as text, of the items whose class is given."""
    if isinstance(known, Mapping):
        where = np.array(list(known), np.int64)
        values = list(known.values())
        if len(where) and (where.min() < 0 or where.max() >= n_items):
            raise InputError(f"known names an item that is not among the {n_items} items.")
    else:
        values = np.asarray(known, object).tolist()
        if np.shape(np.asarray(known, object)) != (n_items,):
            raise InputError(f"there are {n_items} items, but known has {len(values)} classes.")
        if any(_means_unlabelled(value) for value in values):
            raise InputError(
                "known gives the number -1, which may be a class or stand for items of which none "
                'is known: give None for these, and a class a name of its own, such as "minus".'
            )
        where = np.arange(n_items)
    there = np.array([not _is_missing(value) for value in values], bool)
    texts = [_name_of(value) for value, is_there in zip(values, there, strict=True) if is_there]
    return where[there], np.array(texts, np.str_)


def _is_missing(value: object) -> bool:
    return value is None or value != value or value == ""  # NaN differs from itself


def _means_unlabelled(value: object) -> bool:
    """Whether it is the number that others take for "no class", scikit-learn among them."""
    return isinstance(value, Real) and value == UNKNOWN


def _name_of(value: object) -> str:
    """A class's name. Whole numbers are the same however they are kept: with NaN among them they
    are floats."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _in_order(distinct: Array) -> Array:
    """Distinct names (n,) in the order of their numbers, where all are numbers; else as text."""
    try:
        return distinct[np.argsort(distinct.astype(np.float64), kind="stable")]
    except ValueError:
        return distinct


def _whole(given: NDArray[np.str_]) -> NDArray[np.int64] | None:
    """The classes as whole numbers, None where they are anything else."""
    if not all(text.lstrip("-").isdecimal() and len(text) < 10 for text in given.tolist()):
        return None
    return given.astype(np.int64)
