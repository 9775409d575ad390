"""The law of the house: rooms import one way, lazy imports included, and stay small."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "likewise"
# From the bottom up. A room is a folder, or a file that stands in the root.
ROOMS = [
    "_version",
    "errors",
    "io",
    "pairs",
    "items",
    "functional",
    "metrics",
    "theory",
    "noise",
    "losses",
    "nn",
    "training",
    "inference",
    "methods",
    "serialization",
    "classifier",
    "export",
    "active",
    "runs",
    "datasets",
    "experiments",
    "report",
    "label",
    "cli",
    "__init__",
    "__main__",
]
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """(line, module of ours) of every import, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if a.name.startswith("likewise"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "likewise":
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def against_the_law(path: Path, source: str) -> list[str]:
    """Imports of rooms that stand above the file's own."""
    here, found = ROOMS.index(room_of(path)), []
    for line, module in imports_of(source):
        room = module.split(".")[1] if "." in module else "__init__"
        there = ROOMS.index(room) if room in ROOMS else ROOMS.index("__init__")
        if there > here:
            found.append(f"{path.relative_to(PACKAGE)}:{line} imports {module}")
    return found


def test_no_room_imports_from_above() -> None:
    wrong = [one for path in FILES for one in against_the_law(path, path.read_text("utf-8"))]
    assert wrong == []


def test_the_law_sees_lazy_imports() -> None:
    lazy = "def f():\n    from likewise.classifier import SimilarityClassifier\n"
    assert against_the_law(PACKAGE / "pairs" / "container.py", lazy) == [
        "pairs/container.py:2 imports likewise.classifier.SimilarityClassifier"
    ]
    assert against_the_law(PACKAGE / "cli" / "fit.py", lazy) == []


def test_every_room_has_its_line_on_the_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)?` \|", text, re.MULTILINE)
    there = {room_of(path) for path in FILES} - {"__init__", "__main__", "_version"}
    assert set(rows) == there
    assert [room for room in ROOMS if room in rows] == rows, "in the order of the rooms"


def test_the_root_is_small() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_functions_and_constructors_stay_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 300
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"
        if isinstance(node, ast.ClassDef):
            assert len(attributes_of(node)) <= 15, f"{node.name} sets {attributes_of(node)}"


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Attributes that a class sets on itself in its constructor."""
    makers = (f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__")
    return {
        target.attr
        for maker in makers
        for inner in ast.walk(maker)
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
        for target in [inner]
        if isinstance(target.value, ast.Name) and target.value.id == "self"
    }
