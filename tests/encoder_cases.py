"""Encoders of random weights, and photographs and texts of known classes, for tests."""

from __future__ import annotations

import csv
import io
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

COLOURS = np.array([[200, 40, 40], [40, 180, 60], [50, 70, 210]])
TOPICS = {
    "cooking": "soup oven flour butter garlic recipe roast dough pepper sauce grill stew",
    "football": "goal striker match referee penalty league coach stadium kick tackle fans trophy",
    "space": "rocket orbit planet telescope galaxy astronaut lunar comet gravity mars nebula probe",
    "garden": "soil seeds prune roses compost weeds bloom shrub lawn tulips mulch harvest",
}
COMMON = "the a of and to in is that it was for on with as at this have from by but we all"


class Thumb(nn.Module):
    """An image encoder of random weights."""

    def __init__(self, width: int = 12, channels_last: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.last = channels_last
        self.convolution = nn.Conv2d(3, width, 4, stride=4)

    def forward(self, images: Tensor) -> Tensor:
        if self.last:
            images = images.permute(0, 3, 1, 2)
        return torch.tanh(self.convolution(images)).mean(dim=(2, 3))


def write_program(path: Path, side: int = 16, channels_last: bool = False) -> Path:
    """An .onnx or .pt2 file of the encoder, for any number of photographs."""
    path.write_bytes(onnx_bytes(side) if path.suffix == ".onnx" else pt2_bytes(side, channels_last))
    return path


@cache
def pt2_bytes(side: int, channels_last: bool) -> bytes:
    shape = (2, side, side, 3) if channels_last else (2, 3, side, side)
    module, sample = Thumb(channels_last=channels_last).eval(), torch.zeros(shape)
    free = {"images": {0: torch.export.Dim("n", min=1)}}
    program = torch.export.export(module, (sample,), dynamic_shapes=free)
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


@cache
def onnx_bytes(side: int) -> bytes:
    """Written by hand: to export it takes seconds."""
    from onnx import TensorProto, helper, numpy_helper

    convolution = Thumb().convolution
    weights = [
        numpy_helper.from_array(tensor.detach().numpy(), name)
        for name, tensor in convolution.named_parameters()
    ]
    nodes = [
        helper.make_node("Conv", ["images", "weight", "bias"], ["seen"], strides=[4, 4]),
        helper.make_node("Tanh", ["seen"], ["bent"]),
        helper.make_node("ReduceMean", ["bent"], ["features"], axes=[2, 3], keepdims=0),
    ]
    takes = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, side, side])
    gives = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 12])
    graph = helper.make_graph(nodes, "thumb", [takes], [gives], weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def write_photographs(folder: Path, count: int, seed: int = 0, first: int = 0) -> np.ndarray:
    """(count,) classes of photographs of three colours, written as PNG files of various sizes."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=count)
    for k, kind in enumerate(classes):
        height, width = rng.integers(18, 30, size=2)
        pixels = COLOURS[kind] + rng.normal(0, 25, (height, width, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"p{first + k:03d}.png")
    return classes


def make_texts(count: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """``(texts, classes)`` of four topics, most of their words common to all."""
    names, classes = list(TOPICS), rng.integers(4, size=count)
    texts = []
    for kind in classes:
        words = [*rng.choice(COMMON.split(), 7), *rng.choice(TOPICS[names[kind]].split(), 3)]
        texts.append(" ".join(rng.permutation(words)))
    return texts, classes


def write_answers(
    path: Path, ids: list[str], classes: np.ndarray, count: int, wrong: float = 0.0
) -> None:
    """Answers about pairs at random, a share of them wrong."""
    rng = np.random.default_rng(1)
    left = rng.integers(len(ids), size=count)
    right = (left + rng.integers(1, len(ids), size=count)) % len(ids)
    same = (classes[left] == classes[right]) ^ (rng.random(count) < wrong)
    rows = [(ids[i], ids[j], int(s)) for i, j, s in zip(left, right, same)]
    write_table(path, ("left", "right", "same"), rows)


def write_table(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


class Lengths:
    """An encoder of one's own."""

    name, digest = "lengths", "d" * 64

    def __init__(self) -> None:
        self.batches: list[int] = []

    def encode(self, batch: list[str]) -> np.ndarray:
        self.batches.append(len(batch))
        return np.array([[len(text), text.count("a")] for text in batch])


class Heard:
    """Stages that were told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def stage(self, words: str) -> None:
        self.words.append(words)

    def share(self, done: float) -> None:
        """Not of interest."""
