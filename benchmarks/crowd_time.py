"""How long a crowd's judgements take: with features through the classifier, without through groups.

    python benchmarks/crowd_time.py [--out results/crowd_time.json]

100,000 answers by 200 people about 765 items in 13 classes, and 37,000 in 86 classes without
features, one draw each, on as many cores as PyTorch takes. Machines differ and are shared: the load
stands beside the seconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from crowd_kinds import Kind, make_kind
from likewise import SimilarityClassifier, group
from records import append

RESULTS = Path(__file__).parents[1] / "results" / "crowd_time.json"
CASES = {
    "13 classes, features": Kind(13, 765, 200, 500, "fair"),
    "86 classes, alone": Kind(86, 267, 50, 740, asking="near"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = []
    for name, kind in CASES.items():
        made = make_kind(kind, 0)
        began = time.perf_counter()
        if made.items is None:
            labels = group(made.pairs, random_state=0).labels
        else:
            model = SimilarityClassifier(
                kind.n_classes, random_state=0, device="cpu", verbose=False
            )
            labels = np.asarray(model.fit(made.items, made.pairs).labels_)
        seconds = time.perf_counter() - began
        ari = float(adjusted_rand_score(made.truth, labels))
        row = {"case": name, "judgements": len(made.pairs), "seconds": round(seconds, 1)}
        rows.append(row | {"ari": round(ari, 4)})
        print(rows[-1], flush=True)
    append(options.out, {"rows": rows})


if __name__ == "__main__":
    main()
