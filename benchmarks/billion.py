"""A billion judgements on one machine, without holding them: read, described, one pass.

A Parquet file of seeded random judgements (two positions, an answer, one of 1,000 people) about 12
million items at a billion, in proportion below, is made in a temporary folder. Each stage runs in a
fresh process that tells its seconds, those of the processor, and its peak memory:

- ``arrow``: Arrow reads all columns, batch by batch, and drops them: what any reader must pay;
- ``read``: every row is read and checked, and counted;
- ``describe``: the whole description, reading included;
- ``pass``: one pass of mean field with ten classes over all judgements, reading included.

The slope is that of log seconds over log judgements: 1 is linear. Figures are kept after each size.

    python benchmarks/billion.py                                  # 1 and 10 million
    python benchmarks/billion.py --sizes 10000000 1000000000      # the goal; takes 25 GB of disk
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import judgements
import records

ITEMS_PER_JUDGEMENT = 0.012
# Issue 19: seconds and GB at a billion, on two cores.
LIMITS = {"read and describe": (600, 16.0), "pass": (240, None)}


def prepared(stage: str, path: Path) -> Callable[[], Any]:
    """What a stage does; imports and what is not measured are done here."""
    import pyarrow.parquet as pq
    import torch

    from likewise.inference.propagation.streamed import mean_field_pass
    from likewise.noise.channels import RateChannel
    from likewise.pairs.stream import JudgementStream
    from likewise.pairs.streamed_description import describe_stream

    stream = JudgementStream.open(path)
    assert stream is not None
    if stage == "arrow":
        return lambda: sum(len(batch) for batch in pq.ParquetFile(path).iter_batches(1 << 20))
    if stage == "read":
        return lambda: stream.seen
    if stage == "describe":
        return lambda: describe_stream(stream, judgements.N_CLASSES, folder=path.parent)
    n_items = int(stream.rows * ITEMS_PER_JUDGEMENT)
    source = torch.Generator().manual_seed(0)
    log_prior = torch.randn(n_items, judgements.N_CLASSES, generator=source).log_softmax(1)
    return lambda: mean_field_pass(log_prior, stream, RateChannel(0.7, 0.05))


def run_stage(stage: str, path: Path) -> dict[str, Any]:
    work = prepared(stage, path)
    started = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = {"figures": found.to_dict()} if stage == "describe" else {}
    return {
        "stage": stage,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_gib": round(peak, 2),
        **told,
    }


def measure(size: int, stages: list[str], folder: Path) -> list[dict[str, Any]]:
    """Every stage at one size, each in a process of its own."""
    path, rows = folder / f"{size}.parquet", []
    started = time.perf_counter()
    judgements.generate(path, size, items_per_judgement=ITEMS_PER_JUDGEMENT)
    gib = path.stat().st_size / 2**30
    print(f"{size:,}: made in {time.perf_counter() - started:.0f} s, {gib:.2f} GiB", flush=True)
    for stage in stages:
        command = [sys.executable, __file__, "--stage", stage, "--file", str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append({"judgements": size, **json.loads(done.stdout)})
        print({k: v for k, v in rows[-1].items() if k != "figures"}, flush=True)
    path.unlink()
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Slopes over the whole range, and ratios to Arrow at the largest size."""
    largest = max(row["judgements"] for row in rows)
    last = {row["stage"]: row for row in rows if row["judgements"] == largest}
    ratios = {
        clock: {stage: round(last[stage][clock] / last["arrow"][clock], 2) for stage in last}
        for clock in ("seconds", "cpu_seconds")
        if "arrow" in last
    }
    return {
        "items_per_judgement": ITEMS_PER_JUDGEMENT,
        "rows": rows,
        "slopes": judgements.slopes(rows, "seconds"),
        "cpu_slopes": judgements.slopes(rows, "cpu_seconds"),
        "ratio_to_arrow": ratios,
    }


def main() -> None:
    stages = ["arrow", "read", "describe", "pass"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--stages", nargs="+", choices=stages, default=stages)
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--out", type=Path, default=Path("results/billion.json"))
    parser.add_argument("--stage", choices=stages, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(run_stage(options.stage, options.file)))
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in options.sizes:
            rows += measure(size, options.stages, Path(folder))
            records.append(options.out, summary(rows))
    print({k: v for k, v in summary(rows).items() if k != "rows"}, "goals", LIMITS)


if __name__ == "__main__":
    main()
