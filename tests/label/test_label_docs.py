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
from short_fits import cut_short

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "label.md"
RESULTS = ROOT / "results" / "label_load.json"


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    """A folder as the page assumes it: photos/, and judgements.db about them."""
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for k in range(9):
        Image.new("RGB", (9, 9), (k * 25, 0, 0)).save(f"photos/{k}.png")
    ada = Visitor(create_app("photos", "judgements.db", show_names=True), "Ada")
    while ada.state["pair"] is not None:
        kinds = {int(name[0]) // 3 for name in ada.shown()}
        ada.answer("same" if len(kinds) == 1 else "different")


def blocks(language):
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    return found


def test_the_python_of_the_page_runs(photographs):
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), {"__name__": "docs"})
    assert Path("judgements.csv").read_text().count("\n") == 1 + 36
    assert Path("judgements.parquet").exists()


def test_the_commands_of_the_page_run(photographs, monkeypatch, capsys):
    from likewise.cli import run

    cut_short(monkeypatch)
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    commands = [
        line.split()[1:]
        for line in lines
        if not line.startswith("likewise label") or "--export" in line
    ]
    assert [command[0] for command in commands] == ["describe", "fit", "label"]
    for command in commands:
        assert run(command) == 0, capsys.readouterr().err
    assert Path("run", "metrics.json").exists()
    assert Path("judgements.csv").read_text().count("\n") == 1 + 36


def test_the_commands_of_the_page_have_these_options():
    from typer.main import get_command

    cli = pytest.importorskip("likewise.cli")
    commands = get_command(cli.app).commands
    for block in blocks("bash"):
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
