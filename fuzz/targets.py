"""What is fuzzed: each reader of files, with good files of its kind to begin from."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

CSV = b"left,right,same,annotator,weight\n0,1,1,ada,1\n1,2,0,bo,0.5\n2,3,unsure,ada,2\n"
JSON = json.dumps(
    [{"left": 0, "right": 1, "same": True}, {"left": "1", "right": 2, "same": 0}]
).encode()
IDX = b"\0\0\x08\x02" + struct.pack(">II", 2, 3) + b"x" * 6
DEDUPE = b'{"distinct": [[{"id": "a"}, {"id": "b"}]], "match": [[{"id": "a"}, {"id": "c"}]]}'


@dataclass(frozen=True)
class Target:
    """A reader: ``seeds()`` are good files, ``read(path)`` is what is done with a spoilt one."""

    name: str
    file: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]


def _pairs(path: Path) -> object:
    from likewise.pairs import Pairs

    return Pairs.read(path).describe().to_dict()


def _items(path: Path) -> object:
    from likewise.items import check_items
    from likewise.items.files import read_items

    return check_items(read_items(path).items)


def _images(path: Path) -> object:
    from likewise.items.folder import read_images

    return read_images(path.parent, 8)


def _checkpoint(path: Path) -> object:
    from likewise.errors import InputError
    from likewise.training.checkpoints import DamagedError, read_checkpoint

    try:
        return read_checkpoint(path)
    except DamagedError as error:
        raise InputError(str(error)) from error


def _beside(name: str) -> Callable[[Path], object]:
    """Reading a model in which one file was spoilt."""

    def read(path: Path) -> object:
        from likewise.classifier import load

        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            shutil.copytree(_model(), model)
            shutil.copy(path, model / name)
            return load(model)

    return read


def _idx(path: Path) -> object:
    from likewise.datasets.mnist import read_idx

    return read_idx(path)


def _cifar(path: Path) -> object:
    from likewise.datasets.safe_pickle import load_arrays

    return load_arrays(path)


def _table(path: Path) -> object:
    from likewise.experiments.settings import load_settings

    return load_settings(path)


def _answers(path: Path) -> object:
    from likewise.label import read_judgements

    return read_judgements(path)


@cache
def _model() -> Path:
    """A small saved classifier, made once."""
    from likewise import SimilarityClassifier
    from likewise.pairs import Pairs

    labels = np.arange(40) % 2
    items = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    recipe = {"epochs": 1, "batch_size": 16}
    classifier = SimilarityClassifier(2, method="mcl", recipe=recipe, verbose=False)
    folder = Path(tempfile.mkdtemp()) / "model"
    classifier.fit(items, Pairs.from_labels(labels)).save(folder)
    return folder


def _parquet() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for left in ([0, 1, 2], ["a", "b", "c"]):
        buffer = io.BytesIO()
        rows = {"left": left, "right": left[::-1], "same": [1, 0, None]}
        pq.write_table(pa.table(rows).slice(0, 1), buffer)
        found.append(buffer.getvalue())
    return found


def _sqlite() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        connection = sqlite3.connect(path)
        connection.execute('CREATE TABLE j ("left", "right", same, annotator)')
        connection.execute("INSERT INTO j VALUES (0, 1, 1, 'ada'), (1, 2, 0, 'bo')")
        connection.commit()
        connection.close()
        return [path.read_bytes()]


def _answers_db() -> list[bytes]:
    from likewise.label.store import Store

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        store = Store(path)
        store.keep_items(["a.png", "b.png"])
        store.close()
        return [path.read_bytes()]


def _npy() -> list[bytes]:
    found = []
    for array in (np.zeros((4, 3), np.float32), np.zeros((2, 5, 5, 3), np.uint8)):
        buffer = io.BytesIO()
        np.save(buffer, array)
        found.append(buffer.getvalue())
    return found


def _npz() -> list[bytes]:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, items=np.zeros((4, 3)), ids=np.array(list("abcd")))
    return [buffer.getvalue()]


def _pictures() -> list[bytes]:
    from PIL import Image

    found = []
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        buffer = io.BytesIO()
        Image.new("RGB", (9, 9), (1, 2, 3)).save(buffer, kind)
        found.append(buffer.getvalue())
    return found


def _saved_checkpoint() -> list[bytes]:
    import torch

    from likewise.training.checkpoints import write_checkpoint

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        write_checkpoint(path, {"w": torch.zeros(3, 2)}, {"epoch": 1, "history": []})
        return [path.read_bytes()]


def _cifar_batch() -> list[bytes]:
    batch = {b"data": np.zeros((1, 3072), np.uint8), b"labels": [3], b"filenames": [b"a.png"]}
    return [pickle.dumps(batch, protocol) for protocol in (2, 4)]


def _tables() -> list[bytes]:
    import likewise.experiments.settings as settings

    folder = Path(settings.__file__).parent / "configs"
    return [path.read_bytes() for path in sorted(folder.glob("*.toml"))]


TARGETS = (
    Target("judgements-csv", "pairs.csv", lambda: [CSV], _pairs),
    Target("judgements-json", "pairs.json", lambda: [JSON, DEDUPE], _pairs),
    Target("judgements-parquet", "pairs.parquet", _parquet, _pairs),
    Target("judgements-sqlite", "pairs.db", _sqlite, _pairs),
    Target("judgements-any", "pairs", lambda: [CSV, JSON, *_parquet(), *_sqlite()], _pairs),
    Target("items-npy", "items.npy", _npy, _items),
    Target("items-npz", "items.npz", _npz, _items),
    Target("items-csv", "items.csv", lambda: [b"id,a,b\nx,1,2\ny,3,4\n", b"1,2\n3,4\n"], _items),
    Target("images", "a.png", _pictures, _images),
    Target(
        "model-json",
        "model.json",
        lambda: [(_model() / "model.json").read_bytes()],
        _beside("model.json"),
    ),
    Target(
        "model-weights",
        "weights.safetensors",
        lambda: [(_model() / "weights.safetensors").read_bytes()],
        _beside("weights.safetensors"),
    ),
    Target("checkpoint", "stage-0.000001.safetensors", _saved_checkpoint, _checkpoint),
    Target("idx", "a-idx2-ubyte", lambda: [IDX], _idx),
    Target("cifar-python", "data_batch_1", _cifar_batch, _cifar),
    Target("table", "table.toml", _tables, _table),
    Target("answers", "answers.db", _answers_db, _answers),
)  # fmt: skip
