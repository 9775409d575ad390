"""The README's digits table is that of results/digits.json, and its commands exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from likewise import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits", ROOT / "benchmarks" / "digits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_digits_table_is_that_of_the_results() -> None:
    if not (ROOT / "results" / "digits.json").is_file():
        pytest.skip("no results yet")
    assert benchmark().filled(README) == README, "run python benchmarks/digits.py --render"


def test_its_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([\w/.-]+\.md)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []


def test_it_names_the_extra_that_its_encoder_needs() -> None:
    """`all` lacks it; a clone installs itself, and not what a public index has by its name."""
    assert "--embed MODEL" in README
    assert "pip install '.[all,embed]'" in README
    pages = [README, *(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))]
    assert not any("pip install 'likewise[" in page for page in pages)


def test_its_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = "".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL))
    commands = {line.split()[1] for line in blocks.splitlines() if line.startswith("likewise ")}
    assert commands >= {"simulate", "describe", "fit", "report", "predict", "evaluate"}
    for command in commands:
        assert cli.run([command, "--help"]) == 0
    targets = {line.split()[1] for line in blocks.splitlines() if line.startswith("make ")}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for target in targets)
    capsys.readouterr()
