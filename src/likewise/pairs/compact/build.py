"""`compact`: tables of judgements that do not fit in memory, through DuckDB, in three stages.

1. What there is: answers in whatever words, names of items and people. Names get numbers.
2. Every row becomes one number (`likewise.pairs.compact.packing`) in the file of its bucket.
3. Each bucket is sorted, which brings repeats together, and written as a part.

What is finished is kept in the folder until all is: a killed run goes on from there. Parts are
sorted, so that neither a kill nor the order in which threads finish changes a byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import InputError
from likewise.io.atomic import check_vacant, remove_leftovers, write_json
from likewise.io.json import Json, JsonObject, read_json_object
from likewise.io.lock import exclusive
from likewise.pairs.compact.coding import write_buckets
from likewise.pairs.compact.folder import JUDGEMENTS, CompactFolder, Counts
from likewise.pairs.compact.packing import Packing
from likewise.pairs.compact.parts import write_part
from likewise.pairs.compact.sources import Source, connect, open_sources
from likewise.pairs.compact.survey import Survey, survey
from likewise.pairs.formats.long import ColumnNames
from likewise.pairs.formats.paths import COMPACT_MANIFEST, is_compact

if TYPE_CHECKING:
    import duckdb

WORK = ".unfinished"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What is compacted, and where to."""

    inputs: tuple[Path, ...]
    """Files or folders in any format that `likewise.pairs.formats` reads."""
    out: Path
    """The folder; one that a killed run left goes on."""
    query: str | None = None
    """SQL in place of the inputs, for DuckDB: a SELECT with the columns left, right, same."""
    names: ColumnNames = field(default_factory=ColumnNames)
    """What the columns are called."""
    format: str | None = None
    """Of the inputs, where it is not to be recognised."""
    memory: str = "2GB"
    """What DuckDB may hold before it spills to disk; sorting a bucket takes some 100 MB beside."""
    threads: int | None = None
    """Of DuckDB; by default as many as cores."""

    @property
    def identity(self) -> JsonObject:
        """What decides the result, cheaply: names and sizes, no digest of a hundred gigabytes."""
        inputs: list[Json] = [_record(path) for path in self.inputs]
        return {
            "inputs": inputs,
            "query": self.query,
            "columns": dict(asdict(self.names)),
            "format": self.format,
        }


def compact(job: Job, tell: Tell = lambda _: None) -> CompactFolder:
    """Compact tables of judgements into a folder that `Pairs.read` takes."""
    if (job.query is None) == (not job.inputs):
        raise InputError("give files to compact, or --query, and not both.")
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(job.out, "is being written by another process; wait for it."):
        work = _begin(job)
        if work is None:
            return CompactFolder.open(job.out)
        connection = connect(work, job.memory, job.threads)
        try:
            return _compact(job, work, connection, tell)
        finally:
            connection.close()


def _compact(
    job: Job, work: Path, connection: duckdb.DuckDBPyConnection, tell: Tell
) -> CompactFolder:
    sources = open_sources(connection, job.inputs, job.query, job.names, job.format)
    found = _survey(sources, job.out, work, connection, tell)
    if not found.judgements:
        unanswered = f": all {found.dropped} answers are blank or unsure" if found.dropped else ""
        raise InputError(f"there is no judgement in the input{unanswered}.")
    packing = Packing.for_table(found.items, found.annotators, found.judgements)
    for number, source in enumerate(sources):
        target = work / f"rows-{number:05d}"
        if not target.exists():
            write_buckets(connection, source, found, packing, target)
            tell(f"numbered {number + 1} of {len(sources)} pieces")
    kept = 0
    (job.out / JUDGEMENTS).mkdir(exist_ok=True)
    for bucket in range(packing.n_buckets):
        part = job.out / JUDGEMENTS / f"part-{bucket:05d}.parquet"
        kept += write_part(work, bucket, packing, found.weighted, part)
        tell(f"merged {bucket + 1} of {packing.n_buckets} parts")
    counts = Counts(
        rows=found.rows,
        dropped=found.dropped,
        judgements=found.judgements,
        kept=kept,
        items=found.items,
        annotators=found.annotators,
    )
    folder = CompactFolder(job.out, counts, found.weighted)
    folder.write_manifest(job.identity)
    shutil.rmtree(work)
    return folder


def _begin(job: Job) -> Path | None:
    """The folder of what is unfinished, new or a killed run's; None where all is done already."""
    work = job.out / WORK
    if is_compact(job.out):
        made = read_json_object(job.out / COMPACT_MANIFEST, hint="remove the folder").get("made_of")
        if made != job.identity:
            raise InputError(f"{job.out} holds another compacted table; choose another name.")
        shutil.rmtree(work, ignore_errors=True)  # killed when all was done but this
        return None
    begun_with = job.identity | {"changed": [_last_change(path) for path in job.inputs]}
    if (work / "job.json").exists():
        if read_json_object(work / "job.json", hint=f"remove {job.out}") != begun_with:
            raise InputError(
                f"{job.out} holds what a killed run of another job left; choose another name, or "
                "remove that folder."
            )
        shutil.rmtree(work / "spill", ignore_errors=True)
        for folder in (work, job.out, job.out / JUDGEMENTS):
            remove_leftovers(folder, "")
        return work
    remove_leftovers(work, "job.json")  # killed while it wrote what it is about, or before
    if not (work.is_dir() and not any(work.iterdir())):
        check_vacant(job.out)
    work.mkdir(parents=True, exist_ok=True)
    write_json(work / "job.json", begun_with)
    return work


def _survey(
    sources: list[Source],
    out: Path,
    work: Path,
    connection: duckdb.DuckDBPyConnection,
    tell: Tell,
) -> Survey:
    """What there is, from the file that an earlier run left or anew."""
    file = work / "survey.json"
    if file.exists():
        return Survey.from_dict(read_json_object(file, hint=f"remove {out}"))
    found = survey(connection, sources, out, tell)
    write_json(file, asdict(found))
    return found


def _record(path: Path) -> dict[str, Json]:
    if not path.exists():
        raise InputError(f"there is no file {path}.")
    return {"name": path.name, "bytes": sum(file.stat().st_size for file in _files(path))}


def _last_change(path: Path) -> int:
    return max((file.stat().st_mtime_ns for file in _files(path)), default=0)


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]
