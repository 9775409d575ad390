"""Labelled pairs of the record-linkage tools Splink and Zingg."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import MISSING, Coded
from likewise.io.tables import Table, require_columns
from likewise.pairs.container import Pairs
from likewise.pairs.formats.ids import IdColumn
from likewise.pairs.formats.long import ColumnNames, Items, assemble, read_columns, rows_located

SPLINK = ("unique_id_l", "unique_id_r", "clerical_match_score")
ZINGG = ("z_cluster", "z_isMatch")
_SPLINK_SOURCES = ("source_dataset_l", "source_dataset_r")
_ZINGG_ITEMS = ("id", "z_zid")


def read_splink(table: Table, names: ColumnNames, items: Items) -> Pairs:
    """Splink's clerical labels: two unique ids and a score from 0 (different) to 1 (same).

    A score between is a less certain answer: same above one half, weighted by the distance from
    it, and one half is no answer. Where records come from several sources, an item is named as
    Splink does, ``source-__-id``.
    """
    require_columns(table, SPLINK)
    sources = [name for name in _SPLINK_SOURCES if name in table.columns]
    people = [name for name in (names.annotator,) if name in table.columns]
    with rows_located(table):
        columns = read_columns(table, [SPLINK[2]], [*sources, *people], SPLINK[:2], items)
        left, right = columns[SPLINK[0]], columns[SPLINK[1]]
        if len(sources) == 2 and _several(columns[sources[0]], columns[sources[1]]):
            left, right = (
                _prefixed(columns[sources[0]], left),
                _prefixed(columns[sources[1]], right),
            )
        score = np.asarray(columns[SPLINK[2]], dtype=np.float64)
        _check_scores(score)
        certain = bool(np.all((score == 0) | (score == 1)))
        weight = None if certain else np.abs(2 * score - 1)
        annotator = columns[people[0]] if people else None
        return assemble(left, right, score > 0.5, score != 0.5, annotator, weight, items)


def read_zingg(table: Table, names: ColumnNames, items: Items, item: str | None) -> Pairs:
    """Zingg's marked pairs: the two rows of a pair share ``z_cluster``.

    ``z_isMatch`` is 1 for a match, 0 for none, 2 for "not sure" (and -1, or blank, unmarked). The
    items are named by the column ``item``, else by ``id``, else by Zingg's own ``z_zid``.
    """
    require_columns(table, ZINGG)
    own = item or next((name for name in _ZINGG_ITEMS if name in table.columns), _ZINGG_ITEMS[0])
    require_columns(table, [own], "; say which one names the item with item= (--left)")
    people = [name for name in (names.annotator,) if name in table.columns]
    with rows_located(table):
        columns = read_columns(table, [], [*ZINGG, *people], [own], items)
        first, second = _row_pairs(columns[ZINGG[0]])
        verdict = _zingg_answers(columns[ZINGG[1]])
        if (torn := verdict[first] != verdict[second]).any():
            m = int(np.argmax(torn))
            raise RowError(int(second[m]), "z_isMatch differs from the other row of its z_cluster.")
        ids, annotator = columns[own], columns[people[0]] if people else None
        same, answered = verdict[first] == 1, verdict[first] >= 0
        person = None if annotator is None else _take_coded(annotator, first)
        return assemble(_take(ids, first), _take(ids, second), same, answered, person, None, items)


def _several(left: Coded, right: Coded) -> bool:
    return len(np.union1d(left.names, right.names)) > 1


def _prefixed(source: Coded, ids: IdColumn) -> Coded:
    own = ids if isinstance(ids, Coded) else Coded.from_numbers(ids)
    source.refuse_missing("source_dataset")
    own.refuse_missing("unique_id")
    sources, names = source.names[source.codes].tolist(), own.names[own.codes].tolist()
    return Coded.from_list([f"{s}-__-{name}" for s, name in zip(sources, names, strict=True)])


def _check_scores(score: NDArray[np.float64]) -> None:
    good = (score >= 0) & (score <= 1)
    if not good.all():
        m = int(np.argmin(good))
        raise RowError(m, f"clerical_match_score is {score[m]}, but must lie between 0 and 1.")


def _row_pairs(cluster: Coded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two rows of each cluster, in the order of the file."""
    cluster.refuse_missing("z_cluster")
    sizes = np.bincount(cluster.codes, minlength=len(cluster.names))
    if len(sizes) and (sizes != 2).any():
        odd = int(np.argmax(sizes != 2))
        raise InputError(
            f"z_cluster {cluster.names[odd]} has {sizes[odd]} rows, but a marked pair has two."
        )
    order = np.argsort(cluster.codes, kind="stable").reshape(-1, 2)
    order = order[np.argsort(order[:, 0])]
    return order[:, 0], order[:, 1]


def _zingg_answers(column: Coded) -> NDArray[np.int8]:
    """(rows,) 1 match, 0 no match, -1 no answer."""
    meaning = {"1": 1, "0": 0, "2": -1, "-1": -1}
    words = [word.removesuffix(".0") for word in column.names.tolist()]
    for k, word in enumerate(words):
        if word not in meaning:
            row = int(np.argmax(column.codes == k))
            raise RowError(row, f"z_isMatch is {word!r}, which is none of 1, 0 and 2 (not sure).")
    values = np.array([*(meaning[word] for word in words), -1], np.int8)
    return values[np.where(column.codes == MISSING, len(words), column.codes)]


def _take(column: IdColumn, rows: NDArray[np.int64]) -> IdColumn:
    return _take_coded(column, rows) if isinstance(column, Coded) else column[rows]


def _take_coded(column: Coded, rows: NDArray[np.int64]) -> Coded:
    return Coded(column.codes[rows], column.names)
