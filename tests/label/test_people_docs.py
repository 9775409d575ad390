"""What docs/sorting.md and docs/hiring.md say: their commands and their Python run."""

from __future__ import annotations

import itertools
import json
import random
import re
import runpy
import sqlite3
from pathlib import Path

import pytest
from PIL import Image

from docs_pages import blocks_of, run_page
from label_people import Sorter, Visitor
from likewise.label import create_app
from likewise.label.hiring import Hiring
from short_fits import cut_short

ROOT = Path(__file__).parents[2]


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    """A folder as the pages assume it; a name begins with its kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("secrets.token_bytes", lambda count: b"k" * count)  # the same questions
    Path("photos").mkdir()
    for k in range(40):
        colour = tuple(60 * (c == k % 3) + 5 * (k % 7) + 100 for c in range(3))
        Image.new("RGB", (9, 9), colour).save(f"photos/{k % 3}-{k:02d}.png")


def check(page: str) -> None:
    """Run a page here; what it prints begins as the page says, line by line."""
    path = ROOT / "docs" / page
    blocks = blocks_of(path.read_text())
    printed = {block.line: output for block, output in run_page(path)}
    for before, block in itertools.pairwise(blocks):
        if block.is_output and before.line in printed:
            said, came = block.code.splitlines(), printed[before.line].splitlines()
            assert [line.split()[:2] for line in came] == [line.split()[:2] for line in said]
    for name in re.findall(r"images/[\w.-]+", path.read_text()):
        assert (path.parent / name).exists()


def test_sorting(photographs, monkeypatch):
    cut_short(monkeypatch)
    ada = Sorter(create_app("photos", "sorts.db", sort=35, show_names=True), "Ada")
    for _ in range(2):
        ada.sort_all(lambda name: int(name[0]))
    check("sorting.md")
    assert Path("groups.csv").read_text().count("\n") == 41


def hired_people(gold: str) -> None:
    """Four people who share sixty pairs: two careful ones, a careless one, one who left early."""
    Path("gold.csv").write_text(gold)
    rng, names = random.Random(0), sorted(path.name for path in Path("photos").iterdir())
    pairs = [rng.sample(names, 2) for _ in range(60)]
    Path("ask.csv").write_text("left,right\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    hire = Hiring(per_person=50, pairs="ask.csv", gold="gold.csv")
    app = create_app("photos", "round.db", show_names=True, hire=hire)
    for name, most, error in (("A1", 50, 0.0), ("B2", 50, 0.5), ("C3", 12, 0), ("D4", 50, 0.1)):
        person = Visitor(app, name)
        for _ in range(most):
            left, right = person.shown()
            is_same = (left[0] == right[0]) != (rng.random() < error)
            person.answer("same" if is_same else "different")
    with sqlite3.connect("round.db") as database:  # as if they had taken their time
        for table in ("judgements", "gold"):
            database.execute(
                f"UPDATE {table} SET at = strftime('%Y-%m-%dT%H:%M:%S', '2026-01-01', "
                "(3 * id) || ' seconds')"
            )
    database.close()


def test_hiring(photographs):
    text = (ROOT / "docs" / "hiring.md").read_text()
    hired_people(next(block.code for block in blocks_of(text) if "gold.csv" in block.options))
    check("hiring.md")
    assert Path("answers.csv").exists()


@pytest.mark.parametrize("page", ["sorting.md", "hiring.md"])
def test_the_commands_have_these_options(page):
    from typer.main import get_command

    from likewise.cli import app

    commands = get_command(app).commands
    for block in blocks_of((ROOT / "docs" / page).read_text()):
        if block.language == "bash":
            for line in block.code.replace("\\\n", " ").splitlines():
                _, command, *words = line.split()
                known = {name for parameter in commands[command].params for name in parameter.opts}
                assert {word for word in words if word.startswith("--")} <= known, line


def test_the_figures_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "label_round.py"))
    table = benchmark["as_table"](json.loads((ROOT / "results" / "label_round.json").read_text()))
    assert table in (ROOT / "docs" / "sorting.md").read_text()
