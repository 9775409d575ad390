"""The documentation is true: its code runs, its outputs look so, its links lead somewhere."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from docs_pages import DOCS, ROOT, blocks_of, data_folder, inside, run_page
from short_fits import cut_short

# Run by other tests, with what their pages need.
ELSEWHERE = {
    "label.md": "tests/label/test_label_docs.py runs it against a real database",
    "sorting.md": "tests/label/test_people_docs.py runs it on a database that people have sorted",
    "hiring.md": "tests/label/test_people_docs.py runs it on a round of hired people",
    "extending.md": "tests/docs/test_extending.py follows it in a copy of the package",
}
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name not in ELSEWHERE)


def needs_data(path: Path) -> bool:
    return any(block.needs for block in blocks_of(path.read_text(encoding="utf-8")))


SLOW = {"crowd", "suggestion"}  # fits by EM
# Pages whose fits take many seconds: here they are cut short, and by make test-all they are not.
LONG = ("benchmark", "group", "index", "noise-models", "photographs", "report", "survey", "texts")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def words_of(line: str) -> list[str]:
    """A line of output without its numbers and rulers."""
    return re.findall(r"[A-Za-z]{2,}", line)


def follow(path: Path, folder: Path) -> None:
    """Run a page in a folder; what is printed has the lines that the page says."""
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    needed = [block.needs for block in blocks if block.needs]
    with inside(folder):
        printed = {block.line: output for block, output in run_page(path)}
    for before, block in itertools.pairwise(blocks):
        if block.is_output and before.line in printed:
            said = [line for line in block.code.splitlines() if words_of(line)]
            came = [line for line in printed[before.line].splitlines() if words_of(line)]
            assert words_of(came[0])[:2] == words_of(said[0])[:2], (path.name, block.line)
            assert len(came) == len(said), (path.name, block.line, printed[before.line])
    missing = [name for name in needed if data_folder(name) is None]
    if missing:
        pytest.skip(f"the rest of {path.name} needs the data set {', '.join(missing)}")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if needs_data(path) else [])
        for path in PAGES
    ],
)
def test_every_block_runs_and_prints_what_the_page_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem in LONG:
        cut_short(monkeypatch, epochs=6)  # by two, not every class is found
    follow(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_long_page_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    follow(DOCS / f"{name}.md", tmp_path)


def test_a_page_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: would fail -->\n```python\n1 / 0\n```\n"
        '```csv title="few.csv"\na,b\n```\n'
        '```python\nx = open("few.csv").read()\nprint(x)\n```\n<!-- output -->\n```text\n?\n```\n'
    )
    with inside(tmp_path):
        assert [output for _, output in run_page(page)] == ["a,b\n"]
        page.write_text("```python\nx = 1\n```\n```python\nassert x == 2\n```\n")
        with pytest.raises(AssertionError):
            list(run_page(page))
        page.write_text("```bash\nlikewise describe nowhere.csv\n```\n")
        with pytest.raises(AssertionError, match="status 2"):
            list(run_page(page))
        page.write_text("```bash\nrm -r /nowhere\n```\n")
        with pytest.raises(AssertionError, match="mark the block"):
            list(run_page(page))


def test_what_is_not_run_says_why() -> None:
    for path in PAGES:
        for block in blocks_of(path.read_text(encoding="utf-8")):
            where = f"{path.name}, line {block.line}"
            if "not run" in block.note:
                assert len(block.not_run) > 10, where
            if not block.language and re.match(r"(likewise|pip|make|python) ", block.code):
                assert block.is_output or block.not_run, f"{where}: commands that nobody runs"


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in EXAMPLES
    ],
)
def test_examples_run(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), "--quick"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    pages = [path.relative_to(tmp_path / "site") for path in tmp_path.rglob("index.html")]
    assert len(pages) >= 8
    api = (tmp_path / "site" / "api" / "index.html").read_text()
    assert "SimilarityClassifier" in api
    assert "predict_same" in api
