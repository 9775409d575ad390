"""Rows that are in memory already, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


class RecordTable:
    """Rows already in memory (from JSON or SQLite), one mapping each."""

    def __init__(
        self, path: Path, records: Sequence[Mapping[str, object]], row_name: str = "record"
    ) -> None:
        self.path = path
        self.columns = list(dict.fromkeys(name for record in records for name in record))
        self._records = records
        self._row_name = row_name

    def batches(self, names: Sequence[str], text: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        columns = {name: [record.get(name) for record in self._records] for name in names}
        self._refuse_bytes(columns)
        as_text = {name: [_plain(v) for v in column] for name, column in columns.items()}
        arrays = {
            name: pa.array(as_text[name], pa.string())
            if name in text or _is_text(column)
            else pa.array(column)
            for name, column in columns.items()
        }
        yield pa.record_batch(arrays)

    def _refuse_bytes(self, columns: dict[str, list[object]]) -> None:
        for name, column in columns.items():
            for row, value in enumerate(column):
                if isinstance(value, bytes):
                    place = f"{self.path.name}, {self.where(row)}"
                    raise InputError(f"{place}: {name} holds bytes; it must be text or a number.")

    def where(self, row: int) -> str:
        return f"{self._row_name} {row}"


def _is_text(column: list[object]) -> bool:
    return any(isinstance(value, str) for value in column)


def _plain(value: object) -> str | None:
    return None if value is None else str(value)
