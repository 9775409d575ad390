"""Would the tests notice a mistake? Mutation testing of the numeric core and of what reads files.

mutmut makes one small mistake at a time (a sign, a comparison, a constant, an argument left out)
and runs the tests that reach it. A mutant that no test notices survives; the score is the share
that was noticed. Which files to change and which tests to run stands in pyproject.toml,
[tool.mutmut]. There are thousands of mutants: of each group so many are drawn, seeded.

    python tools/mutate.py [--sample 400]  # results/mutation.json and the table in docs/mutation.md
    python tools/mutate.py --survivors     # the mistakes that the last run left unnoticed
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MUTANTS = ROOT / "mutants" / "src" / "likewise"
CORE = "numeric core"
GROUPS = {
    CORE: (
        "functional.py",
        "metrics.py",
        "noise/matrices.py",
        "inference/propagation/belief_propagation.py",
    ),
    "pairs/": ("pairs/*",),
    "items/": ("items/*",),
    "io/": ("io/*",),
}
GOALS = {CORE: 0.95, "pairs/": 0.85, "items/": 0.85, "io/": 0.85}
RESULTS = ROOT / "results" / "mutation.json"
PAGE = ROOT / "docs" / "mutation.md"
NOTICED = ("killed", "timeout", "segfault", "caught by type check")
Row = dict[str, Any]


def call_mutmut(arguments: list[str]) -> None:
    """mutmut in this process; it asks pytest's items for an attribute that pytest 9 renamed.

    It would run all tests twice before the first mutant. The first time, in which it notes which
    tests reach what, they must pass already.
    """
    from _pytest.nodes import Node
    from mutmut.__main__ import cli
    from mutmut.workers.isolation import ForkServerRunner

    ForkServerRunner.run_clean_tests = lambda self, tests: 0
    if not hasattr(Node, "_nodeid"):
        Node._nodeid = property(lambda item: item.nodeid)
    sys.argv = ["mutmut", *arguments]
    cli()


def make_mutants() -> None:
    """Write all mutants, without running any."""
    from mutmut import __main__ as mutmut

    mutmut.set_mutant_under_test("mutant_generation")
    (ROOT / "mutants").mkdir()
    mutmut.copy_src_dir()
    mutmut.create_mutants(1)


def in_child(*arguments: str) -> None:
    """This script again, in a process of its own: one thread, since mutants run side by side."""
    subprocess.run(
        [sys.executable, __file__, *arguments],
        cwd=ROOT, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def exit_codes(group: str) -> dict[str, int | None]:
    """How each mutant of a group ended, by its name; None where it was not run."""
    found: dict[str, int | None] = {}
    for path in sorted(MUTANTS.rglob("*.py.meta")):
        name = path.relative_to(MUTANTS).as_posix().removesuffix(".meta")
        if any(fnmatch.fnmatch(name, pattern) for pattern in GROUPS[group]):
            found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def statuses(group: str) -> dict[str, str]:
    """What became of each mutant of a group that was run, by the mutant's name."""
    from mutmut.stats import status_by_exit_code

    return {
        name: status_by_exit_code[code]
        for name, code in exit_codes(group).items()
        if code is not None
    }


def draw(sample: int, seed: int) -> list[str]:
    """So many mutants of each group, or all if it has no more."""
    chosen = []
    for group in GROUPS:
        names = sorted(exit_codes(group))
        chosen += random.Random(seed).sample(names, min(sample, len(names)))
    return chosen


def run(sample: int, seed: int, children: int) -> float:
    """A sample of mutants, anew; the seconds that took."""
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    start = time.perf_counter()
    in_child("--make")
    in_child("--mutmut", "run", "--max-children", str(children), *draw(sample, seed))
    return time.perf_counter() - start


def summary(seconds: float, seed: int) -> Row:
    """Counts and scores of each group; a mutant that no test reaches counts as unnoticed."""
    rows: dict[str, Row] = {}
    for group, goal in GOALS.items():
        counts = Counter(statuses(group).values())
        noticed = sum(counts[status] for status in NOTICED)
        rows[group] = {
            "goal": goal,
            "mutants": len(exit_codes(group)),
            "tried": counts.total(),
            "noticed": noticed,
            "score": round(noticed / counts.total(), 4),
            **counts,
        }
    date = time.strftime("%Y-%m-%d")
    return {"seconds": round(seconds), "date": date, "seed": seed, "groups": rows}


def table(result: Row) -> str:
    rows = ["| | mutants | tried | noticed | score | goal |", "|---|---:|---:|---:|---:|---:|"]
    for group, row in result["groups"].items():
        name = f"`{group}`" if group.endswith("/") else group
        counts = f"{row['mutants']} | {row['tried']} | {row['noticed']}"
        rows.append(f"| {name} | {counts} | {row['score']:.1%} | {row['goal']:.0%} |")
    return "\n".join(rows)


def rewrite(page: str, text: str) -> str:
    """The page with what stands between its two marks replaced."""
    before, _, rest = page.partition("<!-- scores -->")
    _, _, after = rest.partition("<!-- end -->")
    return f"{before}<!-- scores -->\n{text}\n<!-- end -->{after}"


def show_survivors() -> None:
    for group in GROUPS:
        for name, status in statuses(group).items():
            if status not in NOTICED:
                in_child("--mutmut", "show", name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=400, help="mutants of each group")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--children", type=int, default=2, help="mutants tested at a time")
    parser.add_argument("--survivors", action="store_true", help="show what went unnoticed")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mutmut", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.mutmut is not None:
        call_mutmut(options.mutmut)
    elif options.make:
        make_mutants()
    elif options.survivors:
        show_survivors()
    else:
        from likewise.io.atomic import write_json, write_text

        result = summary(run(options.sample, options.seed, options.children), options.seed)
        write_json(RESULTS, result)
        write_text(PAGE, rewrite(PAGE.read_text(), table(result)))
        print(table(result))


if __name__ == "__main__":
    main()
