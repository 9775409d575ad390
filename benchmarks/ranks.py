"""Fits over ranks: the numbers of one process, in a share of its memory.

A contradictory set (ten Gaussian classes, class noise .2, answers that slip at known rates, once
the same for all, once those of fifty people) is fitted by one process and by two and four ranks
(gloo) on this machine, each in fresh processes. Every rank first infers beliefs from its shard of
the file, then does the whole fit; it tells its beliefs, rates, T, people and predictions, and how
far its peak memory rose above what it held before it read anything (once by inference, once by the
whole fit, whose first rank also writes the run). What it held before is that of its libraries after
a whole fit to a small set: the first fit of a process loads what no data asks for. Then a fit by
two ranks loses one of them to SIGKILL, and the same command with --resume goes on.

    python benchmarks/ranks.py [--items 20000] [--judgements 1000000] [--people 0 50]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import records

if TYPE_CHECKING:
    from likewise import SimilarityClassifier

N_CLASSES, N_FEATURES = 10, 16
FLIPS, RATES = 0.2, (0.95, 0.02)
PEOPLES_RATES = (0.7, 0.99), (0.01, 0.15)  # of "same" where it is, and where it is not: from, to
EPOCHS = 2  # of each network: equality does not need more
WORLDS = (1, 2, 4)
PEOPLE = (0, 50)  # 0: nobody is named
SMALL = 400, 20_000  # items and judgements of the fit that comes before
AGREE, SHARE = 1e-5, 0.6  # issue 19
MB = 2**20


def make(folder: Path, n_items: int, n_judgements: int, people: int) -> None:
    """items.npy and pairs.parquet."""
    from likewise import Pairs
    from likewise.noise import corrupt_labels, symmetric

    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_items)
    centres = 1.2 * rng.standard_normal((N_CLASSES, N_FEATURES))
    items = centres[y] + rng.standard_normal((n_items, N_FEATURES))
    z = corrupt_labels(y, symmetric(N_CLASSES, FLIPS), rng)
    left = rng.integers(n_items, size=n_judgements)
    right = (left + rng.integers(1, n_items, size=n_judgements)) % n_items
    if people:
        person = rng.integers(people, size=n_judgements)
        a, b = (rng.uniform(*span, people)[person] for span in PEOPLES_RATES)
        names: list[str] | None = [f"person {k:02}" for k in person]
    else:
        (a, b), names = RATES, None
    same = rng.random(n_judgements) < np.where(z[left] == z[right], a, b)
    np.save(folder / "items.npy", items.astype(np.float32))
    Pairs(left, right, same, names, n_items=n_items).write(folder / "pairs.parquet")


def memory(name: str) -> float:
    """MB of this process: VmRSS now, VmHWM at most so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name))) * 1024 / MB


def fit(folder: Path, run: Path) -> SimilarityClassifier:
    """The whole fit to what ``make`` has made."""
    from likewise import SimilarityClassifier
    from likewise.runs.fit_job import FitJob

    classifier = SimilarityClassifier(
        N_CLASSES, recipe={"epochs": EPOCHS}, random_state=0, verbose=False, device="cpu"
    )
    FitJob(folder / "items.npy", folder / "pairs.parquet", run).run(classifier)
    return classifier


