"""docs/extending.md, followed to the letter in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from docs_pages import DOCS, ROOT, Block, blocks_of, run_page
from forked import Forked

PAGE = DOCS / "extending.md"
FILES_OF = {"A channel": 2, "A method": 3, "A network": 2, "A data set": 2}


def place_of(block: Block) -> tuple[str, str | None] | None:
    """(file, the line before which the block goes; None: it is the whole file) of a block."""
    if found := re.fullmatch(r"new file: (\S+)", block.note):
        return found[1], None
    if found := re.fullmatch(r"add to (\S+) before: (.+)", block.note):
        return found[1], found[2]
    return None


def write(block: Block, root: Path) -> None:
    """Do as the page says."""
    name, anchor = place_of(block)
    path = root / name
    if anchor is None:
        assert not path.exists(), f"{name} is there already"
        path.write_text(block.code, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = [k for k, line in enumerate(lines) if line.strip() == anchor]
    assert len(at) == 1, f"{name} has {len(at)} lines {anchor!r}"
    indent = lines[at[0]][: len(lines[at[0]]) - len(lines[at[0]].lstrip())]
    lines.insert(at[0], textwrap.indent(block.code, indent))
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with everything that the page adds to it."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks_of(PAGE.read_text(encoding="utf-8")):
        if place_of(block) is not None:
            write(block, root)
    return root


def follow(source: str) -> None:
    """Run the page by the package in a folder, in place of the one that is imported here."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "likewise"]:
        del sys.modules[name]
    sys.path.insert(0, source)
    import likewise

    assert likewise.__file__.startswith(source)
    list(run_page(PAGE))


def test_the_page_runs_with_what_it_adds(extended: Path, tmp_path: Path) -> None:
    process = Forked(follow, str(extended / "src"), folder=tmp_path)
    _, told = process.communicate(300)
    assert process.returncode == 0, told[-3000:]
    assert (tmp_path / "maxout.html").exists()


def test_what_is_added_is_named_by_the_help(extended: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "likewise", "fit", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(extended / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    text = " ".join(done.stdout.split())
    assert "mcl, kcl or brier." in text
    assert "confusion or flip." in text


@pytest.mark.parametrize(("heading", "files"), FILES_OF.items())
def test_each_takes_as_few_files_as_it_says(heading: str, files: int) -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)
    section = next(text for text in sections if text.startswith(heading))
    words = {2: "two", 3: "three"}
    assert section.splitlines()[0] == f"{heading}, in {words[files]} files"
    named = {place_of(block)[0] for block in blocks_of(section) if place_of(block) is not None}
    assert len(named) == files
