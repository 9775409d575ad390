"""Inference over ranks: the numbers of one process, in a share of its memory.

A contradictory set (ten Gaussian classes, class noise .2, answers that slip at known rates) is
fitted by one process and by two and four ranks (gloo) on this machine, each in fresh processes.
Every rank first infers beliefs from its shard of the file, then does the whole fit; it tells its
beliefs, rates, T and predictions, and how far its peak memory rose above what it held before it
read anything (once by inference, once by the whole fit, whose first rank also writes the run). Then
a fit by two ranks loses one of them to SIGKILL, and the same command with --resume goes on.

    python benchmarks/ranks.py [--items 20000] [--judgements 1000000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import records

N_CLASSES, N_FEATURES = 10, 16
FLIPS, RATES = 0.2, (0.95, 0.02)
EPOCHS = 2  # of each network: equality does not need more
WORLDS = (1, 2, 4)
AGREE, SHARE = 1e-5, 0.6  # issue 19
MB = 2**20


def make(folder: Path, n_items: int, n_judgements: int) -> None:
    """items.npy and pairs.parquet."""
    from likewise import Pairs
    from likewise.noise import corrupt_labels, symmetric

    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_items)
    centres = 1.2 * rng.standard_normal((N_CLASSES, N_FEATURES))
    items = centres[y] + rng.standard_normal((n_items, N_FEATURES))
    z = corrupt_labels(y, symmetric(N_CLASSES, FLIPS), rng)
    left = rng.integers(n_items, size=n_judgements)
    right = (left + rng.integers(1, n_items, size=n_judgements)) % n_items
    same = rng.random(n_judgements) < np.where(z[left] == z[right], *RATES)
    np.save(folder / "items.npy", items.astype(np.float32))
    Pairs(left, right, same, n_items=n_items).write(folder / "pairs.parquet")


def peak() -> float:
    """The most MB that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB


def as_rank(folder: Path, out: Path) -> None:
    """Infer, then fit, as the rank that torchrun made this process; ``out`` takes what came."""
    from likewise import Pairs, SimilarityClassifier
    from likewise.inference.graph_beliefs import graph_beliefs
    from likewise.pairs.shards import read_shard
    from likewise.runs.fit_job import FitJob
    from likewise.training.distributed import process_group_of_torchrun

    rank = int(os.environ.get("RANK", "0"))
    n_items = len(np.load(folder / "items.npy", mmap_mode="r"))
    with tempfile.TemporaryDirectory() as small:  # libraries have set themselves up
        make(Path(small), 60, 900)
        graph_beliefs(Pairs.read(Path(small) / "pairs.parquet", n_items=60), N_CLASSES, 0)
    with process_group_of_torchrun() as group:
        before, started = peak(), time.perf_counter()
        path = folder / "pairs.parquet"
        pairs = (
            Pairs.read(path, n_items=n_items)
            if group is None
            else read_shard(path, group, n_items=n_items)
        )
        held = len(pairs)
        beliefs = graph_beliefs(pairs, N_CLASSES, 0)
        assert beliefs is not None
        figures = {"inference_mb": peak() - before, "inference_s": time.perf_counter() - started}
        del pairs
        classifier = SimilarityClassifier(
            N_CLASSES, recipe={"epochs": EPOCHS}, random_state=0, verbose=False, device="cpu"
        )
        FitJob(folder / "items.npy", path, out / "run").run(classifier)
    figures |= {"fit_mb": peak() - before, "before_mb": before, "judgements_held": held}
    figures["fit_s"] = time.perf_counter() - started
    (out / f"{rank}.json").write_text(json.dumps(figures))
    np.savez(
        out / f"{rank}.npz",
        beliefs=beliefs.evidence,
        rates=[classifier.channel_.a, classifier.channel_.b],
        transition=classifier.transition_,
        posterior=classifier.posterior_,
        predictions=classifier.predict_proba(np.load(folder / "items.npy")),
    )


