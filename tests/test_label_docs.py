"""What docs/label.md says: its Python runs, its figures are those of the committed results."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest
from PIL import Image

from label_people import Visitor
from likewise.label import create_app

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "label.md"
RESULTS = ROOT / "results" / "label_load.json"


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for k in range(4):
        Image.new("RGB", (9, 9)).save(f"photos/{k}.png")
    Visitor(create_app("photos", "judgements.db"), "Ada").answer()
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {"__name__": "docs"})
    assert Path("judgements.csv").read_text().count("\n") == 2
    assert Path("judgements.parquet").exists()


def test_the_commands_of_the_page_have_these_options():
    from typer.main import get_command

    cli = pytest.importorskip("likewise.cli")
    commands = get_command(cli.app).commands
    for block in re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in block.splitlines():
            _, command, *words = line.split()
            known = {name for parameter in commands[command].params for name in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, line


def test_the_figures_are_those_of_the_results():
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "label_load.py"))
    table = benchmark["as_table"](json.loads(RESULTS.read_text()))
    assert table in PAGE.read_text()


def test_every_picture_is_there():
    for name in re.findall(r"images/[\w.-]+", PAGE.read_text()):
        assert (PAGE.parent / name).exists()
