"""Judgements themselves: `describe` them, `simulate` them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.app import (
    Annotator,
    Format,
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
from likewise.cli.output import emit, facts


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise describe pairs.csv --classes 10"))(describe)
    app.command(epilog=example("likewise simulate --out data --class-noise 0.4 --per-item 50"))(
        simulate
    )


def describe(
    pairs: Judgements,
    classes: Annotated[
        int | None, typer.Option(min=2, max=1_000_000, help="How many, where known.")
    ] = None,
    left: Left = "left",
    right: Right = "right",
    same: Same = "same",
    annotator: Annotator = "annotator",
    format: Format = None,
    threshold: Threshold = None,
    json: Json = False,
) -> None:
    """Say what judgements look like: balance, repeats, contradictions, triangles, noise."""
    from likewise.pairs import Pairs

    found = Pairs.read(pairs, **columns_of(left, right, same, annotator, format, threshold))
    description = found.describe(classes)
    emit(json, description.to_dict(), repr(description))


def simulate(
    out: Annotated[Path, typer.Option(help="A new folder for the files.", show_default=False)],
    labels: Annotated[
        Path | None,
        typer.Option(help="Your items' classes (CSV, .npy); by default the digits are used."),
    ] = None,
    class_noise: Annotated[float, typer.Option(help="Share of items taken for another.")] = 0.2,
    kind: Annotated[str, typer.Option(help="symmetric, or pair (c for c + 1).")] = "symmetric",
    miss: Annotated[float, typer.Option(help='P("different" | same) of one judgement.')] = 0.0,
    false_alarm: Annotated[float, typer.Option(help='P("same" | different) of one.')] = 0.0,
    per_item: Annotated[int, typer.Option(min=0, help="Judgements an item; 0: every pair.")] = 50,
    annotators: Annotated[int, typer.Option(min=0, help="People who share them.")] = 0,
    careless: Annotated[float, typer.Option(help="Share of people who toss a coin.")] = 0.0,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Make judgements with known noise, about scikit-learn's digits or about items of yours.

    OUT holds pairs.csv and, for the digits, items.npy and truth.csv, and test_items.npy and
    test_truth.csv of items that no judgement is about.
    """
    import numpy as np

    from likewise.datasets.simulation import Simulation, simulate_digits, simulate_labels

    how = Simulation(class_noise, kind, miss, false_alarm, per_item or None, annotators, careless)
    rng = np.random.default_rng(seed)
    pairs = (
        simulate_digits(out, how, rng) if labels is None else simulate_labels(labels, out, how, rng)
    )
    files = sorted(path.name for path in out.iterdir())
    result = {
        "out": str(out),
        "files": files,
        "items": pairs.n_items,
        "judgements": len(pairs),
        "same": pairs.n_same,
    }
    rows = [
        ("folder", out),
        ("files", ", ".join(files)),
        ("items", pairs.n_items),
        ("judgements", f"{len(pairs):,}, {pairs.n_same / len(pairs):.1%} same"),
        ("next", f"likewise fit {out / 'items.npy'} {out / 'pairs.csv'} --out RUN"),
    ]
    emit(json, result, facts(None, rows if labels is None else rows[:-1]))
