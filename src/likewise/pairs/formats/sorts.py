"""Sorts: people put items into piles. Two items of one pile are "same", of two piles "different".

A table of items × people with the piles' names in it, a table with an item, a person and a pile a
row, or JSON: lists of piles. An item that somebody did not sort has no pile, and no judgement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from likewise.errors import InputError
from likewise.io.dictionary import Coded
from likewise.io.json import Json
from likewise.io.tables import Table, listing, require_columns
from likewise.pairs.container import Pairs
from likewise.pairs.formats.ids import is_name
from likewise.pairs.formats.long import ColumnNames, Items, assemble, read_columns, rows_located

PILE = "pile"
MAX_JUDGEMENTS = 100_000_000
_ITEM_NAMES = ("item", "id", "item_id", "image", "file", "name")

Sort = tuple[str, list[list[str]]]
"""Who sorted, and the piles."""


def is_table_of_sorts(table: Table) -> bool:
    """Whether a table says in which pile an item went, a row for each item and person."""
    return PILE in table.columns and any(name in table.columns for name in _ITEM_NAMES)


def read_sort_table(table: Table, names: ColumnNames, items: Items, item: str | None) -> Pairs:
    """A row for each item and person (item, annotator, pile), or a column for each person."""
    own = item or next((name for name in table.columns if name in _ITEM_NAMES), None)
    if own is None:
        raise InputError(
            f"{table.path.name} lacks the column item, which names what was sorted; the columns "
            f"there are {listing(table.columns)}; say which one with item= (--left)."
        )
    require_columns(table, [own])
    if PILE in table.columns:
        people = [name for name in (names.annotator,) if name in table.columns]
        with rows_located(table):
            columns = read_columns(table, [], [own, PILE, *people])
            columns[own].refuse_missing(own)
        who = _texts(columns[people[0]]) if people else [""] * len(columns[own])
        placed = zip(who, _texts(columns[own]), _texts(columns[PILE]), strict=True)
        return judgements(table.path, _by_person(table.path, placed), items)
    people = [name for name in table.columns if name != own]
    if not people:
        raise InputError(f"{table.path.name} has no column of a person beside {own}.")
    with rows_located(table):
        columns = read_columns(table, [], [own, *people])
        columns[own].refuse_missing(own)
    rows = _texts(columns[own])
    cells = (
        (person, name, pile)
        for person in people
        for name, pile in zip(rows, _texts(columns[person]), strict=True)
    )
    return judgements(table.path, _by_person(table.path, cells), items)


def is_piles(content: Json) -> bool:
    """Whether JSON holds sorts: records with piles, people with piles, or the piles of one sort."""
    if isinstance(content, dict):
        return bool(content) and all(_is_sort(piles) for piles in content.values())
    if not isinstance(content, list) or not content:
        return False
    records = [row for row in content if isinstance(row, dict)]
    if len(records) == len(content):
        return all("piles" in row for row in records)
    return _is_sort(content)


def read_piles(path: Path, content: Json, names: ColumnNames, items: Items) -> Pairs:
    """Sorts from JSON: ``{"ann": [["a", "b"], ["c"]]}``, ``[{"annotator": "ann", "piles": ...}]``,
    or the piles of one sort alone."""
    sorts: list[Sort] = []
    if isinstance(content, dict):
        sorts = [(person, _piles(path, person, piles)) for person, piles in content.items()]
    elif isinstance(content, list) and all(isinstance(row, dict) for row in content):
        for k, row in enumerate(content):
            assert isinstance(row, dict)
            if "piles" not in row:
                raise InputError(f"{path.name}, sort {k}: lacks the field piles.")
            person = str(row.get(names.annotator) or "")
            sorts.append((person, _piles(path, f"sort {k}", row["piles"])))
    else:
        sorts = [("", _piles(path, "the sort", content))]
    return judgements(path, sorts, items)


def judgements(path: Path, sorts: list[Sort], items: Items) -> Pairs:
    """Every pair of items that one person sorted, as judgements of that person."""
    total = sum(_pairs_of(piles) for _, piles in sorts)
    if total > MAX_JUDGEMENTS:
        raise InputError(
            f"the sorts of {path.name} are {total:,} judgements, more than {MAX_JUDGEMENTS:,}; "
            "leave some out."
        )
    left: list[str] = []
    right: list[str] = []
    same, who = [np.empty(0, bool)], []
    for person, piles in sorts:
        names = np.array([name for pile in piles for name in pile], object)
        pile_of = np.repeat(np.arange(len(piles)), [len(pile) for pile in piles])
        i, j = np.triu_indices(len(names), 1)
        left += names[i].tolist()
        right += names[j].tolist()
        same.append(pile_of[i] == pile_of[j])
        who += [person] * len(i)
    if not left:
        raise InputError(f"{path.name} holds no sort of two items or more.")
    people = Coded.from_list(who) if any(who) else None
    every = np.ones(len(left), bool)
    ids = Coded.from_list(left), Coded.from_list(right)
    # What is sorted goes by names: 009 beside 123 is one, and then 123 is one, too.
    named = items.named or any(is_name(word) for column in ids for word in column.names.tolist())
    return assemble(*ids, np.concatenate(same), every, people, None, replace(items, named=named))


def _pairs_of(piles: list[list[str]]) -> int:
    count = sum(map(len, piles))
    return count * (count - 1) // 2


def _by_person(path: Path, placed: Iterable[tuple[str, str, str]]) -> list[Sort]:
    """(person, item, pile) as piles; an item without a pile was not sorted."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for person, name, pile in placed:
        if not pile:
            continue
        if name in found[person]:
            whose = f" by {person}" if person else ""
            raise InputError(f"{path.name} puts {name!r} into a pile twice{whose}.")
        found[person][name] = pile
    sorts: list[Sort] = []
    for person, pile_of in found.items():
        piles: dict[str, list[str]] = defaultdict(list)
        for name, pile in pile_of.items():
            piles[pile].append(name)
        sorts.append((person, list(piles.values())))
    return sorts


def _is_sort(content: Json) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(
            isinstance(pile, list) and all(isinstance(name, str | int) for name in pile)
            for pile in content
        )
    )


def _piles(path: Path, place: str, content: Json) -> list[list[str]]:
    if not isinstance(content, list) or not _is_sort(content):
        raise InputError(f"{path.name}, {place}: a sort must be a list of piles, lists of items.")
    piles = [[str(name) for name in pile] for pile in content if isinstance(pile, list)]
    every = [name for pile in piles for name in pile]
    if len(set(every)) < len(every):
        twice = next(name for k, name in enumerate(every) if name in every[:k])
        raise InputError(f"{path.name}, {place}: {twice!r} lies in two piles.")
    return piles


def _texts(column: Coded) -> list[str]:
    filled = column.with_blank()
    texts: list[str] = filled.names[filled.codes].tolist() if len(filled) else []
    return texts
