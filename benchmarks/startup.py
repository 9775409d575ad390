"""What starting costs: `import likewise` against torch and scikit-learn, `likewise --help`.

Each statement runs in fresh interpreters, in turns, and the best time of each counts: what others
do on the machine only ever adds to it. An empty interpreter's time is told beside them.

    python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import records

HELP = (
    "import sys; from likewise.cli import main; sys.argv = ['likewise', '--help']\n"
    "try:\n    main()\nexcept SystemExit:\n    pass\n"
)
STATEMENTS = {
    "python": "pass",
    "torch and scikit-learn": "import torch, sklearn",
    "likewise": "import likewise",
    "likewise and its classifier": "import likewise; likewise.SimilarityClassifier",
    "likewise --help": HELP,
}
LIMIT = 1.5  # issue 6: times torch and scikit-learn
TELL = "\nimport sys; sys.stderr.write('torch' if 'torch' in sys.modules else 'none')"


def run(statement: str) -> tuple[float, bool]:
    """Seconds of a fresh interpreter, and whether it imported torch."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", statement + TELL], check=True, capture_output=True, text=True
    )
    return time.perf_counter() - started, done.stderr.endswith("torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/startup.json"))
    options = parser.parse_args()
    load = os.getloadavg()[0]
    found: dict[str, list[tuple[float, bool]]] = {name: [] for name in STATEMENTS}
    for _ in range(options.repeats + 1):  # the first warms the disk
        for name, statement in STATEMENTS.items():
            found[name].append(run(statement))
    seconds = {name: min(took for took, _ in times[1:]) for name, times in found.items()}
    whole = seconds["torch and scikit-learn"]
    rows = [
        {
            "what": name,
            "seconds": round(seconds[name], 3),
            "ratio": round(seconds[name] / whole, 3),
            "imports_torch": found[name][0][1],
        }
        for name in STATEMENTS
    ]
    for row in rows:
        print(
            f"{row['what']:>28} {row['seconds']:6.2f} s, {row['ratio']:5.2f} times torch and "
            f"scikit-learn{'' if row['imports_torch'] else ', without torch'}"
        )
    records.append(options.out, {"limit": LIMIT, "rows": rows}, load)


if __name__ == "__main__":
    main()
