"""Ids that are not the items' own, but leave no doubt which item they mean.

An id and an item's own id are two forms of one name if one of them lacks an extension or leading
folders that the other has, and they agree in all that both have: ``cat``, ``cat.jpg`` and
``C:\\mine\\pets\\cat.jpg`` may mean ``pets/cat.jpg``; ``dogs/01.jpg`` never means ``cats/01.jpg``,
nor ``3.9`` ``3.1``, nor ``ann@x.org`` ``ann@x.com``. There is doubt where two items have such a
form, or two different ids would be one item: then there is no match.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# What ends a file's name: a letter comes first, so that 3.1 has none.
_EXTENSION = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{1,4}$")
# Label Studio stores an uploaded ``cat.jpg`` as ``/data/upload/1/1f2e3d4c-cat.jpg``.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")


@dataclass(frozen=True)
class Matches:
    """Which item each distinct id means."""

    position: NDArray[np.int64]
    """(U,) position among the items; -1 where there is none, or doubt."""
    shortened: int = 0
    """How many were matched by a shorter form."""
    example: tuple[str, str] = ("", "")
    """One of those, and the item's own id."""
    doubt: dict[str, str] = field(default_factory=dict)
    """Why an id was not matched although there are candidates: the end of a sentence."""


@dataclass(frozen=True)
class _Name:
    """An id taken apart as the path of a file."""

    folders: tuple[str, ...]
    """Outermost first; a web address counts as a path."""
    stem: str
    """The file's name without extension."""
    extension: str
    """With its dot; "" where there is none."""

    @classmethod
    def parse(cls, text: str) -> _Name:
        *folders, file = text.replace("\\", "/").split("/")
        extension = found.group() if (found := _EXTENSION.search(file)) else ""
        return cls(tuple(folders), file.removesuffix(extension), extension)

    def may_be(self, other: _Name) -> bool:
        """Whether they agree in all that both have."""
        short, long = sorted((self.folders, other.folders), key=len)
        return (
            self.stem == other.stem
            and (not self.extension or not other.extension or self.extension == other.extension)
            and long[len(long) - len(short) :] == short
        )

    def forms(self) -> list[_Name]:
        """The name itself and, of an uploaded file, the one it had before, its folders lost."""
        if not _UPLOADED.match(self.stem):
            return [self]
        return [self, _Name((), _UPLOADED.sub("", self.stem), self.extension)]


def match_ids(words: NDArray[np.str_], item_ids: NDArray[np.str_]) -> Matches:
    """Match distinct ids ``words`` (U,) to the items' own, distinct too: whole, else shortened."""
    position = _whole(words, item_ids)
    missing = np.flatnonzero(position < 0)
    if not len(missing):
        return Matches(position)
    named = [_Name.parse(name) for name in item_ids.tolist()]
    by_stem: dict[str, list[int]] = defaultdict(list)
    for k, name in enumerate(named):
        by_stem[name.stem].append(k)
    doubt: dict[str, str] = {}
    meant: dict[int, list[int]] = defaultdict(list)  # words by item
    for m in missing.tolist():
        found = _candidates(_Name.parse(str(words[m])), named, by_stem)
        if len(found) == 1:
            meant[found[0]].append(m)
        elif found:
            one, other = (str(item_ids[k]) for k in found[:2])
            doubt[str(words[m])] = (
                f"which may be {one!r} or {other!r}; write the item's own id, whole."
            )
    whole = {int(k): m for m, k in enumerate(position.tolist()) if k >= 0}
    for k, forms in meant.items():
        rivals = [whole[k], *forms] if k in whole else forms
        if len(rivals) == 1:
            position[forms[0]] = k
            continue
        for m in forms:
            rival = str(words[next(r for r in rivals if r != m)])
            doubt[str(words[m])] = (
                f"but {rival!r} would then be the same item, {str(item_ids[k])!r}; write the "
                "items' own ids, whole."
            )
    shortened = missing[position[missing] >= 0]
    if not len(shortened):
        return Matches(position, doubt=doubt)
    example = str(words[shortened[0]]), str(item_ids[position[shortened[0]]])
    return Matches(position, len(shortened), example, doubt)


def _whole(words: NDArray[np.str_], item_ids: NDArray[np.str_]) -> NDArray[np.int64]:
    """(U,) position of each id among the items' own; -1 where there is none."""
    if not len(item_ids):
        return np.full(len(words), -1, np.int64)
    order = np.argsort(item_ids)
    found = np.searchsorted(item_ids, words, sorter=order)
    found = order[np.minimum(found, len(order) - 1)]
    return np.where(item_ids[found] == words, found, -1)


def _candidates(word: _Name, named: list[_Name], by_stem: dict[str, list[int]]) -> list[int]:
    """The items that an id may mean."""
    for form in word.forms():
        if found := [k for k in by_stem.get(form.stem, []) if form.may_be(named[k])]:
            return found
    return []
