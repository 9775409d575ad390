"""The code blocks of a documentation page, run in order in one folder and one namespace.

Blocks are fenced. ``python`` runs; ``bash`` runs where every line is a ``likewise`` command, in
this process; ``csv title="NAME"`` or ``toml title="NAME"`` is a file of that name. A comment before
a block says more:

    <!-- not run: REASON -->    the block is shown only
    <!-- needs: NAME -->        from here on, the page needs the data set folder NAME
    <!-- output -->             the block is what the one before it printed

``python tests/docs_pages.py docs/crowd.md`` runs a page and writes the real output into it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?:<!-- *(?P<note>[^>]*?) *-->\n)?"
    r"^```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and code, the comment before it, and where its code lies."""

    language: str
    options: str
    note: str
    code: str
    line: int
    span: tuple[int, int]

    @property
    def not_run(self) -> str:
        """Why it is shown only; empty where it runs."""
        return self.note.partition("not run:")[2].strip()

    @property
    def needs(self) -> str:
        return self.note.partition("needs:")[2].strip()

    @property
    def is_file(self) -> bool:
        """Whether it goes into a file of the package; tests/docs/test_extending.py writes it."""
        return self.note.startswith(("new file:", "add to "))

    @property
    def is_output(self) -> bool:
        return self.note == "output"


def blocks_of(text: str) -> list[Block]:
    return [
        Block(
            language=found["language"],
            options=found["options"].strip(),
            note=found["note"] or "",
            code=found["code"],
            line=text.count("\n", 0, found.start("code")) + 1,
            span=found.span("code"),
        )
        for found in _BLOCK.finditer(text)
    ]


def data_folder(name: str) -> Path | None:
    """A data set's folder, where it is on this machine."""
    roots = [os.environ.get("LIKEWISE_DATA"), ROOT.parent / "shared" / "data"]
    found = (Path(root) / name for root in roots if root)
    return next((path.resolve() for path in found if path.is_dir()), None)


def run_page(path: Path) -> Iterator[tuple[Block, str]]:
    """Run a page's blocks in the current folder; yields each that ran, and what it printed."""
    namespace: dict[str, Any] = {"__name__": "docs"}
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if block.needs:
            folder = data_folder(block.needs)
            if folder is None:
                return
            Path(block.needs).symlink_to(folder)
        if block.not_run or block.is_output or block.is_file:
            continue
        if block.language in ("csv", "toml"):
            Path(re.search(r'title="([^"]+)"', block.options)[1]).write_text(block.code)
        elif block.language == "python":
            source = "\n" * (block.line - 1) + block.code  # so that errors name the page's line
            yield block, captured(lambda: exec(compile(source, str(path), "exec"), namespace))  # noqa: B023
        elif block.language == "bash":
            yield block, captured(lambda: run_commands(block.code))  # noqa: B023


def run_commands(code: str) -> None:
    from likewise.cli import run

    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] != "likewise":
            raise AssertionError(f"only likewise commands are run, not {line!r}: mark the block")
        status = run(words[1:])
        if status != 0:
            raise AssertionError(f"{line!r} ended with status {status}")


def captured(action: Any) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        action()
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).strip("\n") + "\n"


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def updated(path: Path) -> str:
    """The page with the output blocks as they come out now."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        printed = {block.line: output for block, output in run_page(path)}
    blocks = blocks_of(text)
    for before, block in reversed(list(itertools.pairwise(blocks))):
        if block.is_output and before.line in printed:
            start, end = block.span
            text = text[:start] + printed[before.line] + text[end:]
    return text


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        path.write_text(updated(path), encoding="utf-8")


if __name__ == "__main__":
    main()
