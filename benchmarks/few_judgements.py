"""Few judgements about many items: MNIST, all 60,000 as vectors of 784 pixels, clean random pairs.

The public protocol of SpherePair: 1,000, 5,000 or 10,000 pairs, accuracy on the 10,000 test items
under the best matching. DATA is a folder with MNIST in its own format.

    python benchmarks/few_judgements.py DATA [--pairs 1000 5000 10000] [--seeds 2] [--flipped 0]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import records
from likewise import Pairs, SimilarityClassifier
from likewise.datasets.mnist import load_mnist
from likewise.pairs.sampling import random_pairs

RESULTS = Path(__file__).parents[1] / "results" / "few_judgements.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1000, 5000, 10_000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--flipped", type=float, default=0.0)
    options = parser.parse_args()
    mnist = load_mnist(options.data)
    train, test = (x.reshape(len(x), -1) / np.float32(255) for x in (mnist.train_x, mnist.test_x))
    for count in options.pairs:
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            left, right = random_pairs(len(train), count, rng)
            same = mnist.train_y[left] == mnist.train_y[right]
            same = same ^ (rng.random(count) < options.flipped)
            began, spent = time.perf_counter(), time.process_time()
            pairs = Pairs(left, right, same, n_items=len(train))
            clf = SimilarityClassifier(10, random_state=seed, verbose=False).fit(train, pairs)
            row = {
                "pairs": count,
                "flipped": options.flipped,
                "seed": seed,
                "accuracy": clf.score(test, mnist.test_y),
                "seconds": round(time.perf_counter() - began),
                "cpu_seconds": round(time.process_time() - spent),
                "choice": clf.choice_,
            }
            records.append(RESULTS, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
