"""docs/architecture.md names every file of the package, in an order in which they can be read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "likewise"


def listed() -> list[str]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([\w/]+\.py)` \|", text, re.MULTILINE)


def file_of(module: str) -> str | None:
    """The file of a module of the package by its dotted name; None where it is no module."""
    path = "/".join(module.split(".")[1:])
    found = (name for name in (f"{path}.py", f"{path}/__init__.py") if (PACKAGE / name).is_file())
    return next(found, None)


def imported(name: str) -> set[str | None]:
    """Files of the package that a file imports when it is loaded."""
    body = ast.parse((PACKAGE / name).read_text(encoding="utf-8")).body
    return {
        file_of(f"{node.module}.{alias.name}") or file_of(node.module)
        for node in body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("likewise")
        for alias in node.names
    }


def test_every_file_has_its_line() -> None:
    named = listed()
    there = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    assert sorted(there - set(named)) == [], "not in docs/architecture.md"
    assert sorted(set(named) - there) == [], "in docs/architecture.md, but not there"
    assert len(named) == len(set(named))


def test_a_file_imports_only_from_those_above_it() -> None:
    above: set[str | None] = {None}
    for name in listed():
        below = imported(name) - above - {name}
        assert not below, f"{name} imports {sorted(map(str, below))}, listed below it"
        above.add(name)
