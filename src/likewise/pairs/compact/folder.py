"""A folder of compacted judgements: its layout, and how it is read. Needs no DuckDB.

``compact.json`` tells the counts and is written last: a folder with it is whole. ``items.parquet``
and ``annotators.parquet`` hold the names behind the numbers, sorted; ``judgements/part-*.parquet``
the judgements, a row for each answer that a person gave about a pair: left below right, sorted,
with ``count``, how often it was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.atomic import write_json
from likewise.io.dictionary import Coded
from likewise.io.json import JsonObject, read_json_object
from likewise.io.limits import text_array
from likewise.io.tables import ParquetTable, arrow_errors
from likewise.pairs.columns import Column
from likewise.pairs.container import Pairs
from likewise.pairs.formats.long import Items, assemble
from likewise.pairs.formats.paths import COMPACT_MANIFEST

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS, PEOPLE, JUDGEMENTS = "items.parquet", "annotators.parquet", "judgements"
VERSION = 1


@dataclass(frozen=True)
class Counts:
    """What a compacted table was, and is."""

    rows: int
    """Rows that were read."""
    dropped: int
    """Rows without an answer."""
    judgements: int
    """Rows with one."""
    kept: int
    """Rows that are left of them once repeats are counts."""
    items: int
    """Items there are."""
    annotators: int
    """People; 0 where the rows do not say."""


@dataclass(frozen=True)
class CompactFolder:
    """Judgements that `likewise.pairs.compact.compact` wrote."""

    path: Path
    """The folder."""
    counts: Counts
    """What is in it."""
    weighted: bool
    """Whether the rows had weights: these are summed in the column ``weight``."""

    @classmethod
    def open(cls, path: Path) -> CompactFolder:
        """The folder at ``path``, if it is whole."""
        manifest = read_json_object(path / COMPACT_MANIFEST, hint="compact the table again")
        if manifest.get("version") != VERSION:
            raise InputError(
                f"{path} was written by a version of Likewise that this one does not know "
                f"(format {manifest.get('version')}, not {VERSION}); compact the table again."
            )
        found = manifest.get("counts")
        known = found if isinstance(found, dict) else {}
        counts = {k: v for k, v in known.items() if isinstance(v, int)}
        if set(counts) != {field.name for field in fields(Counts)}:
            raise InputError(
                f"{path / COMPACT_MANIFEST} lacks its counts; compact the table again."
            )
        return cls(path, Counts(**counts), bool(manifest.get("weighted")))

    def write_manifest(self, made_of: JsonObject) -> None:
        """Say that the folder is whole, and what it was made of."""
        made = {"version": VERSION, "counts": asdict(self.counts), "weighted": self.weighted}
        write_json(self.path / COMPACT_MANIFEST, made | {"made_of": made_of})

    def names(self, file: str) -> NDArray[np.str_] | None:
        """The names in `ITEMS` or `PEOPLE`; None where the numbers are all there is."""
        import pyarrow.parquet as pq

        if not (self.path / file).exists():
            return None
        with arrow_errors(self.path / file):
            column = pq.read_table(self.path / file, columns=["name"]).column(0)
        return text_array(column.to_pylist(), "a column")

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The judgements, part by part."""
        table = ParquetTable(self.path / JUDGEMENTS)
        with arrow_errors(self.path):
            yield from table.batches(columns, ())

    def read(self, about: Items | None = None) -> Pairs:
        """As `Pairs`, a repeated answer once and with as much weight as there were.

        ``about`` is what is known of the items.
        """
        people, items = self.names(PEOPLE), self.names(ITEMS)
        about = about or Items()
        columns = self._columns(people is not None)
        self._check_codes(columns, {"left": items, "right": items, "annotator": people})
        merged = self.weighted or self.counts.kept < self.counts.judgements
        left, right = columns["left"], columns["right"]
        pairs = assemble(
            left if items is None else Coded(left, items),
            right if items is None else Coded(right, items),
            columns["same"],
            np.ones(len(left), bool),
            None if people is None else Coded(columns["annotator"], people),
            columns["weight" if self.weighted else "count"] if merged else None,
            replace(about, named=about.named or items is not None),
        )
        return pairs._like(pairs.columns(), dropped=self.counts.dropped)

    def _check_codes(
        self, columns: dict[str, Column], names: dict[str, NDArray[np.str_] | None]
    ) -> None:
        for column, known in names.items():
            codes = columns.get(column)
            if codes is None or known is None or not len(codes):
                continue
            if codes.min() < 0 or codes.max() >= len(known):
                raise InputError(
                    f"{self.path} is damaged: {column} refers to a name that is not there; compact "
                    "the table again."
                )

    def _columns(self, people: bool) -> dict[str, Column]:
        """Whole columns, each filled in place: nothing is held twice."""
        names = ["left", "right", "same", "weight" if self.weighted else "count"]
        names += ["annotator"] if people else []
        kinds = {"same": bool, "weight": np.float32, "count": np.float32}
        columns = {n: np.empty(self.counts.kept, kinds.get(n, np.int32)) for n in names}
        start = 0
        for batch in self.batches(names):
            stop = start + len(batch)
            if stop > self.counts.kept:
                break
            for name, column in columns.items():
                column[start:stop] = batch.column(name).to_numpy(zero_copy_only=False)
            start = stop
        if start != self.counts.kept:
            raise InputError(
                f"{self.path} does not hold the {self.counts.kept:,} rows that it tells of; "
                "compact the table again."
            )
        return columns
