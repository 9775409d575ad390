"""The third stage of `compact`: a bucket sorted, its repeats merged, written as a part."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.atomic import replacing
from likewise.pairs.compact.packing import Keys, Packing, merged
from likewise.pairs.edges import chunks

ROW_GROUP = 1_000_000
_Number = TypeVar("_Number", np.uint64, np.float64)


def write_part(work: Path, bucket: int, packing: Packing, weighted: bool, part: Path) -> int:
    """Write the part of a bucket unless it is there already; returns its number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if part.exists():
        return int(pq.read_metadata(part).num_rows)
    key, first, total, weight = _merge_bucket(work, bucket, weighted)
    schema = pa.schema(
        {"left": pa.int32(), "right": pa.int32(), "same": pa.bool_()}
        | ({"annotator": pa.int32()} if packing.person_bits else {})
        | {"count": pa.int32()}
        | ({"weight": pa.float32()} if weighted else {})
    )
    with (
        replacing(part) as temporary,
        pq.ParquetWriter(temporary, schema, use_dictionary=["annotator", "count"]) as writer,
    ):
        for rows in chunks(len(key), ROW_GROUP):
            columns = packing.unpack(key[rows], bucket)
            _refuse_self_pairs(columns["left"], columns["right"])
            after = np.append(first[rows.start + 1 : rows.stop + 1], total)
            columns["count"] = (after[: len(key[rows])] - first[rows]).astype(np.int32)
            if weight is not None:
                columns["weight"] = weight[rows]
            batch = pa.record_batch([columns[n] for n in schema.names], schema=schema)
            writer.write_batch(batch, row_group_size=ROW_GROUP)
    return len(key)


def _merge_bucket(
    work: Path, bucket: int, weighted: bool
) -> tuple[Keys, NDArray[np.int64], int, NDArray[np.float32] | None]:
    """``(distinct keys, where each first stood, rows there were, weight of each)``, sorted."""
    folders = sorted(work.glob("rows-*"))
    key = _read(folders, f"{bucket:05d}.key", np.uint64)
    if not weighted:
        key.sort()
        return *merged(key), len(key), None
    weight = _read(folders, f"{bucket:05d}.weight", np.float64)
    # By weight within a key: a sum of floats must not depend on the order of the rows.
    order = np.lexsort((weight, key))
    distinct, first = merged(key[order])
    total = np.add.reduceat(weight[order], first) if len(first) else np.empty(0)
    return distinct, first, len(key), total.astype(np.float32)


def _read(folders: list[Path], name: str, kind: type[_Number]) -> NDArray[_Number]:
    """A bucket's numbers out of every source's folder."""
    files = [folder / name for folder in folders if (folder / name).exists()]
    parts = [np.fromfile(file, kind) for file in files]
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _refuse_self_pairs(left: NDArray[np.generic], right: NDArray[np.generic]) -> None:
    loop = left == right
    if loop.any():
        raise InputError(
            f"item number {left[np.argmax(loop)]} is compared with itself; remove such rows, and "
            "the folder of this run, and begin again."
        )
