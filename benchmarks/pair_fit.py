"""Fitting an MLP to listed judgements about a million items: judgements a second.

Ten Gaussian classes in 64 dimensions, single judgements flipped at known rates, the pairwise loss
through those rates, Adam. Two ways of making batches do the same work in one run:

- *shared*: `likewise.pair_batches.PairSchedule`, one forward of an item for all its judgements in
  the batch;
- *usual*: random judgements, both items of each forwarded.

Memory is the peak of a fresh process that fits for three steps, at as many judgements and at four
times as many: what it grows by, divided by their difference, against the 9 bytes that a judgement
takes (two indices and an answer).

    python benchmarks/pair_fit.py
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise import functional
from likewise.matching import matched_accuracy
from likewise.networks import MLP
from likewise.pair_batches import PairSchedule, forward_in_pieces
from likewise.pairs import Pairs
from likewise.shared_pairs import shared_batch

N_CLASSES, N_FEATURES = 10, 64
RATES = (0.8, 0.1)  # P(same | one class), P(same | two classes)

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
Forward = Callable[[nn.Module, Tensor], Tensor]


def make(n_items: int, n_judgements: int, seed: int) -> tuple[Tensor, np.ndarray, Pairs]:
    """Features (N, 64), classes (N,), and random noisy judgements."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n_items, dtype=np.int8)
    centres = 0.6 * rng.standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    x = rng.standard_normal((n_items, N_FEATURES), dtype=np.float32)
    for k in range(N_CLASSES):
        x[y == k] += centres[k]
    left, right = np.empty((2, n_judgements), np.int32)
    same = np.empty(n_judgements, bool)
    for start in range(0, n_judgements, 1 << 20):  # in pieces: only the judgements themselves stay
        part = slice(start, start + (1 << 20))
        count = len(same[part])
        left[part] = rng.integers(n_items, size=count, dtype=np.int32)
        right[part] = rng.integers(n_items - 1, size=count, dtype=np.int32)
        right[part] += right[part] >= left[part]
        p_same = np.where(y[left[part]] == y[right[part]], *RATES)
        same[part] = rng.random(count) < p_same
    return torch.from_numpy(x), y, Pairs(left, right, same, n_items=n_items)


def shared_batches(pairs: Pairs, batch: int, rng: np.random.Generator) -> Iterator[Batch]:
    for step in PairSchedule(pairs, batch).epoch(rng):
        columns = (step.items, step.left, step.right, step.same)
        yield tuple(torch.from_numpy(column) for column in columns)  # type: ignore[misc]


def usual_batches(pairs: Pairs, batch: int, rng: np.random.Generator) -> Iterator[Batch]:
    order = rng.permutation(len(pairs))
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        items = np.concatenate([pairs.left[rows], pairs.right[rows]])
        left = np.arange(len(rows))
        columns = (items, left, left + len(rows), pairs.same[rows])
        yield tuple(torch.from_numpy(column) for column in columns)  # type: ignore[misc]


def train(
    network: nn.Module,
    x: Tensor,
    batches: Iterator[Batch],
    forward: Forward,
    rate: float,
    seconds: float = float("inf"),
) -> tuple[int, int, float]:
    """Train until the batches or the seconds are over: ``(judgements, forwards, seconds)``."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    a, b = RATES
    judgements = forwards = 0
    started = time.perf_counter()
    for items, left, right, same in batches:
        f = forward(network, x[items]).softmax(dim=1)
        similarity = b + (a - b) * (f[left] * f[right]).sum(dim=1)
        loss = functional.similarity_cross_entropy(similarity, same)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        judgements, forwards = judgements + len(same), forwards + len(items)
        if time.perf_counter() - started > seconds:
            break
    return judgements, forwards, time.perf_counter() - started


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Fit by shared batches, then by usual ones of as many items, on the same data."""
    x, y, pairs = make(options.items, options.judgements, options.seed)
    torch.manual_seed(options.seed)
    network = MLP(N_FEATURES, N_CLASSES)
    rng = np.random.default_rng(options.seed)
    judgements, forwards, seconds = 0, 0, 0.0
    processor = time.process_time()
    for _ in range(options.epochs):
        batches = itertools.islice(shared_batches(pairs, options.batch, rng), options.steps or None)
        done = train(network, x, batches, forward_in_pieces, options.rate)
        judgements, forwards, seconds = (
            judgements + done[0],
            forwards + done[1],
            seconds + done[2],
        )
    processor = time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with torch.no_grad():
        predicted = network(x[:100_000]).argmax(dim=1).numpy()
    result = {
        "items": options.items,
        "judgements": options.judgements,
        "epochs": options.epochs,
        "judgements_per_second": round(judgements / seconds),
        "judgements_per_processor_second": round(judgements / processor),
        "judgements_per_forward": round(judgements / forwards, 3),
        "batch": options.batch,
        "seconds": round(seconds, 2),
        "accuracy": round(float(matched_accuracy(predicted, y[:100_000])), 4),
        "peak_bytes": peak,
    }
    if not options.steps:
        usual = usual_batches(pairs, 4096, rng)
        fresh_network = MLP(N_FEATURES, N_CLASSES)
        count, _, took = train(
            fresh_network, x, usual, nn.Module.__call__, options.rate, seconds=10.0
        )
        result["usual_per_second"] = round(count / took)
        result["ratio"] = round(judgements / seconds / (count / took), 2)
    return result


def fresh(options: argparse.Namespace, judgements: int, steps: int) -> dict[str, Any]:
    """The same in a process of its own, with the batches that ``fit`` would choose."""
    batch = options.batch or shared_batch(judgements, options.items)
    changes = {"judgements": judgements, "batch": batch, "steps": steps}
    command = [sys.executable, __file__, "--child"]
    for name in ("items", "judgements", "batch", "epochs", "steps", "threads", "seed", "rate"):
        command += [f"--{name}", str(changes.get(name, getattr(options, name)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--judgements", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=0, help="judgements; 0: as fit chooses")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("results/pair_fit.json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.child:
        print(json.dumps(run(options)))
        return
    full = fresh(options, options.judgements, steps=0)
    once, fourfold = (fresh(options, k * options.judgements, steps=3) for k in (1, 4))
    more = fourfold["judgements"] - once["judgements"]
    growth = (fourfold["peak_bytes"] - once["peak_bytes"]) / more
    print(
        f"{full['judgements']:,} judgements about {full['items']:,} items: "
        f"{full['judgements_per_second']:,} a second "
        f"({full['judgements_per_processor_second']:,} a second of one processor), "
        f"{full['judgements_per_forward']} a forward, "
        f"{full['ratio']} times the usual {full['usual_per_second']:,}; accuracy "
        f"{full['accuracy']:.3f} after {full['epochs']} epochs; memory grows by {growth:.1f} bytes "
        "a judgement"
    )
    result = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "rows": [full, once, fourfold],
        "bytes_per_judgement": round(growth, 2),
    }
    earlier = json.loads(options.out.read_text()) if options.out.exists() else []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps([*earlier, result], indent=1) + "\n")


if __name__ == "__main__":
    main()
