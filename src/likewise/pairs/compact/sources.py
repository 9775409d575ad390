"""What is to be compacted, as DuckDB sees it: every input a query with the same five columns.

CSV and Parquet are read by DuckDB itself, however large. The other formats are whole files in
memory by their nature (JSON, the databases of labelling pages): they come through our own readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import InputError
from likewise.io.sniffing import file_kind
from likewise.io.tables import CsvTable, ParquetTable
from likewise.pairs.container import Pairs
from likewise.pairs.formats.long import ColumnNames
from likewise.pairs.formats.paths import path_errors
from likewise.pairs.formats.sqlite import quoted

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

SLICE_ROWS = 1 << 25
"""Rows of a Parquet file that are done at a time: what a kill costs at most."""
MISSING = "compact needs DuckDB; install it with pip install 'likewise[duckdb]'."


@dataclass(frozen=True)
class Source:
    """A piece of the input: some rows of a file, or of a query's result."""

    name: str
    """For messages: the file, or "the query"."""
    table: str
    """SQL that gives the rows."""
    columns: dict[str, str]
    """SQL types of the columns there, by name."""


@contextmanager
def duckdb_errors() -> Iterator[None]:
    """DuckDB's complaint as one sentence of ours."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = " ".join(str(error).split("\n\n")[0].split()).rstrip(".")
        raise InputError(f"DuckDB cannot read the judgements: {reason}.") from error


def connect(work: Path, memory: str, threads: int | None) -> duckdb.DuckDBPyConnection:
    """A database in memory that spills into ``work`` beyond ``memory``."""
    try:
        import duckdb
    except ImportError as error:
        raise InputError(MISSING) from error
    connection = duckdb.connect()
    with duckdb_errors():
        connection.execute(f"SET memory_limit = {literal(memory)}")
        connection.execute(f"SET temp_directory = {literal(str(work / 'spill'))}")
        # Nothing may depend on the order of rows: what is written is sorted.
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        if threads is not None:
            connection.execute(f"SET threads = {threads}")
    return connection


def open_sources(
    connection: duckdb.DuckDBPyConnection,
    inputs: Sequence[Path],
    query: str | None,
    names: ColumnNames,
    format: str | None,
) -> list[Source]:
    """Every piece of the inputs, or the query; columns that must be there are."""
    if query is not None:
        found = [_checked(connection, "the query", f"({query.strip().rstrip(';')})", names)]
    else:
        found = [
            source
            for number, path in enumerate(inputs)
            for source in _open(connection, number, path, names, format)
        ]
    if not found:
        raise InputError("there is nothing to compact: give a file, several, or --query.")
    return found


def _open(
    connection: duckdb.DuckDBPyConnection,
    number: int,
    path: Path,
    names: ColumnNames,
    format: str | None,
) -> Iterator[Source]:
    with path_errors(path):
        kind = file_kind(path)
    long = {names.left, names.right, names.same}
    plain = format in (None, "pairs")
    if plain and kind == "parquet" and long <= set(ParquetTable(path).columns):
        for part in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
            yield from _parquet_slices(connection, part, names)
    elif plain and kind == "csv" and (csv := CsvTable(path)).is_plain and long <= set(csv.columns):
        table = (
            f"read_csv({literal(str(path))}, all_varchar = true, header = true, "
            f"delim = {literal(csv.delimiter)}, quote = '\"', escape = '\"')"
        )
        yield _checked(connection, path.name, table, names)
    else:
        view = f"input_{number}"
        connection.register(view, _in_memory(path, names, format))
        yield _checked(connection, path.name, view, ColumnNames())


def _parquet_slices(
    connection: duckdb.DuckDBPyConnection, part: Path, names: ColumnNames
) -> Iterator[Source]:
    rows = ParquetTable(part).count_rows()
    file = f"read_parquet({literal(str(part))}, file_row_number = true)"
    whole = _checked(connection, part.name, file, names)
    for start in range(0, max(rows, 1), SLICE_ROWS):
        if rows <= SLICE_ROWS:
            yield whole
        else:
            stop = min(start + SLICE_ROWS, rows)
            within = f"file_row_number >= {start} AND file_row_number < {stop}"
            yield Source(whole.name, f"(SELECT * FROM {whole.table} WHERE {within})", whole.columns)


def _in_memory(path: Path, names: ColumnNames, format: str | None) -> pa.Table:
    """A file of another format, by our own reader, its ids as text."""
    import pyarrow as pa

    pairs = Pairs.read(
        path,
        format=format,
        left=names.left,
        right=names.right,
        same=names.same,
        annotator=names.annotator,
        weight=names.weight,
    )
    columns: dict[str, pa.Array] = {}
    for name, column in pairs.columns().items():
        if column is None:
            continue
        known = pairs.annotator_names if name == "annotator" else pairs.item_ids
        if name in ("left", "right", "annotator") and known is not None:
            columns[name] = pa.array(known.tolist(), pa.string()).take(pa.array(column))
        else:
            columns[name] = pa.array(column)
    return pa.table(columns)


def _checked(
    connection: duckdb.DuckDBPyConnection, name: str, table: str, names: ColumnNames
) -> Source:
    """A source under our names for its columns, once it is known to have them."""
    with duckdb_errors():
        described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    if missing := [n for n in (names.left, names.right, names.same) if n not in types]:
        raise InputError(
            f"{name} lacks the column {', '.join(missing)}; the columns there are "
            f"{', '.join(list(types)[:20])}; say which is which with --left, --right and --same."
        )
    usual = ColumnNames()
    ours = {
        own: theirs
        for own, theirs in (
            ("left", names.left),
            ("right", names.right),
            ("same", names.same),
            ("annotator", names.annotator),
            ("weight", names.weight),
        )
        if theirs in types
    }
    if names.annotator != usual.annotator and "annotator" not in ours:
        raise InputError(f"{name} lacks the column {names.annotator}.")
    picked = ", ".join(f"{quoted(theirs)} AS {quoted(own)}" for own, theirs in ours.items())
    row = ", file_row_number" if "file_row_number" in types else ""
    columns = {own: types[theirs] for own, theirs in ours.items()}
    return Source(name, f"(SELECT {picked}{row} FROM {table})", columns)


def literal(text: str) -> str:
    """SQL text."""
    return "'" + text.replace("'", "''") + "'"
