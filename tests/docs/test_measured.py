"""The tables of docs/measured.md are those of results/."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_tables_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import measured

    page = measured.PAGE.read_text(encoding="utf-8")
    assert all(f"\n{rows}\n" in page for rows in measured.tables().values())
    assert measured.filled(page) == page, "run python benchmarks/measured.py"
