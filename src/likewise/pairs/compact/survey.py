"""The first stage of `compact`: which answers, items and people there are; names get numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.errors import InputError, RowError
from likewise.io.atomic import replacing
from likewise.io.json import JsonObject
from likewise.pairs.answers import NO_ANSWER, SAME, parse_coded_answers
from likewise.pairs.columns import MAX_ITEMS
from likewise.pairs.compact.folder import ITEMS, PEOPLE
from likewise.pairs.compact.sources import Source, duckdb_errors, literal
from likewise.pairs.formats.ids import WHOLE

if TYPE_CHECKING:
    import duckdb

MANY_WORDS = 1000  # answers in so many words are no answers
NAMES, POSITIONS, WRITTEN_POSITIONS = "names", "positions", "written positions"


@dataclass(frozen=True)
class Survey:
    """What the input holds."""

    rows: int
    """Rows there are."""
    dropped: int
    """Rows without an answer."""
    same_words: list[str]
    """The words for "same" in the input."""
    different_words: list[str]
    """The words for "different"."""
    ids: str
    """How items are named: `NAMES`, `POSITIONS`, or `WRITTEN_POSITIONS`, whole numbers as text."""
    items: int
    """Items there are."""
    annotators: int
    """People; 0 where no input says."""
    weighted: bool
    """Whether an input has weights."""
    hashed: bool
    """Whether items can be looked up by a hash of their names, which takes half the time."""

    @property
    def judgements(self) -> int:
        """Rows with an answer."""
        return self.rows - self.dropped

    @classmethod
    def from_dict(cls, values: JsonObject) -> Survey:
        """What `dataclasses.asdict` made of one."""
        if missing := [f.name for f in fields(cls) if f.name not in values]:
            raise InputError(f"survey.json lacks {missing[0]}; remove the folder and begin again.")
        return cls(**{f.name: values[f.name] for f in fields(cls)})  # type: ignore[arg-type]


def survey(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    out: Path,
    tell: Callable[[str], None],
) -> Survey:
    """Look at all input; writes the names of items and people into ``out``."""
    with duckdb_errors():
        same, different, rows, dropped = _answers(connection, sources)
        tell(f"found {rows:,} rows, {dropped:,} of them without an answer")
        annotators = _people(connection, sources, out / PEOPLE)
        ids, items = _items(connection, sources, out / ITEMS)
        tell(f"found {items:,} items and {annotators:,} people")
        weighted = _check_weights(connection, sources)
        hashed = ids == NAMES and hashes_differ(connection, out / ITEMS)
    return Survey(
        rows=rows,
        dropped=dropped,
        same_words=same,
        different_words=different,
        ids=ids,
        items=items,
        annotators=annotators,
        weighted=weighted,
        hashed=hashed,
    )


def hashes_differ(connection: duckdb.DuckDBPyConnection, file: Path) -> bool:
    """Whether no two names of a file share a hash: then equal hashes mean equal names."""
    counted = f"SELECT count(DISTINCT hash(name)), count(*) FROM read_parquet({literal(str(file))})"
    distinct, count = connection.execute(counted).fetchall()[0]
    return bool(distinct == count)


def together(sources: Sequence[Source], *selected: str) -> str:
    """SQL for what is selected from every source."""
    queries = [f"SELECT {what} FROM {source.table}" for what in selected for source in sources]
    return " UNION ALL ".join(queries)


def _answers(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]
) -> tuple[list[str], list[str], int, int]:
    """``(words for same, words for different, rows, rows without an answer)``."""
    every = together(sources, "same::VARCHAR AS word")
    found = connection.execute(
        f"SELECT coalesce(word, ''), count(*) FROM ({every}) GROUP BY 1 ORDER BY 1 "
        f"LIMIT {MANY_WORDS}"
    ).fetchall()
    words = [str(word) for word, _ in found]
    try:
        parse_coded_answers(np.arange(len(words)), words)
    except RowError as error:
        raise InputError(f"{_names(sources)}: {error.problem}") from None
    plain = {word: word.strip().lower() for word in words}
    same = [word for word in words if plain[word] in SAME]
    blank = {word for word in words if plain[word] in NO_ANSWER}
    different = [word for word in words if word not in blank and word not in same]
    dropped = sum(int(count) for word, count in found if word in blank)
    return same, different, sum(int(count) for _, count in found), dropped


def _people(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], file: Path) -> int:
    if not any("annotator" in source.columns for source in sources):
        return 0
    names = " UNION ALL ".join(
        f"SELECT {person(source)} AS name FROM {source.table}" for source in sources
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE people AS SELECT DISTINCT name FROM ({names})"
    )
    return _write_names(connection, "people", file)


def person(source: Source) -> str:
    """SQL for the name of a row's person, "" where the row does not say."""
    return "coalesce(annotator::VARCHAR, '')" if "annotator" in source.columns else "''"


