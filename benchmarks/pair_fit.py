"""Fitting an MLP to listed judgements about a million items: judgements a second.

Ten Gaussian classes in 64 dimensions, single judgements flipped at known rates, the pairwise loss
through those rates, Adam. Two ways of doing the same work in one run:

- *shared*: what `fit` does, `likewise.training.run` over shared pairs
  (`likewise.training.objectives.shared_pairs`): one forward of an item for all its judgements in
  the batch, held-out judgements scored after every epoch;
- *usual*: a plain loop over random judgements, both items of each forwarded.

Memory is the peak of a fresh process that fits for three steps, at as many judgements and at four
times as many: what it grows by, divided by their difference, against the 9 bytes that a judgement
takes (two indices and an answer).

    python benchmarks/pair_fit.py
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import records
from likewise import functional
from likewise.metrics import matched_accuracy
from likewise.nn.networks import MLP
from likewise.pairs import Pairs
from likewise.training.objectives.pairwise import PairwiseLoss
from likewise.training.objectives.shared_pairs import SharedPairwise, shared_batch
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

N_CLASSES, N_FEATURES = 10, 64
RATES = (0.8, 0.1)  # P(same | one class), P(same | two classes)
N_HELD = 50_000  # held-out judgements, and items that they are about
CPU = torch.device("cpu")

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def make(n_items: int, n_judgements: int, seed: int) -> tuple[Tensor, np.ndarray, Pairs]:
    """Features (N, 64), classes (N,), and random noisy judgements."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n_items, dtype=np.int8)
    centres = 0.6 * rng.standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    x = rng.standard_normal((n_items, N_FEATURES), dtype=np.float32)
    for k in range(N_CLASSES):
        x[y == k] += centres[k]
    return torch.from_numpy(x), y, judge(y, n_judgements, rng)


def judge(y: np.ndarray, n_judgements: int, rng: np.random.Generator) -> Pairs:
    """Random noisy judgements about items of classes ``y`` (N,)."""
    left, right = np.empty((2, n_judgements), np.int32)
    same = np.empty(n_judgements, bool)
    for start in range(0, n_judgements, 1 << 20):  # in pieces: only the judgements themselves stay
        part = slice(start, start + (1 << 20))
        count = len(same[part])
        left[part] = rng.integers(len(y), size=count, dtype=np.int32)
        right[part] = rng.integers(len(y) - 1, size=count, dtype=np.int32)
        right[part] += right[part] >= left[part]
        p_same = np.where(y[left[part]] == y[right[part]], *RATES)
        same[part] = rng.random(count) < p_same
    return Pairs(left, right, same, n_items=len(y))


def usual_batches(pairs: Pairs, batch: int, rng: np.random.Generator) -> Iterator[Batch]:
    order = rng.permutation(len(pairs))
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        items = np.concatenate([pairs.left[rows], pairs.right[rows]])
        left = np.arange(len(rows))
        columns = (items, left, left + len(rows), pairs.same[rows])
        yield tuple(torch.from_numpy(column) for column in columns)  # type: ignore[misc]


def train_shared(
    network: nn.Module, x: Tensor, pairs: Pairs, held: Pairs, options: argparse.Namespace
) -> tuple[int, int, list[float]]:
    """Train as `fit` would: ``(judgements, forwards)``, and the held-out score of every epoch."""
    loss = PairwiseLoss("mcl", rates=RATES)
    objective = SharedPairwise(loss, pairs, held, CPU, options.batch, options.seed)
    recipe = Recipe(epochs=options.epochs, lr=options.rate)
    run = TrainingRun(network, x, x[:N_HELD], objective, recipe, seed=options.seed)
    forwards = 0

    def count(module: nn.Module, inputs: tuple[Tensor]) -> None:
        nonlocal forwards
        forwards += len(inputs[0]) if module.training else 0

    run.model.register_forward_pre_hook(count)
    for _ in range(options.epochs):
        run.begin_epoch()
        for _ in range(options.steps or run.steps_per_epoch):
            run.step()
        if not options.steps:
            run.end_epoch()
    whole = options.epochs * len(pairs)
    part = (options.steps or 0) * len(pairs) // run.steps_per_epoch
    return part or whole, forwards, [epoch["held_out"] for epoch in run.history]


def train_usual(
    network: nn.Module, x: Tensor, batches: Iterator[Batch], rate: float, seconds: float
) -> tuple[int, float]:
    """A plain loop until the batches or the seconds are over: ``(judgements, seconds)``."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    a, b = RATES
    judgements = 0
    started = time.perf_counter()
    for items, left, right, same in batches:
        f = network(x[items]).softmax(dim=1)
        similarity = b + (a - b) * (f[left] * f[right]).sum(dim=1)
        loss = functional.similarity_cross_entropy(similarity, same)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        judgements += len(same)
        if time.perf_counter() - started > seconds:
            break
    return judgements, time.perf_counter() - started


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Fit by shared batches, then by usual ones of as many items, on the same data."""
    x, y, pairs = make(options.items, options.judgements, options.seed)
    held = judge(y[:N_HELD], N_HELD, np.random.default_rng(options.seed + 1))
    torch.manual_seed(options.seed)
    network = MLP(N_FEATURES, N_CLASSES)
    started, processor = time.perf_counter(), time.process_time()
    judgements, forwards, scores = train_shared(network, x, pairs, held, options)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
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
        "held_out": [round(score, 5) for score in scores],
        "accuracy": round(float(matched_accuracy(predicted, y[:100_000])), 4),
        "peak_bytes": peak,
    }
    if not options.steps:
        usual = usual_batches(pairs, 4096, np.random.default_rng(options.seed))
        count, took = train_usual(MLP(N_FEATURES, N_CLASSES), x, usual, options.rate, seconds=10.0)
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
    figures = {
        "torch": torch.__version__,
        "rows": [full, once, fourfold],
        "bytes_per_judgement": round(growth, 2),
    }
    records.append(options.out, figures)


if __name__ == "__main__":
    main()
