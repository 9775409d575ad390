"""Good files of every kind that lost their end, their beginning or their middle on the way."""

from __future__ import annotations

import io
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from malformed.case import Bench, Case, Make

ROWS = 60


def _npy(path: Path) -> None:
    np.save(path, np.ones((ROWS, 64), np.float32))


def _npz(path: Path) -> None:
    np.savez(path, items=np.random.default_rng(0).normal(size=(ROWS, 64)))


def _packed(path: Path) -> None:
    np.savez_compressed(path, items=np.random.default_rng(0).normal(size=(ROWS, 64)))


def _items(path: Path) -> None:
    pq.write_table(pa.table({f"c{k}": np.ones(ROWS) for k in range(64)}), path)


def _judgements(path: Path) -> None:
    left = np.arange(ROWS)
    pq.write_table(pa.table({"left": left, "right": left + 1, "same": left % 2}), path)


def _sqlite(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE j ("left", "right", same)')
        rows = [(k, k + 1, k % 2) for k in range(3000)]
        database.executemany("INSERT INTO j VALUES (?, ?, ?)", rows)
    database.close()


def _json(path: Path) -> None:
    rows = ",".join(f'{{"left": {k}, "right": {k + 1}, "same": {k % 2}}}' for k in range(ROWS))
    path.write_text(f"[{rows}]")


def _picture(format: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format)
        path.write_bytes(buffer.getvalue())

    return write


# By what it is: the file's name, how it is written, and the command that meets it.
KINDS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "npy": ("items.npy", _npy, "predict"),
    "npz": ("items.npz", _npz, "predict"),
    "packed npz": ("items.npz", _packed, "predict"),
    "parquet items": ("items.parquet", _items, "predict"),
    "parquet judgements": ("pairs.parquet", _judgements, "describe"),
    "parquet to group": ("pairs.parquet", _judgements, "group"),
    "sqlite": ("pairs.db", _sqlite, "describe"),
    "json": ("pairs.json", _json, "describe"),
    "png": ("photos/a.png", _picture("PNG"), "predict"),
    "jpeg": ("photos/a.jpg", _picture("JPEG"), "predict"),
    "gif": ("photos/a.gif", _picture("GIF"), "predict"),
    "bmp": ("photos/a.bmp", _picture("BMP"), "predict"),
    "tiff": ("photos/a.tif", _picture("TIFF"), "predict"),
    "webp": ("photos/a.webp", _picture("WEBP"), "predict"),
}
CUT = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9)  # the share that arrived
SAVED = ("model/model.json", "model/weights.safetensors", "items.npz", "report.json")


def cases() -> Iterator[Case]:
    """All of them."""
    for kind in KINDS:
        for share in CUT:
            yield Case(f"damage/{kind}/cut at {share:.0%}", _spoilt(kind, _cut(share)))
        yield Case(f"damage/{kind}/no beginning", _spoilt(kind, lambda data: data[64:]))
        yield Case(f"damage/{kind}/beginning of zeros", _spoilt(kind, _no_beginning))
    for name in SAVED:
        for share in CUT:
            yield Case(f"damage/run/{name} cut at {share:.0%}", _run(name, _cut(share)))
        yield Case(f"damage/run/{name} of zeros", _run(name, lambda data: bytes(len(data))))


def _cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: max(1, int(share * len(data)))]


def _no_beginning(data: bytes) -> bytes:
    return bytes(64) + data[64:]


def _spoilt(kind: str, spoil: Callable[[bytes], bytes]) -> Make:
    file, write, command = KINDS[kind]

    def make(bench: Bench) -> list[object]:
        path = bench.folder / file
        path.parent.mkdir(exist_ok=True)
        write(path)
        path.write_bytes(spoil(path.read_bytes()))
        target = path if path.parent == bench.folder else path.parent
        return [command, bench.run, target] if command == "predict" else [command, target]

    return make


def _run(name: str, spoil: Callable[[bytes], bytes]) -> Make:
    def make(bench: Bench) -> list[object]:
        run = bench.folder / "run"
        shutil.copytree(bench.run, run)
        path = run / name
        path.write_bytes(spoil(path.read_bytes()))
        if name.startswith("model/"):
            return ["predict", run, bench.items]
        return ["report", run, "--out", bench.folder / "page.html"]

    return make
