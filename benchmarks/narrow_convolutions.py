"""3x3 convolutions of few channels: our kernels beside cuDNN's, forward and both gradients.

    python benchmarks/narrow_convolutions.py [--tune] [--out results/narrow_convolutions.json]

On a GPU, in bfloat16, at ResNet-32's shapes. First every result is compared with double precision;
then microseconds a call, by replays of a CUDA graph that goes through several sets of inputs.
``--tune`` prints other sizes of the programs too.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.io.atomic import write_json
from likewise.io.json import Record
from likewise.nn import narrow_convolutions as narrow
from likewise.training.devices import fastest_convolutions

SHAPES = ((16, 32), (32, 16), (64, 8))  # channels, side of the images
BATCHES = (128, 256)
SETS = 8  # of inputs, so that the cache does not hold all that is read
CALLS = 40  # of a graph


def inputs(batch: int, channels: int, side: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images, weights and slopes."""
    last, device = torch.channels_last, "cuda"
    shape = (batch, channels, side, side)
    x, slope = (torch.randn(shape, device=device).to(memory_format=last) for _ in range(2))
    weight = torch.randn(channels, channels, 3, 3, device=device).to(memory_format=last)
    return x.bfloat16(), (weight / (9 * channels) ** 0.5).bfloat16(), slope.bfloat16()


def ours(x: Tensor, weight: Tensor, slope: Tensor) -> dict[str, Callable[[], Tensor]]:
    return {
        "forward": lambda: narrow.convolution(x, weight),
        "input": lambda: narrow.input_gradient(slope, weight),
        "weight": lambda: narrow.weight_gradient(slope, x),
    }


def cudnn(x: Tensor, weight: Tensor, slope: Tensor) -> dict[str, Callable[[], Tensor]]:
    def gradient(which: int) -> Tensor:
        wanted = [which == 0, which == 1, False]
        return torch.ops.aten.convolution_backward(
            slope, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, wanted
        )[which]

    return {
        "forward": lambda: F.conv2d(x, weight, padding=1),
        "input": lambda: gradient(0),
        "weight": lambda: gradient(1),
    }


def microseconds(calls: list[Callable[[], Tensor]]) -> float:
    """Of one call, the median of some replays of a graph of many."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        for k in range(CALLS):
            calls[k % len(calls)]()
    times = []
    for _ in range(12):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / CALLS)
    return sorted(times)[len(times) // 2]


def check(batch: int, channels: int, side: int) -> dict[str, float]:
    """Relative error of each result against double precision."""
    x, weight, slope = inputs(batch, channels, side)
    exact = cudnn(x.double(), weight.double(), slope.double())
    found = ours(x, weight, slope)
    return {
        name: float((call().double() - exact[name]()).norm() / exact[name]().norm())
        for name, call in found.items()
    }


def measure(batch: int, channels: int, side: int) -> Record:
    sets = [inputs(batch, channels, side) for _ in range(SETS)]
    row: Record = {"batch": batch, "channels": channels, "side": side}
    for name in ("forward", "input", "weight"):
        with fastest_convolutions():
            row[f"cudnn_{name}"] = round(microseconds([cudnn(*s)[name] for s in sets]), 2)
        row[f"ours_{name}"] = round(microseconds([ours(*s)[name] for s in sets]), 2)
    return row


def tune(batch: int) -> None:
    """Other sizes of the programs, at each shape."""
    for channels, side in SHAPES:
        sets = [inputs(batch, channels, side) for _ in range(SETS)]
        for narrow.PIXELS, narrow.WARPS in itertools.product((64, 128, 256), (4, 8)):
            forward = tried([ours(*s)["forward"] for s in sets])
            print(channels, side, "pixels", narrow.PIXELS, "warps", narrow.WARPS, forward)
        narrow.WARPS = 4
        for narrow.GRADIENT_PIXELS, narrow.PROGRAMS in itertools.product(
            (32, 64, 128), (128, 256, 512)
        ):
            weight = tried([ours(*s)["weight"] for s in sets])
            print(channels, side, narrow.GRADIENT_PIXELS, "programs", narrow.PROGRAMS, weight)


def tried(calls: list[Callable[[], Tensor]]) -> float:
    try:
        return round(microseconds(calls), 1)
    except Exception:
        return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/narrow_convolutions.json"))
    options = parser.parse_args()
    for channels, side in SHAPES:
        print(channels, side, "relative errors", check(64, channels, side), flush=True)
    began, rows = time.time(), []
    for batch, (channels, side) in itertools.product(BATCHES, SHAPES):
        rows.append(measure(batch, channels, side))
        print(rows[-1], flush=True)
    write_json(options.out, {"device": torch.cuda.get_device_name(), "rows": rows})
    print(f"{time.time() - began:.0f} s")
    if options.tune:
        tune(BATCHES[0])


if __name__ == "__main__":
    main()
