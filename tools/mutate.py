"""Would the tests notice a mistake? Mutation testing of the four numeric files.

mutmut makes one small mistake at a time in functional.py, noise.py, matching.py and messages.py
(a sign, a comparison, a constant, an argument left out) and runs the tests that reach it. A
mutant that no test notices survives; the score is the share of all mutants that were noticed.
What to mutate and which tests to run stands in pyproject.toml, [tool.mutmut].

    python tools/mutate.py             # results/mutation.json and the table in docs/mutation.md
    python tools/mutate.py --survivors # the mistakes that the last run left unnoticed
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FILES = ("functional", "noise", "matching", "messages")
RESULTS = ROOT / "results" / "mutation.json"
PAGE = ROOT / "docs" / "mutation.md"
GOAL = 0.85
NOTICED = ("killed", "timeout", "segfault", "caught by type check")


def call_mutmut(arguments: list[str]) -> None:
    """mutmut in this process; it asks pytest's items for an attribute that pytest 9 renamed."""
    from _pytest.nodes import Node
    from mutmut.__main__ import cli

    if not hasattr(Node, "_nodeid"):
        Node._nodeid = property(lambda item: item.nodeid)
    sys.argv = ["mutmut", *arguments]
    cli()


def run(children: int) -> float:
    """All mutants, anew; the seconds that took."""
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    start = time.perf_counter()
    # One thread: mutants run beside each other, and their tests are small.
    subprocess.run(
        [sys.executable, __file__, "--mutmut", "run", "--max-children", str(children)],
        cwd=ROOT, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return time.perf_counter() - start


def statuses(file: str) -> dict[str, str]:
    """What became of each mutant of a file, by the mutant's name."""
    from mutmut.stats import status_by_exit_code

    path = ROOT / "mutants" / "src" / "likewise" / f"{file}.py.meta"
    codes: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"]
    return {name: status_by_exit_code[code] for name, code in codes.items()}


def score(counts: Counter[str]) -> float:
    return sum(counts[status] for status in NOTICED) / counts.total()


def summary(seconds: float) -> dict[str, Any]:
    """Counts and scores, by file and in all; a mutant that no test reaches counts as survived."""
    by_file = {file: Counter(statuses(file).values()) for file in FILES}
    by_file["all four"] = sum(by_file.values(), Counter())
    return {
        "goal": GOAL,
        "seconds": round(seconds),
        "date": time.strftime("%Y-%m-%d"),
        "files": {
            file: {"mutants": counts.total(), "score": round(score(counts), 4), **counts}
            for file, counts in by_file.items()
        },
    }


def table(result: dict[str, Any]) -> str:
    rows = ["| file | mutants | noticed | score |", "|---|---:|---:|---:|"]
    for file, row in result["files"].items():
        name = file if file == "all four" else f"`{file}.py`"
        noticed = sum(row.get(status, 0) for status in NOTICED)
        rows.append(f"| {name} | {row['mutants']} | {noticed} | {row['score']:.1%} |")
    return "\n".join(rows)


def rewrite(page: str, text: str) -> str:
    """The page with what stands between its two marks replaced."""
    before, _, rest = page.partition("<!-- scores -->")
    _, _, after = rest.partition("<!-- end -->")
    return f"{before}<!-- scores -->\n{text}\n<!-- end -->{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--children", type=int, default=2, help="mutants tested at a time")
    parser.add_argument("--survivors", action="store_true", help="show what went unnoticed")
    parser.add_argument("--mutmut", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.mutmut is not None:
        call_mutmut(options.mutmut)
        return
    if options.survivors:
        for file in FILES:
            for name, status in statuses(file).items():
                if status not in NOTICED:
                    subprocess.run([sys.executable, __file__, "--mutmut", "show", name], check=True)
        return
    from likewise.io.atomic import write_json, write_text

    result = summary(run(options.children))
    write_json(RESULTS, result)
    write_text(PAGE, rewrite(PAGE.read_text(), table(result)))
    print(table(result))


if __name__ == "__main__":
    main()
