"""Judgements that stay on disk: read anew for every pass, in pieces, checked the first time.

Holds nothing of the judgements between passes. For Parquet files whose items are positions, and for
folders that ``likewise compact`` wrote, whose repeats come as often as they were given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError, RowError
from likewise.io.dictionary import CodedBuilder
from likewise.io.sniffing import file_kind
from likewise.io.tables import ParquetTable, arrow_errors
from likewise.pairs.answers import parse_coded_answers
from likewise.pairs.columns import BoolArray, Column, check_range, refuse_self_pairs
from likewise.pairs.compact.folder import JUDGEMENTS, CompactFolder
from likewise.pairs.container import Pairs
from likewise.pairs.formats.long import ColumnNames, parse_answer_column, rows_located
from likewise.pairs.formats.paths import is_compact, path_errors

if TYPE_CHECKING:
    import pyarrow as pa

_Thing = TypeVar("_Thing")

PIECE = 1 << 25
"""Judgements handled at a time: temporary arrays of a GB, fixed costs a few times a billion."""


@dataclass(frozen=True)
class Piece:
    """Some judgements that count (n,), in the order of the file."""

    left: NDArray[np.int32]
    """One item of each."""
    right: NDArray[np.int32]
    """The other."""
    same: BoolArray
    """The answers."""
    annotator: NDArray[np.int32] | None
    """Code of whoever gave each, None where nobody says."""

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class Seen:
    """What one pass over all judgements tells."""

    judgements: int
    """Judgements that count."""
    same: int
    """Those that say "same"."""
    n_items: int
    """One more than the largest position, or as many as are named."""
    annotators: int
    """People, 0 where judgements do not say."""
    dropped: int
    """Rows without an answer."""
    weightless: int
    """Judgements of weight 0."""


@dataclass
class _Tally:
    """What is counted along the way."""

    checking: bool = False
    rows: int = 0
    n_items: int = 0
    dropped: int = 0
    weightless: int = 0
    people: dict[str, int] = field(default_factory=dict)
    words: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgementStream:
    """Judgements of a Parquet file, a folder of them, or a compacted folder."""

    path: Path
    """Where they are."""
    names: ColumnNames = field(default_factory=ColumnNames)
    """What the columns are called."""

    @classmethod
    def open(cls, path: Path, names: ColumnNames | None = None) -> JudgementStream | None:
        """The judgements at ``path`` as a stream; None where their ids must be looked up."""
        stream = cls(path, names or ColumnNames())
        with path_errors(path):
            if is_compact(path):
                return stream
            if file_kind(path) != "parquet":
                return None
        needed = [stream.names.left, stream.names.right, stream.names.same]
        there = set(needed) <= set(stream._table.columns)
        return stream if there and _are_integers(path, needed[:2]) else None

    @property
    def rows(self) -> int:
        """As the files tell, without reading them."""
        if is_compact(self.path):
            return self.folder.counts.judgements
        return self._table.count_rows()

    @cached_property
    def folder(self) -> CompactFolder:
        """The compacted folder that this is."""
        return CompactFolder.open(self.path)

    @cached_property
    def seen(self) -> Seen:
        """What the first pass tells; it checks every row."""
        compacted = is_compact(self.path)
        tally, total, same = _Tally(checking=True), 0, 0
        with rows_located(self._table):
            for piece in self._pieces(tally):
                total += len(piece)
                same += int(np.count_nonzero(piece.same))
            words = list(tally.words)
            parse_coded_answers(np.arange(len(words)), words)  # 0 in one part and -1 in another
        return Seen(
            judgements=total,
            same=same,
            n_items=self.folder.counts.items if compacted else tally.n_items,
            annotators=self.folder.counts.annotators if compacted else len(tally.people),
            dropped=self.folder.counts.dropped if compacted else tally.dropped,
            weightless=tally.weightless,
        )

    def read(self) -> Pairs:
        """All judgements that count, in memory, repeats as often as they were given."""
        pieces = list(self.pieces())
        if not pieces:
            raise InputError(f"{self.path.name} holds no judgement.")
        every, known = _one(pieces), np.arange(self.seen.annotators).astype(np.str_)
        pairs = Pairs(
            every.left,
            every.right,
            every.same,
            every.annotator,
            n_items=self.seen.n_items,
            annotator_names=None if every.annotator is None else known,
        )
        return pairs._like(pairs.columns(), dropped=self.seen.dropped)

    def pieces(self, rows: int | None = None) -> Iterator[Piece]:
        """All judgements that count, about ``rows`` at a time."""
        return _read_ahead(_joined(self._pieces(_Tally()), PIECE if rows is None else rows))

    @cached_property
    def _table(self) -> ParquetTable:
        path = self.path / JUDGEMENTS if is_compact(self.path) else self.path
        return ParquetTable(path, kept=False)

    def _pieces(self, tally: _Tally) -> Iterator[Piece]:
        compacted = is_compact(self.path)
        names = ColumnNames() if compacted else self.names
        there = [name for name in (names.annotator, names.weight) if name in self._table.columns]
        wanted = [names.left, names.right, names.same, *there, *(["count"] if compacted else [])]
        text = [] if compacted else [names.same, names.annotator]
        with arrow_errors(self.path):
            coded = [name for name in text if name in wanted]
            for batch in _read_ahead(self._table.batches(wanted, coded)):
                yield _piece(batch, names, tally)


def _are_integers(path: Path, names: Sequence[str]) -> bool:
    """Whether every Parquet file there has whole numbers in these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with arrow_errors(path):
        schemas = map(pq.read_schema, path.glob("*.parquet") if path.is_dir() else [path])
        return all(
            name in schema.names and pa.types.is_integer(schema.field(name).type)
            for schema in schemas
            for name in names
        )


