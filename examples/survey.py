"""A survey with a sensitive question: likeness instead of answers, and a die for deniability.

    python examples/survey.py [--quick]

Each person plays a camp by a private die whose chances are known (randomised response), and only
"same camp or not" is asked of pairs. More noise protects more and needs more comparisons.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import likewise as lw

RATES = (0.4,) if "--quick" in sys.argv else (0.2, 0.4, 0.5)
EPOCHS = 20 if "--quick" in sys.argv else 100


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    camp = rng.integers(3, size=900)  # what nobody is asked
    X = rng.normal(size=(3, 12))[camp] + rng.normal(size=(900, 12))
    print("die keeps  epsilon  played another  camps right")
    for rate in RATES:
        T = lw.noise.symmetric(3, rate)
        epsilon = np.log((T.max(axis=0) / T.min(axis=0)).max())
        played = lw.noise.corrupt_labels(camp, T, random_state=1)
        pairs = lw.Pairs.from_labels(played, per_item=30, random_state=1)
        clf = lw.SimilarityClassifier(
            3, transition=T, recipe={"epochs": EPOCHS}, random_state=0, verbose=False
        ).fit(X, pairs)
        other = np.mean(played != camp)
        print(f"{1 - rate:9.0%}  {epsilon:7.2f}  {other:14.0%}  {clf.score(X, camp):11.0%}")


if __name__ == "__main__":
    main()
