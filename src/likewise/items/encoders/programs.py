"""Encoders in a file: ONNX by onnxruntime, ``.pt2`` by torch.export.

What goes in is told by the file: texts where it takes strings, else photographs in the size and
order of axes that it takes. Pixels are scaled as ``pixels`` says.

An ONNX file is data. A ``.pt2`` is a program that PyTorch may unpickle: only one that a person has
named on this machine is run (`trust`), never one that merely lies in a run folder.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.images import crop, resize_cover
from likewise.io.json import JsonObject
from likewise.io.regular import open_regular
from likewise.items.encoders.protocol import (
    Batch,
    Features,
    checked_features,
    need_images,
    need_texts,
)
from likewise.items.encoders.trust import is_trusted, trust

KIND = "program"
DEFAULT_SIDE = 224
MAX_BYTES = 4 * 2**30
# (mean, deviation) of each channel by which pixels, from 0 to 1, are scaled.
PIXELS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "bytes": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
}


@dataclass(frozen=True)
class Input:
    """What a program takes."""

    kind: str
    """"texts", "float" or "bytes"."""
    channels_first: bool = True
    """(n, 3, H, W), else (n, H, W, 3)."""
    height: int | None = None
    """Pixels; None where the program takes any."""
    width: int | None = None
    grey: bool = False
    """One channel instead of three."""


class Program(Protocol):
    """A file that was opened."""

    takes: Input

    def __call__(self, batch: NDArray[np.generic]) -> object:
        """The output for a batch."""


@dataclass(frozen=True)
class ProgramEncoder:
    """A program in a file, and how photographs are prepared for it."""

    path: Path
    pixels: str | None = None
    """A name in `PIXELS`; None takes bytes where channels come last, else imagenet."""
    side: int | None = None
    """Pixels a side, where the program takes any."""
    sha256: str = ""
    """Of the file, as it was when it was named."""

    @classmethod
    def open(cls, path: Path, pixels: str | None = None, side: int | None = None) -> ProgramEncoder:
        """The program that a person has named: from here on it is trusted on this machine."""
        if pixels is not None and pixels not in PIXELS:
            raise InputError(f"pixels must be one of {', '.join(PIXELS)}, not {pixels!r}.")
        found = cls(path, pixels, side, _sha256(path))
        if found.is_torch:
            trust(found.sha256)
        return found.settled()

    def settled(self) -> ProgramEncoder:
        """The same with what was left open decided by the file."""
        takes = self.program.takes
        usual = "imagenet" if takes.channels_first and takes.kind == "float" else "bytes"
        return replace(self, pixels=self.pixels or usual, side=self.side or DEFAULT_SIDE)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_torch(self) -> bool:
        return self.path.suffix.lower() == ".pt2"

    @property
    def digest(self) -> str:
        how = f"{KIND} {self.sha256} {self.pixels} {self.side}"
        return hashlib.sha256(how.encode()).hexdigest()

    @cached_property
    def program(self) -> Program:
        if self.is_torch:
            if not is_trusted(self.sha256):
                raise InputError(
                    f"{self.path} is a PyTorch program, which could run code; if you trust where "
                    f"it comes from, say so with --embed {self.path}."
                )
            return _TorchProgram(self.path)
        return _OnnxProgram(self.path)

    def encode(self, batch: Batch) -> Features:
        takes = self.program.takes
        if takes.kind == "texts":
            given: NDArray[np.generic] = np.array(need_texts(batch, self.name), object)
        else:
            given = np.stack(
                [self._pixels(image, takes) for image in need_images(batch, self.name)]
            )
        return checked_features(self.program(given), len(batch), self.name)

    def _pixels(self, image: object, takes: Input) -> NDArray[np.generic]:
        from PIL.Image import Image

        assert isinstance(image, Image)
        side = self.side or DEFAULT_SIDE
        height, width = takes.height or side, takes.width or side
        shown = crop(resize_cover(image, height, width), height, width)
        values = np.asarray(shown.convert("L") if takes.grey else shown)
        values = values[..., None] if takes.grey else values
        if takes.kind == "bytes":
            scaled: NDArray[np.generic] = values
        else:
            mean, deviation = (np.array(part) for part in PIXELS[self.pixels or "imagenet"])
            if takes.grey:
                mean, deviation = mean.mean(keepdims=True), deviation.mean(keepdims=True)
            scaled = ((values / 255 - mean) / deviation).astype(np.float32)
        return scaled.transpose(2, 0, 1) if takes.channels_first else scaled

    def save(self, folder: Path) -> JsonObject:
        """Keep a copy of the file; returns what `load` needs beside it."""
        kept = f"encoder{self.path.suffix.lower()}"
        shutil.copyfile(self.path, folder / kept)
        return {
            "file": kept,
            "sha256": self.sha256,
            "pixels": self.pixels,
            "side": self.side,
        }

    @classmethod
    def load(cls, folder: Path, about: JsonObject) -> ProgramEncoder:
        """As `save` kept it."""
        kept, digest = about.get("file"), about.get("sha256")
        pixels, side = about.get("pixels"), about.get("side")
        known = kept in ("encoder.onnx", "encoder.pt2") and pixels in PIXELS
        if not known or not isinstance(side, int) or not 0 < side <= 4096:
            raise InputError(f"{folder} describes no encoder of ours; copy the run again.")
        path = folder / str(kept)
        if not path.is_file() or _sha256(path) != digest:
            raise InputError(
                f"{path} is not the file that was kept with the model (its SHA-256 is another); "
                "copy the run again."
            )
        return cls(path, str(pixels), side, str(digest))


class _OnnxProgram:
    def __init__(self, path: Path) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise InputError(f"{path.name} needs onnxruntime: pip install onnxruntime.") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4
        try:  # from memory: a file could name others, anywhere on this machine, as its data
            with open_regular(path) as file:
                self._session = onnxruntime.InferenceSession(
                    file.read(MAX_BYTES), options, providers=["CPUExecutionProvider"]
                )
        except Exception as error:  # onnxruntime's errors share no class
            reason = str(error).strip().partition("\n")[0][:200]
            raise InputError(f"{path.name} cannot be opened by onnxruntime: {reason}") from error
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise InputError(
                f"{path.name} takes {len(inputs)} inputs, but an encoder takes one: photographs, "
                "or texts as strings."
            )
        self._name, self._shape = inputs[0].name, list(inputs[0].shape)
        self.takes = _input(path.name, inputs[0].type, self._shape)

    def __call__(self, batch: NDArray[np.generic]) -> object:
        if self.takes.kind == "texts" and len(self._shape) == 2:
            batch = batch[:, None]
        return self._session.run(None, {self._name: batch})[0]


class _TorchProgram:
    def __init__(self, path: Path) -> None:
        try:
            with open_regular(path) as file:
                program = torch.export.load(file)
            self._module = program.module()
            (name,) = program.graph_signature.user_inputs
            nodes = {node.name: node for node in program.graph.nodes}
            example = nodes[str(name)].meta["val"]
        except Exception as error:  # PyTorch's readers raise almost anything
            reason = str(error).strip().partition("\n")[0][:200]
            raise InputError(
                f"{path.name} is no torch.export program of one input: {reason}"
            ) from error
        shape = [size if isinstance(size, int) else None for size in example.shape]
        kind = "tensor(uint8)" if example.dtype == torch.uint8 else "tensor(float)"
        self.takes = _input(path.name, kind, shape)

    def __call__(self, batch: NDArray[np.generic]) -> object:
        with torch.no_grad():
            found = self._module(torch.from_numpy(np.ascontiguousarray(batch)))
        return found[0] if isinstance(found, tuple | list) else found


def _input(name: str, kind: str, shape: Sequence[object]) -> Input:
    if kind == "tensor(string)" and len(shape) in (1, 2):
        return Input("texts")
    if kind not in ("tensor(float)", "tensor(uint8)") or len(shape) != 4:
        raise InputError(
            f"{name} takes {kind} of {len(shape)} axes; an encoder takes photographs (n, 3, H, W) "
            "or (n, H, W, 3) as float or uint8, or texts as strings."
        )
    first = shape[1] in (1, 3) or shape[3] not in (1, 3)
    channels = shape[1] if first else shape[3]
    height, width = (shape[2], shape[3]) if first else (shape[1], shape[2])
    return Input(
        "bytes" if kind == "tensor(uint8)" else "float",
        channels_first=first,
        height=height if isinstance(height, int) else None,
        width=width if isinstance(width, int) else None,
        grey=channels == 1,
    )


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
