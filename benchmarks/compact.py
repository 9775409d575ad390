"""`likewise compact` beside DuckDB copying the same file, and killed in the middle.

A Parquet file of judgements with text names, more than half of which repeat an earlier one of the
same person, is made in a temporary folder, seeded. In processes of their own and one after the
other: DuckDB copies the file (text to text, its own Parquet writer), likewise compacts it, and
likewise compacts it again, is killed when a third of the first run's time is over, and goes on. The
bytes of the two folders are compared.

    python benchmarks/compact.py                      # 2 million rows
    python benchmarks/compact.py --rows 200000000     # the goal: within 4 GB
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import records

ROWS_AT_ONCE = 1 << 20
JUDGEMENTS_PER_ITEM = 100
PEOPLE = 1000
MEMORY = "2GB"


def generate(path: Path, rows: int, seed: int = 0) -> None:
    """Rows drawn from half as many judgements, in either order of their items; 2% are unsure."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    n_items = max(rows // JUDGEMENTS_PER_ITEM, 10)
    items = pa.array([f"photo-{k:08d}.jpg" for k in range(n_items)])
    people = pa.array([f"person-{k:03d}" for k in range(PEOPLE)])
    words = pa.array(["different", "same", "unsure"])
    schema = pa.schema({name: pa.string() for name in ("left", "right", "same", "annotator")})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROWS_AT_ONCE):
            count = min(ROWS_AT_ONCE, rows - start)
            which = _mixed(rng.integers(rows // 2, size=count, dtype=np.uint64) + np.uint64(1))
            more = _mixed(which)
            left = (which % np.uint64(n_items)).astype(np.int64)
            right = (left + 1 + (more % np.uint64(n_items - 1)).astype(np.int64)) % n_items
            who = ((more >> np.uint64(40)) % np.uint64(PEOPLE)).astype(np.int64)
            answer = ((left % 10 == right % 10) ^ (rng.random(count) < 0.02)).astype(np.int64)
            answer[rng.random(count) < 0.02] = 2
            swapped = rng.random(count) < 0.5
            ends = np.where(swapped, right, left), np.where(swapped, left, right)
            columns = [items.take(pa.array(end)) for end in ends]
            columns += [words.take(pa.array(answer)), people.take(pa.array(who))]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _mixed(x: np.ndarray) -> np.ndarray:
    """splitmix64: a judgement's number becomes its items and its person."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def copy_command(source: Path, target: Path) -> list[str]:
    code = (
        "import duckdb, sys; c = duckdb.connect(); "
        f"c.execute(\"SET memory_limit = '{MEMORY}'\"); "
        "c.execute('SET enable_progress_bar = false'); "
        "c.execute(f\"COPY (SELECT * FROM '{sys.argv[1]}') TO '{sys.argv[2]}' (FORMAT parquet)\")"
    )
    return [sys.executable, "-c", code, str(source), str(target)]


def compact_command(source: Path, target: Path) -> list[str]:
    where = ["--out", str(target), "--memory", MEMORY, "--json"]
    return [sys.executable, "-m", "likewise", "compact", str(source), *where]


def timed(command: list[str]) -> tuple[dict[str, Any], str]:
    """Seconds, seconds of processor and peak memory of a command, and what it printed."""
    measured = (
        "import json, resource, subprocess, sys, time; start = time.perf_counter(); "
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True); "
        "use = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([time.perf_counter() - start, use.ru_utime + use.ru_stime, "
        "use.ru_maxrss / 2**20, done.returncode, done.stdout]))"
    )
    run = [sys.executable, "-c", measured, *command]
    text = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, cpu, peak, status, printed = json.loads(text)
    if status:
        raise SystemExit(f"{command} ended with {status}")
    figures = {"seconds": seconds, "cpu_seconds": cpu, "peak_gib": peak}
    return {name: round(value, 2) for name, value in figures.items()}, printed


def killed_after(command: list[str], seconds: float) -> None:
    """Kill a command of ours, with everything it holds, while it is at work."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    if process.poll() is not None:
        raise SystemExit("the run ended before it could be killed")
    process.send_signal(signal.SIGKILL)
    process.wait()


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def measure(rows: int, folder: Path, kill: bool) -> dict[str, Any]:
    source, first, second = folder / "rows.parquet", folder / "first", folder / "second"
    generate(source, rows)
    print(f"made {rows:,} rows, {source.stat().st_size / 2**30:.2f} GiB", flush=True)
    copy, _ = timed(copy_command(source, folder / "copy.parquet"))
    (folder / "copy.parquet").unlink()
    print("copy   ", copy, flush=True)
    compact, printed = timed(compact_command(source, first))
    print("compact", compact, printed.strip(), flush=True)
    counts = json.loads(printed)
    counts.pop("out")
    size = sum(p.stat().st_size for p in first.rglob("*.parquet"))
    figures = {
        "rows": rows,
        "counts": counts,
        "gib": {"input": source.stat().st_size / 2**30, "output": size / 2**30},
        "copy": copy,
        "compact": compact,
        "speed_of_copy": round(copy["seconds"] / compact["seconds"], 3),
        "speed_of_copy_by_cpu": round(copy["cpu_seconds"] / compact["cpu_seconds"], 3),
    }
    if not kill:
        return figures
    killed_after(compact_command(source, second), compact["seconds"] / 3)
    left = sorted(path.name for path in (second / ".unfinished").glob("*"))
    resumed, _ = timed(compact_command(source, second))
    print("resumed", resumed, "after finding", left, flush=True)
    same = digests(first) == digests(second)
    return figures | {"resumed": resumed, "found_by_resumed": left, "same_bytes": same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--without-kill", action="store_true", help="copy and compact only")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--out", type=Path, default=Path("results/compact.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(options.rows, Path(folder), not options.without_kill)
    print({k: v for k, v in figures.items() if k.startswith(("same", "speed"))})
    records.append(options.out, figures)


if __name__ == "__main__":
    main()
