"""A fitted model taken elsewhere: ONNX, a PyTorch program, tables of what it says of items.

The exported programs take raw items (n, ...) as float32 (uint8 images as 0.0 to 255.0) and return
the (n, C) class posterior: scaling and softmax are inside, and n is free.
"""

from __future__ import annotations

import contextlib
import json
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from likewise.classifier import SimilarityClassifier, load
from likewise.errors import InputError, LikewiseError
from likewise.io.atomic import new_folder, replacing
from likewise.io.json import Record, plain
from likewise.io.npy import Array
from likewise.nn.model import Model

if TYPE_CHECKING:
    from torch.export import ExportedProgram

TOLERANCE = 1e-4
ROWS_AT_A_TIME = 65_536
_REGISTRATION_LOG = "torch.onnx._internal.exporter._registration"


class Posterior(nn.Module):
    """Raw items in, g(x) out: what an export holds."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor) -> Tensor:
        logits: Tensor = self.model(items)
        return logits.softmax(dim=1)


def export_onnx(source: str | Path | SimilarityClassifier, path: str | Path) -> float:
    """Write an ONNX model; returns its largest difference from the original (at most 1e-4).

    ``source`` is a fitted classifier, a model folder or a run folder. The graph has one input
    ``items`` and one output ``posterior``; the class names are in its metadata as ``classes``.
    The file takes its place only after onnxruntime has agreed with PyTorch on test items.
    """
    _need("onnx", "onnxruntime", "onnxscript")
    classifier = as_classifier(source)
    module, sample = _posterior_and_sample(classifier)
    with replacing(Path(path)) as temporary:
        _write_onnx(module, sample, classifier.classes_, temporary)
        expected = module(sample).numpy()
        return _agreement(expected, _run_onnx(temporary, sample.numpy()), "onnxruntime")


def export_torch(source: str | Path | SimilarityClassifier, path: str | Path) -> float:
    """Write a ``.pt2`` program (torch.export); returns its largest difference from the original.

    It runs without Likewise: ``torch.export.load(path).module()(items)`` is the posterior.
    """
    module, sample = _posterior_and_sample(as_classifier(source))
    program = _program(module, sample)
    target = Path(path)
    if target.suffix != ".pt2":
        raise InputError(f"a torch.export program ends in .pt2; name the output {target.stem}.pt2.")
    with replacing(target) as temporary:
        with open(temporary, "wb") as file:
            torch.export.save(program, file)
        with open(temporary, "rb") as file:
            again = torch.export.load(file).module()
        return _agreement(module(sample).numpy(), again(sample).numpy(), "the saved program")


def export_tables(
    source: str | Path | SimilarityClassifier,
    X: ArrayLike,
    out: str | Path,
    ids: ArrayLike | None = None,
) -> Path:
    """Write what the model says of items X into a new folder of Parquet files.

    ``predictions.parquet`` has item, class and probability; ``posterior.parquet`` a column a
    class; ``embedding.parquet`` a column a dimension. ``ids`` (N,) are the items' own names.
    """
    _need("pyarrow")
    classifier = as_classifier(source)
    items = classifier.check_items(X)
    names = np.arange(len(items)) if ids is None else np.asarray(ids)
    if len(names) != len(items):
        raise InputError(f"there are {len(items)} items but {len(names)} ids.")
    folder = Path(out)
    with new_folder(folder) as temporary:
        writers = _TableWriters(temporary)
        with contextlib.closing(writers):
            for start in range(0, len(items), ROWS_AT_A_TIME):
                part = slice(start, start + ROWS_AT_A_TIME)
                for name, columns in _tables(classifier, items[part], names[part]):
                    writers.write(name, columns)
    return folder


def probability_columns(classes: Array) -> list[str]:
    """(C,) a column of its own for each class, also where two have one name."""
    seen: Counter[str] = Counter()
    found = []
    for name in map(str, classes.tolist()):
        seen[name] += 1
        found.append(f"p({name})" if seen[name] == 1 else f"p({name}, {seen[name]})")
    return found


def as_classifier(source: str | Path | SimilarityClassifier) -> SimilarityClassifier:
    """A fitted classifier, or the one saved in a model folder or a run folder."""
    if not isinstance(source, str | Path):
        return source
    folder = Path(source)
    return load(folder / "model" if (folder / "model").is_dir() else folder)


def _posterior_and_sample(classifier: SimilarityClassifier) -> tuple[nn.Module, Tensor]:
    """The module to export and items (5, ...) like those it was fitted to, to check it on."""
    module = Posterior(classifier.model_).eval().requires_grad_(False)
    inputs = cast(Model, classifier.model_).inputs
    generator = torch.Generator().manual_seed(0)
    draw = torch.randn((5, *classifier.item_shape_), generator=generator)
    mean, scale = inputs.mean.cpu(), inputs.scale.cpu()
    if len(classifier.item_shape_) == 2:  # grey images have no axis for their one channel
        mean, scale = mean[:, None], scale[:, None]
    return module, draw / scale + mean


def _program(module: nn.Module, sample: Tensor) -> ExportedProgram:
    with _quiet(), torch.no_grad():
        try:
            free = torch.export.Dim("n", min=1)
            return torch.export.export(module, (sample,), dynamic_shapes=({0: free},))
        except Exception as error:  # whatever a user's own module does that cannot be traced
            raise InputError(
                f"this network cannot be exported by torch.export: {_first_line(error)}"
            ) from error


def _write_onnx(module: nn.Module, sample: Tensor, classes: Array, path: Path) -> None:
    program = _program(module, sample)
    with _quiet(), torch.no_grad():
        exported = torch.onnx.export(
            program,
            (sample,),
            dynamo=True,
            input_names=["items"],
            output_names=["posterior"],
            verbose=False,
        )
        if exported is None:
            raise LikewiseError("PyTorch returned no ONNX model.")
        exported.model.metadata_props["classes"] = json.dumps(plain(classes))
        exported.save(path, external_data=False)


def _run_onnx(path: Path, items: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, C) onnxruntime's posterior; one item at a time too, since n must be free."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        path.read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    together = session.run(None, {"items": items})[0]
    alone = session.run(None, {"items": items[:1]})[0]
    _agreement(together[:1], alone, "onnxruntime on a single item")
    return np.asarray(together)


def _agreement(expected: Array, found: Array, who: str) -> float:
    difference = float(np.abs(expected - found).max())
    if not difference <= TOLERANCE:
        raise LikewiseError(
            f"{who} differs from PyTorch by {difference:.2g}, more than {TOLERANCE:g}; nothing "
            "was written."
        )
    return difference


def _tables(
    classifier: SimilarityClassifier, items: Array, names: Array
) -> Iterator[tuple[str, dict[str, Array]]]:
    p = classifier.predict_proba(items)
    best = p.argmax(axis=1)
    yield (
        "predictions",
        {
            "item": names,
            "class": classifier.classes_[best],
            "probability": p[np.arange(len(p)), best],
        },
    )
    columns = dict(zip(probability_columns(classifier.classes_), p.T, strict=True))
    yield "posterior", {"item": names, **columns}
    embedding = classifier.transform(items)
    yield "embedding", {"item": names, **{f"e{k}": e for k, e in enumerate(embedding.T)}}


class _TableWriters:
    """Parquet files that grow batch by batch, opened when their columns are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: Record = {}

    def write(self, name: str, columns: dict[str, Array]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({key: pa.array(value) for key, value in columns.items()})
        if name not in self._open:
            path = self.folder / f"{name}.parquet"
            self._open[name] = parquet.ParquetWriter(path, table.schema)
        self._open[name].write_table(table)

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch's exporters talk about themselves; only errors concern the person here."""
    log = logging.getLogger(_REGISTRATION_LOG)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _need(*modules: str) -> None:
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(f"this needs {', '.join(missing)}: pip install 'likewise[export]'.")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
