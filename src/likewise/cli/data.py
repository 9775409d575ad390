"""Judgements themselves: `describe` them, `compact` many of them, `simulate` them."""

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
from likewise.cli.output import emit, facts, say


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise describe pairs.csv --classes 10"))(describe)
    app.command(epilog=example("likewise compact answers-*.parquet --out small"))(compact)
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
    from likewise.pairs.streamed_description import describe_file

    columns = columns_of(left, right, same, annotator, format, threshold)
    description = describe_file(pairs, columns, classes)
    emit(json, description.to_dict(), repr(description))


def compact(
    out: Annotated[Path, typer.Option(help="The folder to write.", show_default=False)],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PAIRS...", help="Judgements in any format that fit reads."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(help="SQL for DuckDB instead of files: SELECT ... AS left, right, same."),
    ] = None,
    left: Left = "left",
    right: Right = "right",
    same: Same = "same",
    annotator: Annotator = "annotator",
    format: Annotated[str | None, typer.Option(help="Of the files, if not recognised.")] = None,
    memory: Annotated[str, typer.Option(help="Beyond it, DuckDB spills to disk.")] = "2GB",
    threads: Annotated[int | None, typer.Option(min=1, help="Default: all cores.")] = None,
    json: Json = False,
) -> None:
    """Make a table of judgements small that does not fit in memory (needs likewise\\[duckdb]).

    Names become numbers, rows without an answer are dropped, and the same answer of the same person
    about the same pair is kept once with its count. A killed run goes on where it stopped.
    """
    from dataclasses import asdict

    from likewise.pairs.compact.build import Job, compact
    from likewise.pairs.formats.long import ColumnNames

    names = ColumnNames(left, right, same, annotator)
    job = Job(tuple(inputs or ()), out, query, names, format, memory, threads)
    counts = compact(job, tell=say).counts
    rows = [
        ("folder", out),
        ("rows read", f"{counts.rows:,}"),
        ("without an answer", f"{counts.dropped:,}"),
        ("judgements", f"{counts.judgements:,}"),
        ("rows kept", f"{counts.kept:,}, repeats merged"),
        ("items", f"{counts.items:,}"),
        ("annotators", f"{counts.annotators:,}" if counts.annotators else "not given"),
        ("next", f"likewise describe {out}"),
    ]
    emit(json, {"out": str(out), **asdict(counts)}, facts(None, rows))


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
