"""A person knows better: `merge` two classes of a run, `split` one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.app import Json, example
from likewise.cli.output import emit, facts

if TYPE_CHECKING:
    from likewise.runs import Run

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)]
Out = Annotated[Path, typer.Option(help="A new folder for the run.", show_default=False)]
ItemsAgain = Annotated[
    Path | None, typer.Option("--items", help="The items, where they no longer lie where they did.")
]
PairsAgain = Annotated[Path | None, typer.Option("--pairs", help="The judgements, likewise.")]


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise merge RUN cat kitten --out RUN2"))(merge)
    app.command(epilog=example("likewise split RUN cat --out RUN2"))(split)


def merge(
    run: RunFolder,
    first: Annotated[str, typer.Argument(help="A class.", show_default=False)],
    second: Annotated[str, typer.Argument(help="Another.", show_default=False)],
    out: Out,
    name: Annotated[str | None, typer.Option(help="What both are called then.")] = None,
    items: ItemsAgain = None,
    pairs: PairsAgain = None,
    json: Json = False,
) -> None:
    """Fit a run again with two of its classes as one."""
    from likewise.runs import Run
    from likewise.runs.inputs import reopen
    from likewise.runs.revision import merge_classes

    before = Run.open(run)
    data, given = reopen(before, items, pairs)
    _tell(merge_classes(before, data, given, (first, second), out, name), json)


def split(
    run: RunFolder,
    name: Annotated[str, typer.Argument(help="A class.", show_default=False)],
    out: Out,
    items: ItemsAgain = None,
    pairs: PairsAgain = None,
    json: Json = False,
) -> None:
    """Fit a run again with one of its classes as two, by the judgements among its items."""
    from likewise.runs import Run
    from likewise.runs.inputs import reopen
    from likewise.runs.revision import split_class

    before = Run.open(run)
    data, given = reopen(before, items, pairs)
    _tell(split_class(before, data, given, name, out), json)


def _tell(run: Run, as_json: bool) -> None:
    figures = run.metrics
    sizes = zip(figures["class_names"], figures["sizes"], strict=True)
    rows = [
        ("run", run.folder),
        ("classes", ", ".join(f"{name} ({size:,})" for name, size in sizes)),
        ("next", f"likewise report {run.folder}"),
    ]
    emit(as_json, {"run": str(run.folder), **figures}, facts(None, rows))
