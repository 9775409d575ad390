"""Judgements at scale: reading, describing and one iteration of inference, as they grow.

A Parquet file of random judgements (two indices, an answer, one of 1,000 annotators) about a tenth
as many items in ten classes, single judgements flipped, is made in a temporary folder. Each stage
runs in a fresh process, which tells its seconds and its peak memory. The slope is that of log
seconds over log judgements: 1 is linear.

    python benchmarks/judgements.py            # 1 and 4 million
    python benchmarks/judgements.py --full     # 1, 10 and 100 million
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import records

STAGES = ("read", "describe", "infer")
# Issue 6: at most so many seconds and GB at 100 million judgements on two cores.
LIMITS = {"read": (90, 6.0), "describe": (180, 8.0), "infer": (60, None)}
N_CLASSES = 10
ITEMS_PER_JUDGEMENT = 0.1
ROWS_AT_ONCE = 1 << 20


def generate(
    path: Path, judgements: int, seed: int = 0, items_per_judgement: float = ITEMS_PER_JUDGEMENT
) -> None:
    """Write a Parquet file of random noisy judgements, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    n_items = max(int(judgements * items_per_judgement), 2)
    perceived = rng.integers(N_CLASSES, size=n_items, dtype=np.int8)
    people = pa.array([f"person-{k:03d}" for k in range(1000)])
    schema = pa.schema(
        {
            "left": pa.int32(),
            "right": pa.int32(),
            "same": pa.bool_(),
            "annotator": pa.dictionary(pa.int16(), pa.string()),
        }
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, judgements, ROWS_AT_ONCE):
            rows = min(ROWS_AT_ONCE, judgements - start)
            left = rng.integers(n_items, size=rows, dtype=np.int32)
            step = rng.integers(1, n_items, size=rows, dtype=np.int32)
            right = ((left.astype(np.int64) + step) % n_items).astype(np.int32)
            same = perceived[left] == perceived[right]
            flipped = rng.random(rows) < np.where(same, 0.3, 0.05)
            who = pa.array(rng.integers(1000, size=rows, dtype=np.int16))
            annotator = pa.DictionaryArray.from_arrays(who, people)
            columns = [pa.array(left), pa.array(right), pa.array(same ^ flipped), annotator]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def run_stage(stage: str, path: Path) -> dict[str, Any]:
    """Run one stage in this process: its seconds, and the peak memory of the process."""
    import pyarrow.parquet  # noqa: F401  (imports outside the clock: they would hide the slope)

    from likewise.pairs import Pairs, description, formats  # noqa: F401

    started = time.perf_counter(), time.process_time()
    pairs = Pairs.read(path)
    if stage != "read":
        work = _describe if stage == "describe" else _prepare_inference(pairs)
        started = time.perf_counter(), time.process_time()
        work(pairs)
    seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "stage": stage,
        "judgements": len(pairs),
        "items": pairs.n_items,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(
            cpu, 3
        ),  # of all cores: what others' work on the machine changes least
        "peak_gib": round(peak, 3),
    }


def _describe(pairs: Any) -> None:
    description = pairs.describe(N_CLASSES)
    assert description.inside > 0, "flipped judgements must show"


def _prepare_inference(pairs: Any) -> Any:
    """One iteration of mean field with ten classes, from a random prior."""
    import torch

    from likewise.inference.propagation.belief_propagation import infer
    from likewise.inference.propagation.graph import Graph
    from likewise.noise.channels import RateChannel

    source = torch.Generator().manual_seed(0)
    log_prior = torch.randn(pairs.n_items, N_CLASSES, generator=source).log_softmax(1)
    graph = Graph.from_pairs(pairs)
    channel = RateChannel(0.7, 0.05)
    return lambda _: infer(log_prior, graph, channel, method="mean_field", iterations=1)


def measure(sizes: list[int], stages: list[str], folder: Path) -> list[dict[str, Any]]:
    """Every stage at every size, each in a process of its own."""
    rows = []
    for size in sizes:
        path = folder / f"{size}.parquet"
        generate(path, size)
        for stage in stages:
            command = [sys.executable, __file__, "--stage", stage, "--file", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{stage} at {size:,} failed:\n{done.stderr}")
            rows.append(json.loads(done.stdout))
            show(rows[-1])
        path.unlink()
    return rows


def show(row: dict[str, Any]) -> None:
    seconds, memory = LIMITS[row["stage"]]
    limit = f"(at 100 million: at most {seconds} s" + (f", {memory:g} GB)" if memory else ")")
    print(
        f"{row['stage']:>9} {row['judgements']:>12,} judgements {row['seconds']:>8.2f} s "
        f"(processor {row['cpu_seconds']:.2f} s) {row['peak_gib']:>6.2f} GiB  {limit}",
        flush=True,
    )


def slopes(rows: list[dict[str, Any]], clock: str) -> dict[str, float]:
    """Slope of log seconds over log judgements of each stage, over the whole range."""
    found = {}
    for stage in dict.fromkeys(row["stage"] for row in rows):
        points = [(row["judgements"], row[clock]) for row in rows if row["stage"] == stage]
        if len(points) > 1:
            (m0, s0), (m1, s1) = points[0], points[-1]
            found[stage] = round(float(np.log(s1 / s0) / np.log(m1 / m0)), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="1, 10 and 100 million judgements")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of judgements")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--out", type=Path, default=Path("results/judgements.json"))
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(run_stage(options.stage, options.file)))
        return
    usual = [10**6, 10**7, 10**8] if options.full else [10**6, 4 * 10**6]
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options.sizes or usual, options.stages, Path(folder))
    figures = {
        "rows": rows,
        "slopes": slopes(rows, "seconds"),
        "cpu_slopes": slopes(rows, "cpu_seconds"),
    }
    print("slopes", figures["slopes"], "of processor time", figures["cpu_slopes"])
    records.append(options.out, figures)


if __name__ == "__main__":
    main()
