"""Malformed models and runs, met by ``likewise predict`` and ``likewise report``."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from malformed.case import Bench, Case, Make, bomb

Spoil = Callable[[Path], None]
FIELDS = (
    *("kind", "version", "network", "network_shape", "item_shape", "inputs", "classes"),
    *("parameters", "transition", "channel", "annotators", "history", "method", "choice"),
    *("best_epoch", "score", "class_evidence", "warnings"),
)
CHANGES: dict[str, dict[str, Any]] = {
    "kind of another program": {"kind": "other-model"},
    "version of the future": {"version": 999},
    "version a text": {"version": "1"},
    "version none": {"version": None},
    "network a text": {"network": "mlp"},
    "network unknown": {"network": {"name": "transformer"}},
    "network a list": {"network": {"name": ["mlp"]}},
    "network of one's own": {"network": {"name": None}},
    "network a path": {"network": {"name": "../../etc/passwd"}},
    "hidden layers past memory": {"network": {"name": "mlp", "hidden": [1_000_000, 1_000_000]}},
    "hidden layers beyond number": {"network": {"name": "mlp", "hidden": [10**30]}},
    "ten thousand hidden layers": {"network": {"name": "mlp", "hidden": [64] * 10_000}},
    "hidden layers of nothing": {"network": {"name": "mlp", "hidden": [0]}},
    "hidden layers negative": {"network": {"name": "mlp", "hidden": [-5]}},
    "hidden layers text": {"network": {"name": "mlp", "hidden": ["64"]}},
    "hidden layers true": {"network": {"name": "mlp", "hidden": [True]}},
    "network shape empty": {"network_shape": []},
    "network shape zero": {"network_shape": [0]},
    "network shape past memory": {"network_shape": [2**23]},
    "network shape beyond number": {"network_shape": [10**30]},
    "network shape text": {"network_shape": ["64"]},
    "network shape of six": {"network_shape": [1, 2, 3, 4, 5, 6]},
    "network shape of images": {"network_shape": [1, 8, 8], "network": {"name": "lenet"}},
    "network shape of large images": {
        "network_shape": [3, 2**20, 2**20], "network": {"name": "lenet"},
    },
    "item shape other": {"item_shape": [63]},
    "item shape of five": {"item_shape": [1, 1, 1, 1, 64]},
    "item shape text": {"item_shape": ["a"]},
    "item shape null": {"item_shape": [None]},
    "inputs without size": {"inputs": {"images": False}},
    "inputs past memory": {"inputs": {"images": False, "size": 2**60}},
    "inputs negative": {"inputs": {"images": False, "size": -1}},
    "inputs text": {"inputs": {"images": False, "size": "64"}},
    "inputs for images": {"inputs": {"images": True, "size": 64}},
    "no classes": {"classes": []},
    "one class": {"classes": [0]},
    "other number of classes": {"classes": [0, 1, 2]},
    "classes nested": {"classes": [[k] for k in range(10)]},
    "classes mixed": {"classes": [0, "a", None, 1.5, [], {}, True, 7, 8, 9]},
    "classes ragged": {"classes": [[1], [1, 2], 3, 4, 5, 6, 7, 8, 9, 0]},
    "parameters unknown": {"parameters": {"exec": "import os"}},
    "parameters twice": {"parameters": {"n_classes": 10, "network": "mlp", "self": 1}},
    "transition ragged": {"transition": [[1.0], [0.5, 0.5]]},
    "transition text": {"transition": [["a"]]},
    "transition of another size": {"transition": [[1.0]]},
    "transition not a distribution": {"transition": [[5.0] * 10] * 10},
    "channel unknown": {"channel": {"kind": "telepathy"}},
    "channel empty": {"channel": {}},
    "channel of a wrong type": {"channel": {"kind": "rates", "a": "x", "b": []}},
    "best epoch a fraction": {"best_epoch": 1.5},
    "best epoch a text": {"best_epoch": "3"},
    "score a text": {"score": "good"},
}  # fmt: skip


def _edit(changes: dict[str, Any]) -> Spoil:
    def spoil(model: Path) -> None:
        path = model / "model.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return spoil


def _without(field: str) -> Spoil:
    def spoil(model: Path) -> None:
        path = model / "model.json"
        about = json.loads(path.read_text())
        del about[field]
        path.write_text(json.dumps(about))

    return spoil


def _file(name: str, content: bytes | str | None) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / name
        path.unlink()
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    return spoil


def _cut(name: str, keep: float) -> Spoil:
    def spoil(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * keep)])

    return spoil


def tensors(header: Any, body: bytes = b"\0" * 64, length: int | None = None) -> bytes:
    """A safetensors file whose header says what it likes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def _one(shape: list[Any], offsets: list[int], dtype: str = "F32") -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


