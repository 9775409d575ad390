"""Writing judgements: whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.atomic import replacing
from likewise.io.spreadsheets import harmless
from likewise.pairs.container import Pairs
from likewise.pairs.edges import chunks
from likewise.pairs.formats.paths import path_errors

if TYPE_CHECKING:
    import pyarrow as pa

Names = NDArray[np.str_] | None

_BATCH_ROWS = 1 << 20


def write_pairs(pairs: Pairs, path: str | Path) -> None:
    """Write judgements as CSV or Parquet, by the name's ending; an older file is replaced at once.

    Columns left, right, same (1 or 0) and, where there, annotator and weight; items by their own
    names where ``pairs.item_ids`` has them. In CSV, a name that a spreadsheet would run as a
    formula gets an apostrophe in front; Parquet keeps every name as it is.
    """
    import pyarrow.parquet as pq
    from pyarrow import csv as arrow_csv

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise InputError(f"{target.name} must end in .csv or .parquet, to say how to write it.")
    listed = pairs.explicit()
    shown = _unchanged if suffix == ".parquet" else _all_harmless
    people, items = shown(listed.annotator_names), shown(listed.item_ids)
    batches = (_batch(listed, part, people, items) for part in chunks(len(listed), _BATCH_ROWS))
    writer = pq.ParquetWriter if suffix == ".parquet" else arrow_csv.CSVWriter
    with path_errors(target), replacing(target) as temporary:
        try:
            schema = _batch(listed, slice(0, 0), people, items).schema
            with writer(str(temporary), schema) as out:
                for batch in batches:
                    out.write_batch(batch)
        except UnicodeError as error:
            raise InputError(
                f"{target.name} cannot hold half a character (a lone surrogate) in an id or a "
                "name; mend the text that has it."
            ) from error


def _batch(pairs: Pairs, rows: slice, people: Names, items: Names) -> pa.RecordBatch:
    import pyarrow as pa

    columns = {name: c[rows] for name, c in pairs.columns().items() if c is not None}
    columns["same"] = columns["same"].astype(np.int8)
    for name, words in (("left", items), ("right", items), ("annotator", people)):
        if words is not None:
            columns[name] = pa.array(words[columns[name]], pa.string())
    return pa.record_batch(columns)


def _unchanged(names: Names) -> Names:
    return names


def _all_harmless(names: Names) -> Names:
    return None if names is None else np.array([harmless(n) for n in names.tolist()], np.str_)
