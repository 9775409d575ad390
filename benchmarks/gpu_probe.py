"""A first look at a GPU: does the captured step work, how fast is it, how many runs fit beside.

    python benchmarks/gpu_probe.py | tee results/gpu_probe.log

Some minutes; `likewise bench --gpu` is the short form. Also tries whether compiling the network
adds to capturing the step.
"""

from __future__ import annotations

import os
import time

import numpy as np
import torch

from likewise.experiments import bench

CONCURRENCY = (1, 2, 4, 8, 16)
WORKERS = (0, 8, 14)


def main() -> None:
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    print(torch.__version__, torch.cuda.get_device_name(0), os.cpu_count())
    ceilings = bench.matrix_rate(device) / 1e12, bench.copy_bandwidth(device) / 1e12
    print("bf16 TFLOP/s {:.0f} copy TB/s {:.2f}".format(*ceilings), flush=True)
    for case in bench.CASES:
        rng = np.random.default_rng(0)
        items, labels = case.items(rng), rng.integers(case.n_classes, size=case.n_items)
        for concurrency in CONCURRENCY:
            rate = bench.concurrent_rate(case, items, labels, concurrency, 1.5, device)
            print(f"{case.network} {concurrency} side by side {rate:.0f} img/s", flush=True)
        for workers in WORKERS:
            rate = bench.plain_rate(case, items, labels, workers, 2.0, device)
            print(f"{case.network} plain {workers} {rate:.0f} img/s", flush=True)
    compiled(bench.CASES[1], device)


def compiled(case: bench.Case, device: torch.device) -> None:
    """Captured steps of compiled networks, alone and four beside each other."""
    rng = np.random.default_rng(0)
    items, labels = case.items(rng), rng.integers(case.n_classes, size=case.n_items)
    runs = []
    for _ in range(4):
        start = time.perf_counter()
        run = bench.make_run(case, items, labels, device, capture=True, compile=True)
        with run.on_stream():
            run.begin_epoch()
        torch.cuda.synchronize()
        print(f"compiled capture {time.perf_counter() - start:.1f} s", flush=True)
        runs.append(run)
    for concurrency in (1, 4):
        rate = bench.rate_of(runs[:concurrency], 1.5)
        print(f"compiled, {concurrency} side by side {rate:.0f} img/s", flush=True)


if __name__ == "__main__":
    main()
