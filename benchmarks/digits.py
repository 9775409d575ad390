"""scikit-learn's digits from noisy judgements: every method, three noise levels, five seeds.

80/20 split, symmetric class flips, all pairs of the training items; accuracy on the held-out
items under the best matching. "auto" has nothing set but the number of classes; the pairwise
methods stand beside it as they are. Writes results/digits.json and the README's table:

    python benchmarks/digits.py [--seeds 5] [--noise 0.2 0.4 0.6] [--only-auto | --render]
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise
from likewise.experiments.demo import TITLES, Study
from likewise.io.atomic import write_json, write_text

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "digits.json"
README = ROOT / "README.md"
TARGETS = {0.2: 0.96, 0.4: 0.93, 0.6: 0.87}  # of auto, by noise


def main() -> None:
    options = _options()
    if options.render:
        return render()
    torch.set_num_threads(1)
    rows = []
    for noise in options.noise:
        for seed in range(options.seeds):
            for row in _study(noise, seed, options.only_auto):
                rows.append({"noise": noise, "seed": seed, **row})
                print(f"{noise} {seed} {row['method']}: {row['accuracy']:.4f}", flush=True)
    if options.only_auto and options.out.is_file():  # the others stand as they were measured
        before = json.loads(options.out.read_text(encoding="utf-8"))["runs"]
        rows = [row for row in before if row["method"] != "joint"] + rows
    summary = summarise(rows)
    print(table(summary))
    write_json(options.out, {"made_with": _made_with(), "summary": summary, "runs": rows})
    render()


def _study(noise: float, seed: int, only_auto: bool) -> list[dict[str, Any]]:
    study = Study.make(noise, seed)
    return [*([] if only_auto else study.pairwise()), study.auto()[0]]


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and deviation over seeds of each method at each noise level."""
    summary = []
    for noise in dict.fromkeys(row["noise"] for row in rows):
        for method in dict.fromkeys(row["method"] for row in rows):
            chosen = [r for r in rows if r["noise"] == noise and r["method"] == method]
            accuracy = np.array([row["accuracy"] for row in chosen])
            errors = [row["transition_error"] for row in chosen]
            known = [error for error in errors if error is not None]
            summary.append(
                {
                    "noise": noise,
                    "method": method,
                    "seeds": len(chosen),
                    "accuracy": float(accuracy.mean()),
                    "deviation": float(accuracy.std(ddof=1)) if len(chosen) > 1 else None,
                    "transition_error": float(np.mean(known)) if known else None,
                    "collapsed": sum(row["classes_used"] < 10 for row in chosen),
                    "seconds": float(np.mean([row["seconds"] for row in chosen])),
                    "target": TARGETS.get(noise) if method == "joint" else None,
                }
            )
    return summary


def table(summary: list[dict[str, Any]]) -> str:
    """Markdown: a row a method, a column a noise level, accuracy in percent and error of T."""
    levels = list(dict.fromkeys(row["noise"] for row in summary))
    cells = {(row["method"], row["noise"]): row for row in summary}
    lines = ["| | " + " | ".join(f"noise {level:g}" for level in levels) + " |"]
    lines.append("|---|" + "---|" * len(levels))
    for method in dict.fromkeys(row["method"] for row in summary):
        texts = [_cell(cells[method, level]) for level in levels]
        lines.append(f"| {TITLES[method]} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def filled(text: str, results: Path = RESULTS) -> str:
    """``text`` with the table between ``<!-- digits -->`` and ``<!-- /digits -->`` anew."""
    summary = json.loads(results.read_text(encoding="utf-8"))["summary"]
    block = f"<!-- digits -->\n{table(summary)}\n<!-- /digits -->"
    return re.sub(r"<!-- digits -->\n.*?<!-- /digits -->", lambda _: block, text, flags=re.DOTALL)


def render() -> None:
    """The README's table from the saved results."""
    write_text(README, filled(README.read_text(encoding="utf-8")))


def _cell(row: dict[str, Any]) -> str:
    spread = "" if row["deviation"] is None else f" ± {100 * row['deviation']:.1f}"
    error = "" if row["transition_error"] is None else f" (T {row['transition_error']:.2f})"
    return f"{100 * row['accuracy']:.1f}{spread}{error}"


def _made_with() -> dict[str, Any]:
    return {
        "command": "python benchmarks/digits.py",
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", type=float, nargs="+", default=list(TARGETS))
    parser.add_argument(
        "--only-auto", action="store_true", help="measure auto alone, keep the others"
    )
    parser.add_argument("--render", action="store_true", help="only the README's table")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
