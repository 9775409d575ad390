"""Writing judgements: whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likewise.atomic import replacing
from likewise.edges import chunks
from likewise.errors import InputError
from likewise.pairs import Pairs

_BATCH_ROWS = 1 << 20


def write_pairs(pairs: Pairs, path: str | Path) -> None:
    """Write judgements as CSV or Parquet, by the name's ending; an older file is replaced at once.

    Columns left, right, same (1 or 0) and, where there, annotator and weight; items by their own
    names where ``pairs.item_ids`` has them.
    """
    import pyarrow.parquet as pq
    from pyarrow import csv as arrow_csv

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise InputError(f"{target.name} must end in .csv or .parquet, to say how to write it.")
    listed = pairs.explicit()
    batches = (_batch(listed, part) for part in chunks(len(listed), _BATCH_ROWS))
    schema = _batch(listed, slice(0, 0)).schema
    writer: Any = pq.ParquetWriter if suffix == ".parquet" else arrow_csv.CSVWriter
    with replacing(target) as temporary, writer(str(temporary), schema) as out:
        for batch in batches:
            out.write_batch(batch)


def _batch(pairs: Pairs, rows: slice) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {
        "left": pairs.left[rows],
        "right": pairs.right[rows],
        "same": pairs.same[rows].astype(np.int8),
    }
    if pairs.item_ids is not None:
        columns["left"] = pa.array(pairs.item_ids[columns["left"]], pa.string())
        columns["right"] = pa.array(pairs.item_ids[columns["right"]], pa.string())
    if pairs.annotator is not None and pairs.annotator_names is not None:
        names = pairs.annotator_names[pairs.annotator[rows]]
        columns["annotator"] = pa.array(names, pa.string())
    if pairs.weight is not None:
        columns["weight"] = pairs.weight[rows]
    return pa.record_batch(columns)
