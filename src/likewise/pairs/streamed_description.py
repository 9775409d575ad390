"""`describe` of judgements that stay on disk: the same figures, in three passes over the file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.pairs import edges
from likewise.pairs.columns import IndexArray
from likewise.pairs.container import Pairs
from likewise.pairs.description import Description
from likewise.pairs.figures import describe_counts, describe_noise, spread
from likewise.pairs.formats.long import ColumnNames
from likewise.pairs.formats.paths import is_compact
from likewise.pairs.neighbours import Neighbours
from likewise.pairs.stream import JudgementStream, Piece
from likewise.pairs.streamed_index import Answers, StreamedPairIndex
from likewise.pairs.table import COLUMNS
from likewise.pairs.triangles import Triangles, draw_wedges, triangles_of_wedges

WORTHWHILE = 1 << 25
"""Judgements from which on they are read again for each pass instead of held."""


def describe_file(
    path: Path, reading: Mapping[str, str | float] | None = None, n_classes: int | None = None
) -> Description:
    """Describe the judgements of a file or folder, in memory where they are not too many.

    ``reading`` are options of `Pairs.read`: what the columns are called, the format.
    """
    asked = dict(reading or {})
    names = ColumnNames(**{k: str(v) for k, v in asked.items() if k in COLUMNS})
    stream = JudgementStream.open(path, names) if set(asked) <= set(COLUMNS) else None
    if stream is not None and stream.rows >= WORTHWHILE:
        return describe_stream(stream, n_classes)
    if stream is not None and is_compact(path):
        return stream.read().describe(n_classes)
    return Pairs.read(path, **asked).describe(n_classes)


class _Components:
    """What "same" joins, from edges that come in pieces."""

    def __init__(self, n_items: int) -> None:
        self.ids = np.arange(n_items, dtype=np.int32)
        self.count = n_items

    def join(self, piece: Piece) -> None:
        left, right = self.ids[piece.left[piece.same]], self.ids[piece.right[piece.same]]
        new = left != right
        if not new.any():
            return
        merged = edges.components(left[new], right[new], self.count)
        self.ids = merged[self.ids]
        self.count = int(merged.max()) + 1


def describe_stream(
    stream: JudgementStream,
    n_classes: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    folder: Path | None = None,
) -> Description:
    """Describe judgements on disk as `likewise.pairs.description.describe` does those in memory.

    Takes memory for the items and for one piece of the judgements; triangles are always sampled.
    Eight bytes a judgement (twelve with people) are sorted in a temporary folder, made in
    ``folder`` where one is given.
    """
    seen, rng = stream.seen, np.random.default_rng(random_state)
    joined = _Components(seen.n_items)
    degree = np.zeros(seen.n_items, np.int64)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        index = StreamedPairIndex(Path(temporary), seen.n_items, seen.judgements)
        for piece in stream.pieces():
            joined.join(piece)
            degree += edges.degrees(piece.left, piece.right, seen.n_items)
            index.add(piece)
        inside, triangles, answers = _second_look(stream, joined.ids, degree, index, rng)
    redundant = seen.same - (seen.n_items - joined.count)
    return Description(
        **describe_counts(
            sizes=np.bincount(joined.ids),
            judgements=seen.judgements,
            same=seen.same,
            dropped=seen.dropped,
            weightless=seen.weightless,
            annotators=seen.annotators,
        ),
        items_judged=int(np.count_nonzero(degree)),
        judgements_per_item=spread(degree),
        repeats=seen.judgements - answers.distinct,
        contradictions=answers.both,
        agreement=answers.agreement,
        inside=inside,
        loops=redundant + inside,
        triangles=triangles,
        noise=describe_noise(
            contradictions=inside,
            redundant=redundant,
            p_same=seen.same / max(seen.judgements, 1),
            triangles=triangles,
            n_classes=n_classes,
        ),
    )


def _second_look(
    stream: JudgementStream,
    component: IndexArray,
    degree: NDArray[np.int64],
    index: StreamedPairIndex,
    rng: np.random.Generator,
) -> tuple[int, Triangles, Answers]:
    """``("different" inside a component, triangles, answers by pair)``, once items are known."""
    inside = 0
    if len(component):  # as few bytes an item as tell components apart: they stay in the cache
        component = component.astype(np.min_scalar_type(component.max()))

    def neighbours(centres: IndexArray) -> tuple[NDArray[np.int64], IndexArray]:
        nonlocal inside
        found = Neighbours(centres, len(degree))
        for piece in stream.pieces():
            found.add(piece.left, piece.right)
            inside += edges.count_inside(component, piece.left, piece.right, ~piece.same)
        return found.lists()

    centre, a, b = draw_wedges(degree, rng, neighbours)
    answers = index.ask(
        np.concatenate([index.code(a, b), index.code(centre, a), index.code(centre, b)])
    )
    third, first, second = np.split(answers.shares, 3)
    return inside, triangles_of_wedges(third, first, second), answers