WEIGHTS: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "header length past the file": tensors({}, length=2**40),
    "header length past 64 bits": struct.pack("<Q", 2**64 - 1) + b"{}",
    "header not json": tensors(b"{'w': 1}"),
    "header not utf-8": tensors(b"\xff\xfe"),
    "header nested": tensors(b'{"a":' * 20_000),
    "header a list": tensors([1, 2]),
    "no tensors": tensors({}),
    "tensor of another name": tensors(_one([16], [0, 64])),
    "tensor past the file": tensors(_one([10**9], [0, 4 * 10**9])),
    "tensor of negative size": tensors(_one([-4], [0, 64])),
    "tensor size past 64 bits": tensors(_one([2**40, 2**40], [0, 64])),
    "offsets backwards": tensors(_one([16], [64, 0])),
    "offsets beside the shape": tensors(_one([16], [0, 32])),
    "type unknown": tensors(_one([16], [0, 64], "F33")),
    "pickle magic": b"\x80\x04\x95" + b"\0" * 60,
    "zip magic (a .pt file)": b"PK\x03\x04" + b"\0" * 60,
}


def _reshaped(model: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = model / "weights.safetensors"
    state = {name: t.reshape(-1).clone() for name, t in load_file(path).items()}
    save_file(state, path)


def _extra(model: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    path = model / "weights.safetensors"
    save_file(load_file(path) | {"more": torch.zeros(3)}, path)


def _nan(model: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = model / "weights.safetensors"
    save_file({name: t * float("nan") for name, t in load_file(path).items()}, path)


FILES: dict[str, Spoil] = {
    "model.json missing": _file("model.json", None),
    "model.json empty": _file("model.json", ""),
    "model.json cut": _cut("model.json", 0.5),
    "model.json a list": _file("model.json", "[]"),
    "model.json a number": _file("model.json", "1"),
    "model.json null": _file("model.json", "null"),
    "model.json nested": _file("model.json", "[" * 100_000),
    "model.json endless number": _file("model.json", "9" * 10_000),
    "model.json not utf-8": _file("model.json", b"\xff\xfe{}"),
    "model.json binary": _file("model.json", b"\0" * 100),
    "weights cut in half": _cut("weights.safetensors", 0.5),
    "weights cut by a hundredth": _cut("weights.safetensors", 0.99),
    "weights of other shapes": _reshaped,
    "weights with one more": _extra,
    "weights not numbers": _nan,
}

RUN: dict[str, Spoil] = {
    "config.json missing": _file("config.json", None),
    "config.json cut": _cut("config.json", 0.5),
    "config.json of another kind": _file("config.json", '{"kind": "other"}'),
    "config.json of the future": _file("config.json", '{"kind": "likewise-run", "version": 99}'),
    "config.json a list": _file("config.json", "[]"),
    "metrics.json missing": _file("metrics.json", None),
    "metrics.json cut": _cut("metrics.json", 0.5),
    "metrics.json empty object": _file("metrics.json", "{}"),
    "metrics.json a number": _file("metrics.json", "3"),
    "history.csv missing": _file("history.csv", None),
    "history.csv binary": _file("history.csv", b"\xff\0\xff"),
    "report.json missing": _file("report.json", None),
    "report.json cut": _cut("report.json", 0.5),
    "report.json empty object": _file("report.json", "{}"),
    "report.json of texts": _file(
        "report.json", '{"judgements": "a", "calibration": "b", "suspects": "c"}'
    ),
    "items.npz missing": _file("items.npz", None),
    "items.npz cut": _cut("items.npz", 0.5),
    "items.npz junk": _file("items.npz", b"PK\x03\x04junk"),
    "items.npz empty": _file("items.npz", b""),
}


def cases() -> Iterator[Case]:
    """All of them."""
    for field in FIELDS:
        yield Case(f"model/without/{field}", _predict(_without(field)))
        if field not in ("transition", "channel", "annotators", "class_evidence", "score"):
            yield Case(f"model/null/{field}", _predict(_edit({field: None})))
    for name, changes in CHANGES.items():
        yield Case(f"model/changed/{name}", _predict(_edit(changes)))
    for name, content in WEIGHTS.items():
        spoil = _file("weights.safetensors", content)
        yield Case(f"model/weights/{name}", _predict(spoil))
    for name, spoil in FILES.items():
        yield Case(f"model/files/{name}", _predict(spoil))
    for name in ("model.json", "weights.safetensors"):
        yield Case(f"model/pickle/{name}", _predict(None, name))
    for name, spoil in RUN.items():
        yield Case(f"run/{name}", _report(spoil))
    for name in ("config.json", "metrics.json", "history.csv", "report.json", "items.npz"):
        yield Case(f"run/pickle/{name}", _report(None, name))


def _predict(spoil: Spoil | None, bombed: str | None = None) -> Make:
    def make(bench: Bench) -> list[Any]:
        model = bench.folder / "model"
        shutil.copytree(bench.run / "model", model)
        _apply(bench, model, spoil, bombed)
        return ["predict", model, bench.items]

    return make


def _report(spoil: Spoil | None, bombed: str | None = None) -> Make:
    def make(bench: Bench) -> list[Any]:
        run = bench.folder / "run"
        shutil.copytree(bench.run, run)
        _apply(bench, run, spoil, bombed)
        return ["report", run]

    return make


def _apply(bench: Bench, folder: Path, spoil: Spoil | None, bombed: str | None) -> None:
    if spoil is not None:
        spoil(folder)
    if bombed is not None:
        (folder / bombed).write_bytes(bomb(bench))