def _piece(batch: pa.RecordBatch, names: ColumnNames, tally: _Tally) -> Piece:
    """The judgements of a batch that count, added to the tally."""
    columns: dict[str, Column] = {
        "left": _positions(batch, names.left, tally.rows),
        "right": _positions(batch, names.right, tally.rows),
    }
    columns["same"], keep = _answers(batch.column(names.same), tally)
    if tally.checking:
        with _counted_from(tally.rows):
            refuse_self_pairs(columns["left"], columns["right"], keep)
            tally.n_items = max(tally.n_items, check_range(columns["left"], columns["right"], None))
    tally.dropped += len(keep) - int(np.count_nonzero(keep))
    if names.annotator in batch.schema.names:
        columns["annotator"] = _people(batch.column(names.annotator), tally)
    if names.weight in batch.schema.names:
        weight = batch.column(names.weight).to_numpy(zero_copy_only=False)
        tally.weightless += int(np.count_nonzero((weight == 0) & keep))
        keep &= weight != 0
    tally.rows += len(keep)
    if not keep.all():
        columns = {name: column[keep] for name, column in columns.items()}
    if "count" in batch.schema.names:
        often = batch.column("count").to_numpy()[keep]
        if (often != 1).any():
            columns = {name: np.repeat(column, often) for name, column in columns.items()}
    return Piece(columns["left"], columns["right"], columns["same"], columns.get("annotator"))


@contextmanager
def _counted_from(row: int) -> Iterator[None]:
    """A mistake in a row of a batch as one of the file, where the batch begins at ``row``."""
    try:
        yield
    except RowError as error:
        raise RowError(row + error.row, error.problem) from None


def _positions(batch: pa.RecordBatch, name: str, row: int) -> NDArray[np.int32]:
    column = batch.column(name)
    with _counted_from(row):
        if column.null_count:
            first = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise RowError(first, f"{name} is blank.")
        values: NDArray[np.int64] = column.to_numpy()
        if len(values) and values.dtype.itemsize > 4:  # before it is made narrow
            try:
                check_range(values, values[:0], None)
            except RowError as error:
                raise RowError(error.row, error.problem.replace("left", name, 1)) from None
    return values.astype(np.int32, copy=False)


def _answers(column: pa.Array, tally: _Tally) -> tuple[BoolArray, BoolArray]:
    import pyarrow as pa

    if pa.types.is_boolean(column.type) and not column.null_count:
        return column.to_numpy(zero_copy_only=False), np.ones(len(column), bool)
    builder = CodedBuilder()
    builder.append(column)
    coded = builder.finish()
    tally.words |= dict.fromkeys(str(word) for word in coded.names)
    with _counted_from(tally.rows):
        return parse_answer_column(coded)


def _people(column: pa.Array, tally: _Tally) -> NDArray[np.int32]:
    """Codes that are the same in every batch: by first appearance, or those of the folder."""
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        codes: NDArray[np.int64] = column.to_numpy()
        return codes.astype(np.int32, copy=False)
    builder = CodedBuilder()
    builder.append(column)
    coded = builder.finish().with_blank()
    own = [tally.people.setdefault(str(n), len(tally.people)) for n in coded.names]
    return np.array(own, np.int32)[coded.codes]


def _read_ahead(source: Iterator[_Thing]) -> Iterator[_Thing]:
    """The same things, each made by another thread while the one before it is used."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, source, None)
        while (thing := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield thing


def _joined(pieces: Iterator[Piece], rows: int) -> Iterator[Piece]:
    """The same judgements in pieces of ``rows`` at least, but for the last."""
    waiting: list[Piece] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= rows:
            yield _one(waiting)
            waiting = []
    if waiting:
        yield _one(waiting)


def _one(pieces: Sequence[Piece]) -> Piece:
    people = [piece.annotator for piece in pieces if piece.annotator is not None]
    return Piece(
        np.concatenate([piece.left for piece in pieces]),
        np.concatenate([piece.right for piece in pieces]),
        np.concatenate([piece.same for piece in pieces]),
        np.concatenate(people) if people else None,
    )
