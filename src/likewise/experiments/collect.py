"""From runs, perhaps made on several machines, to ``results/`` and the tables in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.errors import InputError
from likewise.experiments.cells import Cell
from likewise.experiments.readme import fill
from likewise.experiments.store import Result, load_results, read_collected, write_collected
from likewise.experiments.summary import Summary, summarise
from likewise.experiments.tables import render
from likewise.io.atomic import write_text


def collect(sources: Sequence[str | Path], results: str | Path) -> list[Summary]:
    """Add the runs of ``sources`` to a results folder and render its tables anew.

    A source is a folder of runs, or a results folder from elsewhere. A run takes the place of one
    of the same cell. Writes ``tables.csv``, ``runs/*.jsonl`` and the summaries.
    """
    folder = Path(results)
    merged: dict[Cell, Result] = {}
    for source in [*([folder] if (folder / "runs").is_dir() else []), *map(Path, sources)]:
        merged |= {Cell.from_dict(result): result for result in read_results(source)}
    if not merged:
        raise InputError("there is nothing to collect: name at least one folder of runs.")
    write_collected(merged.values(), folder)
    summaries = summarise(merged.values())
    for style, suffix in (("markdown", "md"), ("latex", "tex"), ("csv", "csv")):
        write_text(folder / f"summary.{suffix}", render(summaries, style))
    return summaries


def read_results(folder: Path) -> list[Result]:
    """The results in a folder of runs, or in a results folder."""
    if any((folder / "runs").glob("*.jsonl")):
        return read_collected(folder)
    found = load_results(folder)
    if not found:
        raise InputError(f"there are no finished runs in {folder}.")
    return found


def update_page(page: str | Path, results: str | Path) -> bool:
    """Render a page's tables from a results folder; whether anything changed."""
    path = Path(page)
    before = path.read_text(encoding="utf-8")
    after = fill(before, summarise(read_collected(Path(results))))
    if after != before:
        write_text(path, after)
    return after != before
