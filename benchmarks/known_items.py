"""What known classes of twenty items are worth where judgements are few: scikit-learn's digits.

Three judgements an item, a share of the items taken for another class; two items of each digit have
a known class. 80/20 split: ``accuracy`` is of the test items under the best matching, ``named`` the
share whose class has the right number, which without known classes is chance.

    python benchmarks/known_items.py [--noise 0.2 0.4] [--per-item 3] [--seeds 5]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import records
from likewise import Pairs, SimilarityClassifier
from likewise.noise import corrupt_labels, symmetric

RESULTS = Path(__file__).parents[1] / "results" / "known_items.json"
EACH = 2  # items of each digit whose class is known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.2, 0.4])
    parser.add_argument("--per-item", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    items, digit = load_digits(return_X_y=True)
    for noise in options.noise:
        for seed in range(options.seeds):
            x, x_test, y, y_test = train_test_split(
                items / 16, digit, test_size=0.2, random_state=seed, stratify=digit
            )
            rng = np.random.default_rng(seed)
            perceived = corrupt_labels(y, symmetric(10, noise), rng)
            pairs = Pairs.from_labels(perceived, options.per_item, rng)
            picked = [rng.choice(np.flatnonzero(y == c), EACH, replace=False) for c in range(10)]
            known = {int(k): int(y[k]) for k in np.concatenate(picked)}
            for given in (None, known):
                began = time.process_time()
                clf = SimilarityClassifier(10, random_state=seed, verbose=False)
                clf.fit(x, pairs, known=given)
                row = {
                    "noise": noise,
                    "per_item": options.per_item,
                    "seed": seed,
                    "known_items": 0 if given is None else len(given),
                    "accuracy": clf.score(x_test, y_test),
                    "named": float((clf.predict(x_test) == y_test).mean()),
                    "cpu_seconds": round(time.process_time() - began, 1),
                }
                records.append(RESULTS, row)
                print(row, flush=True)


if __name__ == "__main__":
    main()