def as_rank(folder: Path, out: Path) -> None:
    """Infer, then fit, as the rank that torchrun made this process; ``out`` takes what came."""
    from likewise import Pairs
    from likewise.inference.propagation.crowd_beliefs import crowd_beliefs
    from likewise.inference.propagation.graph_beliefs import graph_beliefs
    from likewise.io.memory import release_freed
    from likewise.pairs.shards import read_shard
    from likewise.training.distributed import process_group_of_torchrun

    rank = int(os.environ.get("RANK", "0"))
    path, items = folder / "pairs.parquet", np.load(folder / "items.npy", mmap_mode="r")
    with process_group_of_torchrun() as group:
        fit(folder / "small", out / "small")
        release_freed()
        Path("/proc/self/clear_refs").write_text("5")  # the most so far is what there is now
        before, started = memory("VmRSS"), time.perf_counter()
        pairs = (
            Pairs.read(path, n_items=len(items))
            if group is None
            else read_shard(path, group, n_items=len(items))
        )
        held, infer = len(pairs), graph_beliefs if pairs.annotator is None else crowd_beliefs
        beliefs = infer(pairs, N_CLASSES, 0)
        assert beliefs is not None
        figures = {
            "inference_mb": memory("VmHWM") - before,
            "inference_s": time.perf_counter() - started,
        }
        del pairs
        classifier = fit(folder, out / "run")
    figures |= {"fit_mb": memory("VmHWM") - before, "before_mb": before, "judgements_held": held}
    figures["fit_s"] = time.perf_counter() - started
    (out / f"{rank}.json").write_text(json.dumps(figures))
    np.savez(
        out / f"{rank}.npz",
        beliefs=beliefs.evidence,
        transition=classifier.transition_,
        posterior=classifier.posterior_,
        predictions=classifier.predict_proba(np.asarray(items)),
        **learned_rates(classifier),
    )


def learned_rates(classifier: SimilarityClassifier) -> dict[str, Any]:
    """What a fit has found out about answers, and about each person by name."""
    channel, table = classifier.channel_, classifier.annotators_
    if table is None:
        return {"rates": [channel.a, channel.b]}
    order = np.argsort(table["annotator"])
    told = [np.array(table[name])[order] for name in table if name != "annotator"]
    return {"rates": channel.rates().numpy(), "annotators": np.stack(told)}


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


def compare(
    folder: Path, people: int, world: int, alone: Path | None
) -> tuple[dict[str, Any], Path]:
    """Run so many ranks; their figures, and how far each result is from that of one process."""
    out = folder / f"world-{world}"
    out.mkdir()
    command = launch(world, __file__, "--as-rank", str(folder), "--out", str(out))
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    row: dict[str, Any] = {"people": people, "ranks": world}
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


def shared_out(folder: Path, people: int, worlds: list[int]) -> tuple[list[dict[str, Any]], Path]:
    """A row for each number of ranks, beside one process, and where that has left its run."""
    first, alone = compare(folder, people, 1, None)
    rows = [first, *(compare(folder, people, k, alone)[0] for k in worlds if k > 1)]
    for row in rows[1:]:
        for kind in ("inference", "fit"):
            row[f"{kind}_memory_share"] = round(row[f"{kind}_mb"] / first[f"{kind}_mb"], 3)
        far = max(value for key, value in row.items() if key.endswith("_off"))
        print(
            f"{row['ranks']} ranks: off by {far:.1e} (at most {AGREE:g}), memory of one process's "
            f"(two ranks: at most {SHARE:g}): {row['inference_memory_share']:.2f} for inference, "
            f"{row['fit_memory_share']:.2f} for a whole fit",
            flush=True,
        )
    return rows, alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, nargs="+", default=list(PEOPLE))
    parser.add_argument("--worlds", type=int, nargs="+", default=list(WORLDS))
    parser.add_argument("--results", type=Path, default=Path("results/ranks.json"))
    parser.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_rank:
        as_rank(options.as_rank, options.out)
        return
    load, rows, killed = os.getloadavg()[0], list[dict[str, Any]](), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as name:
        for people in options.people:
            folder = Path(name) / f"people-{people}"
            make(folder, options.items, options.judgements, people)
            make(folder / "small", *SMALL, people=0)
            found, alone = shared_out(folder, people, options.worlds)
            rows += found
            killed.append({"people": people} | kill_and_resume(folder, alone))
            print(json.dumps(killed[-1]), flush=True)
    about = {"items": options.items, "judgements": options.judgements, "epochs": EPOCHS}
    records.append(options.results, about | {"rows": rows, "killed": killed}, load)


if __name__ == "__main__":
    main()
