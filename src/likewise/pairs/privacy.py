"""Judgements without the names of those who gave them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.pairs.container import Pairs


def number_people(names: Sequence[str]) -> list[str]:
    """What people are called instead of their ``names``, in the order given: person 1, person 2 ...

    The order must not follow from the names, or a list of all people would tell who is who.
    """
    return [f"person {k}" for k in range(1, len(names) + 1)]


def without_names(pairs: Pairs) -> Pairs:
    """The same judgements, people numbered by when they first answered, items without their ids."""
    listed = pairs if pairs.item_ids is None else pairs.with_item_ids(None)
    if listed.annotator is None or listed.annotator_names is None:
        return listed
    heard, first = np.unique(listed.annotator, return_index=True)
    silent = np.setdiff1d(np.arange(len(listed.annotator_names)), heard)
    order = np.concatenate([heard[np.argsort(first)], silent])
    code = np.empty(len(order), np.int32)
    code[order] = np.arange(len(order), dtype=np.int32)
    numbered = np.array(number_people(listed.annotator_names.tolist()), np.str_)
    columns = listed.columns() | {"annotator": code[listed.annotator]}
    return listed._like(columns, annotator_names=numbered)
