"""Judgements and nothing else: `group`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.app import (
    Annotator,
    Format,
    IdColumn,
    Json,
    Judgements,
    Left,
    Right,
    Same,
    Seed,
    Threshold,
    columns_of,
    example,
)
from likewise.cli.output import emit, facts, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import RenderableType

    from likewise.io.json import Record
    from likewise.items.files import ItemFile
    from likewise.methods.groups import Groups
    from likewise.pairs import Pairs

SHOWN = 5
WRITTEN = {"out": "written to", "judged": "pairs judged", "ask": "pairs to ask", "report": "page"}


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise group pairs.csv --out groups.csv"))(group)


def group(
    pairs: Judgements,
    out: Annotated[
        Path | None, typer.Option(help="Write a CSV file: item, group, probability.")
    ] = None,
    judged: Annotated[
        Path | None, typer.Option(help="Write a CSV file: left, right, probability of each pair.")
    ] = None,
    ask: Annotated[
        Path | None, typer.Option(help="Write a CSV file: left, right of pairs to ask about next.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many pairs to ask about.")] = 100,
    report: Annotated[
        Path | None, typer.Option(help="Write one self-contained page (HTML) about the groups.")
    ] = None,
    groups: Annotated[
        int | None, typer.Option(min=1, help="How many, where known; else found out.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="The items' features, if there are any; they help.")
    ] = None,
    left: Left = "left",
    right: Right = "right",
    same: Same = "same",
    annotator: Annotator = "annotator",
    format: Format = None,
    threshold: Threshold = None,
    id_column: IdColumn = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Find which items belong together from judgements alone: duplicates, identities."""
    from likewise.io.progress import stage
    from likewise.io.spreadsheets import write_csv
    from likewise.training.progress import progress_shown

    with progress_shown(True, lines=True):
        with stage(None, 0.1):
            from likewise.methods.groups import group as find
            from likewise.methods.groups import read_judged
        data = None if items is None else _items(items, id_column)
        given = read_judged(
            pairs,
            item_ids=None if data is None else data.ids,
            n_items=None if data is None else len(data),
            **columns_of(left, right, same, annotator, format, threshold),
        )
        with stage(None):
            found = find(given, None if data is None else data.items, groups, seed)
    columns, written = _columns(found), {"out": out, "judged": judged, "ask": ask, "report": report}
    if out is not None:
        write_csv(out, columns)
    if judged is not None:
        write_csv(judged, _named(found, found.pairs, found.pairs_proba))
    if ask is not None:
        write_csv(ask, _to_ask(found, None if data is None else data.items, given, count))
    if report is not None:
        _write_page(found, report, pairs.name)
    emit(json, _summary(found, columns, written), *_shown(found, written))


def _items(path: Path, id_column: str | None) -> ItemFile:
    from likewise.items.files import read_items  # loads PyTorch

    return read_items(path, id_column=id_column)


def _to_ask(
    found: Groups, items: NDArray[np.generic] | None, given: Pairs, count: int
) -> dict[str, list[object]]:
    """Pairs to ask about next, those first whose answers would tell most."""
    from likewise.active.suggestion import suggest

    return _named(found, suggest(found, items, given, count))


def _write_page(found: Groups, path: Path, source: str) -> None:
    from likewise.report.groups import render_groups

    render_groups(found, path, source)


def _named(
    found: Groups, pairs: NDArray[np.int64], proba: NDArray[np.float64] | None = None
) -> dict[str, list[object]]:
    """Pairs (P, 2) by the names of their items, with their probabilities (P,)."""
    columns: dict[str, list[object]] = {
        side: found.item_ids[ends].tolist()
        for side, ends in zip(("left", "right"), pairs.T, strict=True)
    }
    if proba is not None:
        columns["probability"] = [round(float(p), 6) for p in proba]
    return columns


def _columns(found: Groups) -> dict[str, list[object]]:
    """The table that is written; an item that was never judged has an empty group."""
    judged = (found.labels >= 0).tolist()
    return {
        "item": found.item_ids.tolist(),
        "group": [int(g) if known else "" for g, known in zip(found.labels, judged, strict=True)],
        "probability": [
            round(float(p), 6) if known else ""
            for p, known in zip(found.probability, judged, strict=True)
        ],
    }


def _summary(
    found: Groups, columns: dict[str, list[object]], written: dict[str, Path | None]
) -> Record:
    rows = list(zip(*columns.values(), strict=True))
    files = {name: None if path is None else str(path) for name, path in written.items()}
    return {
        "judgements": len(found.judgements_proba),
        "items": len(found.labels),
        "groups": found.n_groups,
        "sizes": found.sizes.tolist(),
        **files,
        "annotators": found.annotators,
        "ask_again": [
            {"left": a, "right": b, "probability": round(p, 4)} for a, b, p in found.ask_again()
        ],
        "assignments": len(rows) if written["out"] else [dict(zip(columns, row)) for row in rows],
    }


def _shown(found: Groups, written: dict[str, Path | None]) -> list[RenderableType]:
    """Groups, the largest of them, people least reliable, pairs most worth asking again."""
    sizes = found.sizes
    n_judged = int(sizes.sum())
    never = len(found.labels) - n_judged
    rows: list[tuple[str, object]] = [
        ("groups", f"{found.n_groups:,} of {n_judged:,} items"),
        ("largest", ", ".join(f"{size:,}" for size in sizes[:10].tolist())),
        ("alone", f"{int((sizes == 1).sum()):,} items"),
        ("judgements", f"{len(found.judgements_proba):,}"),
    ]
    if never:
        rows.append(("never judged", f"{never:,} items, which have no group"))
    rows += [(WRITTEN[name], path) for name, path in written.items() if path is not None]
    shown = [facts(None, rows)]
    if people := found.annotators:
        order = range(len(people["annotator"]) - 1, -1, -1)
        worst = [
            (
                people["annotator"][k],
                people["answers"][k],
                round(float(people["same_given_same"][k]), 2),
                round(float(people["same_given_different"][k]), 2),
            )
            for k in order[:SHOWN]
        ]
        title = "people, least reliable first"
        shown.append(
            table(title, ["person", "answers", "P(same|same)", "P(same|different)"], worst)
        )
    doubtful = [(a, b, round(p, 2)) for a, b, p in found.ask_again(SHOWN)]
    if doubtful:
        shown.append(table("most worth asking again", ["left", "right", "P(same)"], doubtful))
    return shown
