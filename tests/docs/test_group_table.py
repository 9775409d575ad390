"""The table of docs/group.md is that of results/groups.json."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / "results" / "groups.json").is_file():
        pytest.skip("no results yet")
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "groups.py"))
    page = (ROOT / "docs" / "group.md").read_text(encoding="utf-8")
    assert "86 groups" in page
    assert benchmark["filled"](page) == page, "run python benchmarks/groups.py --render"
