"""Tables on disk, read by Arrow in record batches: bounded memory, all cores, no parser of ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from likewise.errors import InputError

_BATCH_ROWS = 1 << 20
_BLOCK_BYTES = 1 << 24
_DELIMITERS = ",;\t|"


class Table(Protocol):
    """A file with named columns."""

    path: Path
    columns: list[str]

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[Any]:
        """Record batches with the columns ``names``, those in ``text`` as (coded) text.

        To be used within `arrow_errors`.
        """
        ...

    def where(self, row: int) -> str:
        """The place of a row in the file, for a message."""
        ...


class ParquetTable:
    """A Parquet file, or a folder of them read in the order of their names."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self._parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        with arrow_errors(path):
            self.columns = [str(name) for name in pq.read_schema(self._parts[0]).names]

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq

        for part in self._parts:
            _check_columns(part, pq.read_schema(part), names)
            with pq.ParquetFile(part, read_dictionary=list(text)) as file:
                yield from file.iter_batches(_BATCH_ROWS, columns=list(names))

    def where(self, row: int) -> str:
        return f"row {row}"


class CsvTable:
    """A CSV file with a header; comma, semicolon, tab or bar, whichever the header uses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with text_errors(path), path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            self.delimiter = max(_DELIMITERS, key=header.count)
            self.columns = next(csv.reader([header], delimiter=self.delimiter), [])
        if repeated := {name for name in self.columns if self.columns.count(name) > 1}:
            raise InputError(f"{path.name} has several columns named {', '.join(repeated)}.")

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        yield from arrow_csv.open_csv(
            str(self.path),
            arrow_csv.ReadOptions(block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=list(names),
                column_types={name: pa.string() for name in text},
                strings_can_be_null=False,
            ),
        )

    def where(self, row: int) -> str:
        """The line of a row: blank lines and quoted line breaks make it differ from row + 2."""
        with (
            suppress(csv.Error),
            self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file,
        ):
            reader = csv.reader(file, delimiter=self.delimiter)
            filled = (reader.line_num for fields in reader if fields)
            next(filled)  # the header
            for count, line in enumerate(filled):
                if count == row:
                    return f"line {line}"
        return f"row {row}"


class RecordTable:
    """Rows already in memory (from JSON or SQLite), one mapping each."""

    def __init__(self, path: Path, records: list[dict[str, Any]], row_name: str = "record") -> None:
        self.path = path
        self.columns = list(dict.fromkeys(name for record in records for name in record))
        self._records = records
        self._row_name = row_name

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        columns = {name: [record.get(name) for record in self._records] for name in names}
        as_text = {name: [_plain(v) for v in column] for name, column in columns.items()}
        arrays = {
            name: pa.array(as_text[name], pa.string())
            if name in text or _is_text(column)
            else pa.array(column)
            for name, column in columns.items()
        }
        yield pa.record_batch(arrays)

    def where(self, row: int) -> str:
        return f"{self._row_name} {row}"


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


def _check_columns(part: Path, schema: Any, names: Sequence[str]) -> None:
    import pyarrow as pa

    if missing := [name for name in names if name not in schema.names]:
        raise InputError(f"{part.name} lacks the column {', '.join(missing)}.")
    if nested := [name for name in names if pa.types.is_nested(schema.field(name).type)]:
        raise InputError(f"{part.name} holds lists or structures in {nested[0]}, not one value.")


def _is_text(column: list[Any]) -> bool:
    return any(isinstance(value, str) for value in column)


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)


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
