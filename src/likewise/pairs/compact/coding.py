"""The second stage of `compact`: every row a number, in the file of its bucket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from likewise.io.atomic import new_folder
from likewise.pairs.compact.folder import ITEMS, PEOPLE
from likewise.pairs.compact.packing import Packing, by_bucket
from likewise.pairs.compact.sources import Source, duckdb_errors, literal
from likewise.pairs.compact.survey import NAMES, WRITTEN_POSITIONS, Survey, person

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 1 << 20


def write_buckets(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    found: Survey,
    packing: Packing,
    target: Path,
) -> None:
    """The answered rows of a source as a new folder of files, one for each bucket."""
    names = ["bucket", "key", *(["weight"] if found.weighted else [])]
    with duckdb_errors(), new_folder(target) as folder:
        rows = connection.sql(coding_query(source, found, packing, target.parent.parent))
        for batch in rows.to_arrow_reader(BATCH_ROWS):
            bucket, *columns = (batch.column(name).to_numpy() for name in names)
            for number, parts in by_bucket(bucket, columns, packing.n_buckets):
                for name, values in zip(names[1:], parts, strict=True):
                    with (folder / f"{number:05d}.{name}").open("ab") as file:
                        values.tofile(file)


def coding_query(source: Source, found: Survey, packing: Packing, out: Path) -> str:
    """SQL: the bucket, the key and, where there are weights, the weight of each answered row."""
    joins, ends = "", ['rows."left"::INTEGER', 'rows."right"::INTEGER']
    if found.ids == WRITTEN_POSITIONS:
        ends = [
            f"split_part(rows.\"{end}\"::VARCHAR, '.', 1)::INTEGER" for end in ("left", "right")
        ]
    elif found.ids == NAMES:
        key = "hash({})" if found.hashed else "{}"
        file = f"read_parquet({literal(str(out / ITEMS))})"
        items = f"(SELECT {key.format('name')} AS key, code FROM {file})"
        for table, end in (("one", "left"), ("other", "right")):
            name = key.format(f'rows."{end}"::VARCHAR')
            joins += f" JOIN {items} AS {table} ON {table}.key = {name}"
        ends = ["one.code", "other.code"]
    if found.annotators:
        file = f"read_parquet({literal(str(out / PEOPLE))})"
        joins += f" JOIN {file} AS people ON people.name = {person(source)}"
    who = "people.code" if found.annotators else "0"
    weight = "rows.weight::DOUBLE" if "weight" in source.columns else "1::DOUBLE"
    answered = _among(found.same_words + found.different_words)
    inner = f"""
        SELECT least({ends[0]}, {ends[1]}) AS low, greatest({ends[0]}, {ends[1]}) AS high,
               {who} AS who, {_among(found.same_words)} AS said, {weight} AS weight
        FROM {source.table} AS rows {joins} WHERE {answered}"""
    key = packing.key_sql("low", "high", "who", "said")
    columns = f"{packing.bucket_sql('low')} AS bucket, {key} AS key"
    return f"SELECT {columns}{', weight' if found.weighted else ''} FROM ({inner})"


def _among(words: list[str]) -> str:
    """SQL: whether a row's answer is one of the words."""
    listed = ", ".join(literal(word) for word in words)
    return f"coalesce(rows.same::VARCHAR IN ({listed}), false)" if words else "false"
