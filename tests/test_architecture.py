"""docs/architecture.md names every file of the package, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "likewise"


def test_every_file_has_its_line() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([\w/]+\.py)` \|", text, re.MULTILINE)
    there = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    assert sorted(there - set(named)) == [], "not in docs/architecture.md"
    assert sorted(set(named) - there) == [], "in docs/architecture.md, but not there"
    assert len(named) == len(set(named))
