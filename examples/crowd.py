"""A crowd in which some people look, some hurry and some toss a coin.

    python examples/crowd.py [--quick]

Sixty people judge pairs of items. Likewise finds the classes and who can be believed, from the
judgements alone; here the truth is known, so that both can be checked.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import likewise as lw
from likewise.pairs.sampling import random_pairs

PER_PERSON = 40 if "--quick" in sys.argv else 80


def judge(same: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Answers: right with each person's own chance, else the opposite."""
    return np.where(rng.random(len(same)) < right, same, ~same)


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    X = (rng.normal(size=(3, 20)) * 0.8)[kind] + rng.normal(size=(300, 20))
    skill = np.repeat([0.95, 0.75, 0.5], 20)  # careful, hurried, tossing a coin
    person = np.repeat(np.arange(60), PER_PERSON)
    left, right = random_pairs(300, len(person), rng)
    said = judge(kind[left] == kind[right], skill[person], rng)
    names = np.array([f"p{k:02d}" for k in range(60)])[person]

    pairs = lw.Pairs(left, right, said, names, n_items=300)
    print(pairs.describe(3).verdict)
    clf = lw.SimilarityClassifier(3, random_state=0, verbose=False).fit(X, pairs)
    print(clf.choice_)
    answers_right = np.mean(said == (kind[left] == kind[right]))
    print(f"{clf.score(X, kind):.1%} of items right, from answers {answers_right:.0%} right")
    people = dict(zip(clf.annotators_["annotator"], clf.annotators_["reliability"]))
    found = np.array([people[f"p{k:02d}"] for k in range(60)])
    for level in (0.95, 0.75, 0.5):
        mean = found[skill == level].mean()
        print(f"people right {level:.0%} of the time: mean reliability {mean:.2f}")


if __name__ == "__main__":
    main()
