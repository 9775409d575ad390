"""Training throughput with 16 runs side by side on one GPU, compiled and not, in one run.

    python benchmarks/throughput.py --out results/throughput.json

The paper's batch sizes and the MNS loss, as in `likewise bench --gpu`, whose row of the first
version's ResNet-32 is in results/gpu.json. ResNet-32 is measured by cuDNN's convolutions alone,
too. A row is written as soon as it is measured. Whether the process is a client of NVIDIA's MPS is
told: those rows are not to be set beside others.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # a queue for every run's stream

import numpy as np
import torch

from likewise.experiments import bench
from likewise.io.atomic import write_json
from likewise.io.json import Record
from likewise.nn import narrow_convolutions
from likewise.training.recipe import PAPER

WIDTHS, NONE = narrow_convolutions.WIDTHS, (1, 0)
SIDE_BY_SIDE = 16
SECONDS = 2.0
CASES = (*bench.CASES, bench.Case("resnet18", (32, 32, 3), 10))


def ways(network: str) -> Iterator[tuple[str, bool, tuple[int, int]]]:
    """Names of what is measured, whether it is compiled, and which channels have our kernels."""
    if network == "resnet32":
        yield "captured_cudnn", False, NONE
        yield "compiled_cudnn", True, NONE
    yield "captured", False, WIDTHS
    yield "compiled", True, WIDTHS


def main(out: Path, networks: list[str], wanted: list[str] | None) -> None:
    device = torch.device("cuda")
    rows: list[Record] = []
    for case in (case for case in CASES if case.network in networks):
        rng = np.random.default_rng(0)
        items, labels = case.items(rng), rng.integers(case.n_classes, size=case.n_items)
        row: Record = {
            "network": case.network,
            "batch": PAPER[case.network].items_per_step,
            "side_by_side": SIDE_BY_SIDE,
            "device": torch.cuda.get_device_name(device),
            "through_mps": "CUDA_MPS_PIPE_DIRECTORY" in os.environ,
        }
        for name, compile, widths in ways(case.network):
            if wanted is not None and name not in wanted:
                continue
            narrow_convolutions.WIDTHS = widths
            start = time.perf_counter()
            rate = bench.concurrent_rate(
                case, items, labels, SIDE_BY_SIDE, SECONDS, device, compile=compile
            )
            row |= {name: rate, f"{name}_seconds": time.perf_counter() - start}
            print(f"{case.network} {name} {rate:.0f} images a second", flush=True)
        rows.append(row)
        write_json(out, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/throughput.json"))
    parser.add_argument("--networks", nargs="+", default=[case.network for case in CASES])
    parser.add_argument("--ways", nargs="+", help="only these: captured, compiled, …")
    options = parser.parse_args()
    main(options.out, options.networks, options.ways)
