"""Tables on disk, read by Arrow in record batches: bounded memory, all cores, no parser of ours."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from likewise.errors import InputError
from likewise.io.csv_lines import empty_rows, first_line, is_row, named_columns
from likewise.io.limits import check_memory
from likewise.io.quotes import refuse_open_quote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import CSVStreamingReader

_BATCH_ROWS = 1 << 20
_BATCH_CELLS = 1 << 24
_BLOCK_BYTES = 1 << 24


class Table(Protocol):
    """A file with named columns."""

    path: Path
    columns: list[str]

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Record batches with the columns ``names``, those in ``text`` as (coded) text.

        To be used within `arrow_errors`.
        """
        ...

    def where(self, row: int) -> str:
        """The place of a row in the file, for a message."""
        ...


def _refuse_repeated(path: Path, columns: Sequence[str]) -> None:
    if repeated := [name for name, times in Counter(columns).items() if times > 1]:
        raise InputError(
            f"{path.name} has several columns named {listing(repeated)}; rename all but one."
        )


class ParquetTable:
    """A Parquet file, or a folder of them in the order of names; ``kept``: all rows at once."""

    batch_rows = _BATCH_ROWS

    def __init__(self, path: Path, *, kept: bool = True) -> None:
        import pyarrow.parquet as pq

        self.path, self._kept = path, kept
        self._parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        with arrow_errors(path):
            self.columns = [str(name) for name in pq.read_schema(self._parts[0]).names]
        _refuse_repeated(path, self.columns)

    def count_rows(self) -> int:
        """How many rows there are, by the files' own account and without reading them."""
        import pyarrow.parquet as pq

        with arrow_errors(self.path):
            return sum(int(pq.read_metadata(part).num_rows) for part in self._parts)

    def _check_size(self, names: Sequence[str]) -> None:
        """Equal rows and repeated text are next to nothing in a Parquet file, and much in memory.

        By the files' own account: as many cells of four bytes, or what is unpacked if that is more;
        of all rows, or of the largest row group where rows are not kept.
        """
        import pyarrow.parquet as pq

        groups = [(0, 0)]
        for about in map(pq.read_metadata, self._parts):
            # By row groups: asked for a damaged column's own size, Arrow ends the whole process.
            each = (about.row_group(k) for k in range(about.num_row_groups))
            groups += [(group.num_rows, group.total_byte_size) for group in each]
        held = [sum(each) for each in zip(*groups)] if self._kept else max(groups)
        check_memory(
            f"{self.path.name}: {held[0]:,} rows of {len(names):,} columns",
            max(4 * held[0] * len(names), held[1]),
            self.bytes_on_disk(),
        )

    def bytes_on_disk(self) -> int:
        """The size of the file, or of all parts together."""
        return sum(part.stat().st_size for part in self._parts)

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        self._check_size(names)
        for part in self._parts:
            schema = pq.read_schema(part)
            _check_columns(part, schema, names)
            # All text as a dictionary: one long text in every row would be as many copies of it.
            coded = [*text, *(name for name in names if _is_text_type(schema.field(name).type))]
            # What is buffered ahead stays until the file is closed, in the end all of it.
            with pq.ParquetFile(part, read_dictionary=coded, pre_buffer=False) as file:
                rows = max(1, min(self.batch_rows, _BATCH_CELLS // max(1, len(names))))
                yield from file.iter_batches(rows, columns=list(names))

    def number_batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """As `batches`: here the file itself says which columns are numbers."""
        return self.batches(names, text)

    def where(self, row: int) -> str:
        return f"row {row}"


class CsvTable:
    """A CSV file; comma, semicolon, tab or bar, whichever the first line uses most.

    Without a ``header`` the first line is a row like the others, and columns go by their number.
    Blanks around the columns' names (and then around texts), rows of separators alone and columns
    without a name are nothing.
    """

    def __init__(self, path: Path, *, header: bool = True) -> None:
        self.path, self._header = path, header
        with text_errors(path):
            self._first = first_line(path)
        self.delimiter = self._first.delimiter
        self.first_line = [cell.strip() for cell in self._first.cells]
        if header:
            _refuse_repeated(path, [name for name in self.first_line if name])
            self._written = named_columns(self._first.cells)
        else:
            self._written = {name: name for name in self._numbered()}
        self.columns = list(self._written)

    @property
    def is_plain(self) -> bool:
        """Whether other programs call the columns what they are called here."""
        return not self._first.above and self.columns == self._first.cells

    def _numbered(self) -> list[str]:
        return [f"column {k + 1}" for k in range(len(self.first_line))]

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._rows(names, text)

    def number_batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """As `batches`, but whole numbers at the beginning do not forbid fractions further down."""
        return self._rows(names, text, fractions=True)

    def _rows(
        self, names: Sequence[str], text: Sequence[str], *, fractions: bool = False
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow.types import is_integer, is_null

        types = dict.fromkeys(text, pa.string())
        try:
            reader = self._open(names, types)  # guesses by what it meets first
            kinds = zip(names, reader.schema.types, strict=True)
            whole = [name for name, kind in kinds if is_integer(kind) or is_null(kind)]
            if fractions and whole:
                types |= dict.fromkeys(whole, pa.float64())
                reader = self._open(names, types)
            yield from self._filled(reader, names)
        except pa.ArrowInvalid:
            list(self._open(names, types, threads=False))  # which alone knows the row it is about
            raise

    def _filled(
        self, batches: Iterable[pa.RecordBatch], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Under their names, without rows of separators alone."""
        empty = np.array(empty_rows(self.path, self._first), np.int64) - self._header
        padded = self.first_line != self._first.cells  # "left; right": the cells are so, too
        row = 0
        for batch in batches:
            renamed = (_trimmed(batch) if padded else batch).rename_columns(list(names))
            rows = np.arange(row, row + len(batch))
            row += len(batch)
            kept = rows[~np.isin(rows, empty)] - rows[:1] if len(empty) else rows
            yield renamed if len(kept) == len(batch) else renamed.take(kept)

    def _open(
        self, names: Sequence[str], types: dict[str, pa.DataType], *, threads: bool = True
    ) -> CSVStreamingReader:
        from pyarrow import csv as arrow_csv

        refuse_open_quote(self.path, self.delimiter)
        return arrow_csv.open_csv(
            str(self.path),
            arrow_csv.ReadOptions(
                use_threads=threads,
                block_size=_BLOCK_BYTES,
                skip_rows=self._first.above,
                column_names=None if self._header else self._numbered(),
            ),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=[self._written[name] for name in names],
                column_types={self._written[name]: kind for name, kind in types.items()},
            ),
        )

    def where(self, row: int) -> str:
        """The line of a row: blank lines and quoted line breaks make it differ from row + 2."""
        with (
            suppress(csv.Error),
            self.path.open(encoding="utf-8-sig", errors="replace") as file,
        ):
            reader = csv.reader(file, delimiter=self.delimiter)
            filled = (reader.line_num for fields in reader if fields and is_row(fields))
            for _ in range(self._first.above + self._header):
                next(filled)
            for count, line in enumerate(filled):
                if count == row:
                    return f"line {line}"
        return f"row {row}"


def open_table(path: Path, kind: str) -> Table:
    """The table in a CSV file, or in a Parquet file or folder."""
    return ParquetTable(path) if kind == "parquet" else CsvTable(path)


def listing(names: Sequence[str], most: int = 20) -> str:
    """Names for a message, as many as a person reads and no longer than that."""
    shown = ", ".join(name if len(name) <= 40 else f"{name[:40]}..." for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"


def require_columns(table: Table, names: Sequence[str], hint: str = "") -> None:
    """Refuse a file without these columns, in a sentence that names those it has."""
    if missing := [name for name in names if name not in table.columns]:
        there = listing(table.columns)
        plural = "s" if len(missing) > 1 else ""
        raise InputError(
            f"{table.path.name} lacks the column{plural} {', '.join(missing)}; the columns there "
            f"are {there}{hint}."
        )


def _trimmed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts without blanks around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = [pa.types.is_string(column.type) for column in batch.columns]
    arrays = [
        pc.utf8_trim_whitespace(column) if text else column
        for column, text in zip(batch.columns, is_text, strict=True)
    ]
    return pa.record_batch(arrays, names=batch.schema.names)


def _check_columns(part: Path, schema: pa.Schema, names: Sequence[str]) -> None:
    import pyarrow as pa

    if missing := [name for name in names if name not in schema.names]:
        raise InputError(f"{part.name} lacks the column {', '.join(missing)}.")
    if nested := [name for name in names if pa.types.is_nested(schema.field(name).type)]:
        raise InputError(f"{part.name} holds lists or structures in {nested[0]}, not one value.")


def _is_text_type(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Arrow's complaint about a damaged file as one sentence of ours."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path.name} cannot be read: {reason}.") from error


@contextmanager
def text_errors(path: Path) -> Iterator[None]:
    """Python's complaint about a text file as one sentence of ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path.name} is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8."
        ) from error
    except csv.Error as error:
        raise InputError(f"{path.name} cannot be read as CSV: {error}.") from error