def launch(world: int, *arguments: str) -> list[str]:
    """The command that starts so many ranks of a module or script, one of them alone plainly."""
    if world == 1:
        return [sys.executable, *arguments]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    where = ["--master-addr=127.0.0.1", f"--master-port={port}"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={world}"]
    return [*torchrun, *where, *arguments]


def compare(folder: Path, world: int, alone: Path | None) -> tuple[dict[str, Any], Path]:
    """Run so many ranks; their figures, and how far each result is from that of one process."""
    out = folder / f"world-{world}"
    out.mkdir()
    command = launch(world, __file__, "--as-rank", str(folder), "--out", str(out))
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    row: dict[str, Any] = {"ranks": world}
    told = [json.loads((out / f"{rank}.json").read_text()) for rank in range(world)]
    row |= {key: round(max(one[key] for one in told), 1) for key in told[0]}
    if alone is not None:
        expected = np.load(alone / "0.npz")
        for rank in range(world):
            found = np.load(out / f"{rank}.npz")
            for name in expected:
                off = float(np.abs(found[name] - expected[name]).max())
                row[f"{name}_off"] = max(row.get(f"{name}_off", 0.0), off)
    print(json.dumps(row), flush=True)
    return row, out


def environment() -> dict[str, str]:
    return dict(os.environ) | {"OMP_NUM_THREADS": "1"}


def kill_and_resume(folder: Path, alone: Path) -> dict[str, Any]:
    """Two ranks by the command line; one is killed in training; the same again with --resume."""
    fit = ["-m", "likewise", "fit", str(folder / "items.npy"), str(folder / "pairs.parquet")]
    fit += ["--classes", str(N_CLASSES), "--epochs", str(EPOCHS), "--quiet", "--device", "cpu"]
    fit += ["--checkpoint-seconds", "0", "--out", str(folder / "killed")]
    running = subprocess.Popen(
        launch(2, *fit),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 900
    while not any((folder / "killed.checkpoints").glob("stage-1.*")):
        assert running.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline, "it wrote no checkpoint"
        time.sleep(0.1)
    listing = ["ps", "-o", "pid=", "--ppid", str(running.pid)]
    ranks = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    _, told = running.communicate(timeout=300)
    said = next((line for line in told.splitlines() if "another rank" in line), "")
    again = launch(2, *fit, "--resume")
    resumed = subprocess.run(again, env=environment(), capture_output=True, text=True, check=False)
    if resumed.returncode:
        raise SystemExit(resumed.stderr)
    ends = [
        json.loads((run / "metrics.json").read_text())["transition"]
        for run in (folder / "killed", alone / "run")
    ]
    return {
        "status": running.returncode,
        "said": said,
        "resumed": resumed.returncode == 0,
        "transition_off": float(np.abs(np.subtract(*ends)).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--worlds", type=int, nargs="+", default=list(WORLDS))
    parser.add_argument("--results", type=Path, default=Path("results/ranks.json"))
    parser.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_rank:
        as_rank(options.as_rank, options.out)
        return
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.items, options.judgements)
        first, alone = compare(folder, 1, None)
        rows = [first, *(compare(folder, k, alone)[0] for k in options.worlds if k > 1)]
        killed = kill_and_resume(folder, alone)
    for row in rows[1:]:
        for kind in ("inference", "fit"):
            row[f"{kind}_memory_share"] = round(row[f"{kind}_mb"] / first[f"{kind}_mb"], 3)
        far = max(value for key, value in row.items() if key.endswith("_off"))
        print(
            f"{row['ranks']} ranks: off by {far:.1e} (at most {AGREE:g}), memory of inference "
            f"{row['inference_memory_share']:.2f} of one process's (two ranks: at most {SHARE:g})"
        )
    print(f"killed: status {killed['status']}, {killed['said']!r}; resumed: {killed['resumed']}")
    about = {"items": options.items, "judgements": options.judgements, "epochs": EPOCHS}
    records.append(options.results, about | {"rows": rows, "killed": killed}, load)


if __name__ == "__main__":
    main()