def _items(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], file: Path
) -> tuple[str, int]:
    """How items are named, and their number."""
    types = {source.columns[end] for source in sources for end in ("left", "right")}
    if all("INT" in kind and "(" not in kind for kind in types):
        ends = together(sources, '"left" AS code', '"right" AS code')
        return POSITIONS, _positions(connection, sources, f"SELECT code FROM ({ends})")
    ends = together(sources, '"left"::VARCHAR AS name', '"right"::VARCHAR AS name')
    connection.execute(f"CREATE OR REPLACE TEMP TABLE items AS SELECT DISTINCT name FROM ({ends})")
    blank, whole, short, count = connection.execute(
        f"""SELECT count(*) FILTER (name IS NULL OR name = ''),
                   count(*) FILTER (regexp_full_match(name, '{WHOLE}')),
                   count(*) FILTER (length(name) <= 18), count(*) FROM items"""
    ).fetchall()[0]
    if blank:
        raise InputError(
            f"{_names(sources)}: left or right is blank in a row, but must be an item."
        )
    if whole == short == count:
        written = "SELECT split_part(name, '.', 1)::BIGINT AS code FROM items"
        return WRITTEN_POSITIONS, _positions(connection, sources, written)
    if 2 * whole > count > whole:
        odd = connection.execute(
            f"SELECT min(name) FROM items WHERE NOT regexp_full_match(name, '{WHOLE}')"
        ).fetchall()[0][0]
        raise InputError(
            f"{_names(sources)}: an item is {odd!r}, not a whole number like most others; mend it, "
            "or give every item a name."
        )
    return NAMES, _write_names(connection, "items", file)


def _positions(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], codes: str) -> int:
    """The number of items whose positions are the ``codes`` of a query."""
    least, most, blank = connection.execute(
        f"SELECT min(code), max(code), count(*) FILTER (code IS NULL) FROM ({codes})"
    ).fetchall()[0]
    if blank:
        raise InputError(
            f"{_names(sources)}: left or right is blank in a row, but must be an item."
        )
    if least is None:
        return 0
    if least < 0:
        raise InputError(f"{_names(sources)}: an item is {least}, but item indices start at 0.")
    if most >= MAX_ITEMS:
        raise InputError(
            f"{_names(sources)}: an item is {most}, too large for an item's position; if these are "
            "ids, cast them to text in a query (--query)."
        )
    return int(most) + 1


def _write_names(connection: duckdb.DuckDBPyConnection, table: str, file: Path) -> int:
    """Number the names of a table in sorted order; returns how many there are."""
    import pyarrow.parquet as pq

    numbered = connection.sql(
        f"SELECT name, (row_number() OVER (ORDER BY name) - 1)::INTEGER AS code FROM {table} "
        "ORDER BY name"
    ).to_arrow_reader(1_000_000)
    count = 0
    with replacing(file) as temporary, pq.ParquetWriter(temporary, numbered.schema) as writer:
        for batch in numbered:
            writer.write_batch(batch)
            count += len(batch)
    connection.execute(f"DROP TABLE {table}")
    return count


def _check_weights(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> bool:
    """Whether there are weights; refuses what is none."""
    weighted = [source for source in sources if "weight" in source.columns]
    if weighted:
        every = together(weighted, "TRY_CAST(weight AS DOUBLE) AS weight")
        good = "weight >= 0 AND isfinite(weight)"
        bad, above = connection.execute(
            f"SELECT count(*) FILTER (NOT coalesce({good}, false)), count(*) FILTER (weight > 0) "
            f"FROM ({every})"
        ).fetchall()[0]
        if bad:
            raise InputError(
                f"{_names(weighted)}: {bad:,} weights are blank, negative or no numbers; a weight "
                "must be 0 or more."
            )
        if not above:
            raise InputError(f"{_names(weighted)}: every judgement has weight 0, so none counts.")
    return bool(weighted)


def _names(sources: Sequence[Source]) -> str:
    """Of the inputs, for a message."""
    names = list(dict.fromkeys(source.name for source in sources))
    return names[0] if len(names) == 1 else f"{names[0]} or another of {len(names)} inputs"
