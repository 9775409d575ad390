"""A fit to 500 items and 5,000 judgements with default settings: seconds, each in a fresh process.

Ten Gaussian classes in 16 dimensions and random pairs of items, judged consistently or with single
judgements flipped at known rates, so that they contradict each other. A process tells the seconds
of importing the classifier (nearly all of them torch's and scikit-learn's), of its first fit (what
it loads on the way included) and of a second one: by the clock, and of the processor, which others'
work on the machine changes less.

    python benchmarks/small_fit.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import records

N_ITEMS, N_JUDGEMENTS, N_CLASSES, N_FEATURES = 500, 5_000, 10, 16
KINDS = ("consistent", "contradictory")
RATES = (0.8, 0.05)  # P(same | one class), P(same | two classes) where judgements are flipped
LIMIT = 3.0  # issues 15 and 19: seconds of a fit on two cores


def make(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Features (N, d), classes (N,), judgements."""
    from likewise import Pairs

    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=N_ITEMS)
    centres = 1.2 * rng.standard_normal((N_CLASSES, N_FEATURES))
    x = (centres[y] + rng.standard_normal((N_ITEMS, N_FEATURES))).astype(np.float32)
    left = rng.integers(N_ITEMS, size=N_JUDGEMENTS)
    right = (left + rng.integers(1, N_ITEMS, size=N_JUDGEMENTS)) % N_ITEMS
    same = y[left] == y[right]
    if kind == "contradictory":
        same = rng.random(N_JUDGEMENTS) < np.where(same, *RATES)
    return x, y, Pairs(left, right, same, n_items=N_ITEMS)


def fit_twice(kind: str, seed: int) -> dict[str, Any]:
    """Fit in this process, then again: a row of the results."""
    started, processor = time.perf_counter(), time.process_time()
    from likewise import SimilarityClassifier

    imports = time.perf_counter() - started, time.process_time() - processor
    x, y, pairs = make(kind, seed)
    seconds, cpu_seconds = [], []
    for _ in range(2):
        started, processor = time.perf_counter(), time.process_time()
        clf = SimilarityClassifier(N_CLASSES, random_state=seed, verbose=False).fit(x, pairs)
        seconds.append(round(time.perf_counter() - started, 2))
        cpu_seconds.append(round(time.process_time() - processor, 2))
    return {
        "kind": kind,
        "seed": seed,
        "method": clf.method_,
        "seconds": seconds[0],
        "seconds_again": seconds[1],
        "cpu_seconds": cpu_seconds[0],
        "cpu_seconds_again": cpu_seconds[1],
        "import_seconds": round(imports[0], 2),
        "import_cpu_seconds": round(imports[1], 2),
        "accuracy": round(float(clf.score(x, y)), 4),
    }


def fresh(kind: str, seed: int) -> dict[str, Any]:
    """`fit_twice` in a process of its own."""
    command = [sys.executable, __file__, "--child", kind, "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    row: dict[str, Any] = json.loads(done.stdout)
    print(
        f"{kind:>14}, seed {seed}: {row['seconds']:5.2f} s, again {row['seconds_again']:5.2f} s "
        f"(processor {row['cpu_seconds']:.2f} s; imports before it {row['import_seconds']:.2f} s, "
        f"processor {row['import_cpu_seconds']:.2f} s; accuracy {row['accuracy']:.3f})",
        flush=True,
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/small_fit.json"))
    parser.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(fit_twice(options.child, options.seed)))
        return
    load = os.getloadavg()[0]
    rows = [fresh(kind, seed) for kind in KINDS for seed in range(options.seeds)]
    slowest, cpu = (max(row[key] for row in rows) for key in ("seconds", "cpu_seconds"))
    print(
        f"slowest {slowest:.2f} s of at most {LIMIT:g} s, of the processor {cpu:.2f} s; load "
        f"before {load:.2f}"
    )
    figures = {
        "items": N_ITEMS,
        "judgements": N_JUDGEMENTS,
        "limit": LIMIT,
        "slowest_seconds": slowest,
        "slowest_cpu_seconds": cpu,
        "rows": rows,
    }
    records.append(options.out, figures, load)


if __name__ == "__main__":
    main()
