"""A whole fit with default settings as the judgements grow: seconds, accuracy, and the slope.

Twenty judgements an item, some of them flipped, over 16 features in five classes; each fit in a
fresh process. The slope is that of log seconds over log judgements:

    python benchmarks/fit_growth.py [--sizes 1000 10000 100000]

Appends to results/fit_growth.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import records

PER_ITEM = 20
N_CLASSES, N_FEATURES = 5, 16
RATES = (0.8, 0.05)  # P(same | one class), P(same | two classes)


def fit(n_judgements: int) -> dict[str, Any]:
    """One fit in this process: a row of the results."""
    from likewise import Pairs, SimilarityClassifier

    rng = np.random.default_rng(0)
    n_items = 2 * n_judgements // PER_ITEM
    y = rng.integers(N_CLASSES, size=n_items)
    centres = 1.2 * rng.standard_normal((N_CLASSES, N_FEATURES))
    x = (centres[y] + rng.standard_normal((n_items, N_FEATURES))).astype(np.float32)
    left = rng.integers(n_items, size=n_judgements)
    right = (left + rng.integers(1, n_items, size=n_judgements)) % n_items
    same = rng.random(n_judgements) < np.where(y[left] == y[right], *RATES)
    pairs = Pairs(left, right, same, n_items=n_items)
    started, processor = time.perf_counter(), time.process_time()
    clf = SimilarityClassifier(N_CLASSES, random_state=0, verbose=False).fit(x, pairs)
    return {
        "judgements": n_judgements,
        "items": n_items,
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(time.process_time() - processor, 2),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "method": clf.method_,
        "accuracy": round(float(clf.score(x, y)), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--out", type=Path, default=Path("results/fit_growth.json"))
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(fit(options.child)))
        return
    rows = []
    for size in options.sizes:
        command = [sys.executable, __file__, "--child", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        rows.append(json.loads(done.stdout))
        print("{judgements:>11,} judgements {seconds:8.2f} s  {accuracy:.3f}".format(**rows[-1]))
    logs = np.log([[row["judgements"], row["seconds"]] for row in rows]).T
    slope = round(float(np.polyfit(*logs, 1)[0]), 3) if len(rows) > 1 else None
    print(f"slope {slope}")
    records.append(options.out, {"slope": slope, "rows": rows})


if __name__ == "__main__":
    main()
