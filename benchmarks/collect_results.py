"""Collect runs into results/ and render the tables of README and docs and the figures from them.

    python benchmarks/collect_results.py [RUNS ...]

RUNS are folders that `likewise reproduce` made, or results folders from other machines; without
any, the tables are only rendered anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from likewise.experiments.collect import collect, update_page
from likewise.experiments.figures import write_figures
from likewise.experiments.store import read_collected
from likewise.experiments.tables import render

ROOT = Path(__file__).resolve().parents[1]


def main(sources: list[str]) -> None:
    results = ROOT / "results"
    print(render(collect(sources, results)))
    for page in ("README.md", "docs/tables.md"):
        changed = update_page(ROOT / page, results)
        print(f"{page} {'updated' if changed else 'unchanged'}")
    figures = write_figures(read_collected(results), ROOT / "docs" / "images" / "figures")
    print(f"{len(figures)} figure files in docs/images/figures")


if __name__ == "__main__":
    main(sys.argv[1:])
