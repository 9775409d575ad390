"""Pages and files for others: report, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli.app import Embed, IdColumn, ImageSize, Json, Model, Private, TextColumn, example
from likewise.cli.output import emit, facts
from likewise.errors import InputError
from likewise.io.places import check_file


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise report RUN --out report.html"))(report)
    app.command(epilog=example("likewise export RUN --onnx model.onnx"))(export)


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The page; by default report.html in the run.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="True classes, for a confusion matrix: CSV or .npy.")
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(help="A folder of images named after the items, where items are features."),
    ] = None,
    private: Private = False,
    open_browser: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    json: Json = False,
) -> None:
    """Write one self-contained page about a run: noise, people, classes, doubtful judgements."""
    from likewise.io.progress import stage
    from likewise.training.progress import progress_shown

    target = run / "report.html" if out is None else out
    if run.is_dir():
        check_file(target)
    with progress_shown(True, lines=True):
        with stage(None, 0.1):
            from likewise.report import render_report
        page = render_report(run, target, truth, pictures, private)
    if open_browser:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    emit(json, {"report": str(page), "bytes": page.stat().st_size}, facts(None, [("report", page)]))


ExportTo = Annotated[
    Path | None,
    typer.Option(help="Write the answers so far (.csv, .parquet, .db: a backup), and end."),
]


def export(
    model: Model,
    onnx: Annotated[Path | None, typer.Option(help="Write an ONNX model.")] = None,
    torch: Annotated[Path | None, typer.Option(help="Write a torch.export program (.pt2).")] = None,
    tables: Annotated[
        Path | None, typer.Option(help="A new folder of Parquet tables; needs --items.")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="The items for --tables.")] = None,
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    embed: Embed = None,
    text: TextColumn = None,
    private: Private = False,
    json: Json = False,
) -> None:
    """Take a model elsewhere; each export is checked against the original before it is kept."""
    from likewise import export as exporting
    from likewise.runs.model_items import open_with_items
    from likewise.runs.privacy import shuffled

    if private and tables is None:
        raise InputError("--private is about --tables: a program for others holds no names or ids.")
    if onnx is None and torch is None and tables is None:
        raise InputError("say what to export: --onnx FILE, --torch FILE or --tables FOLDER.")
    result: dict[str, Any] = {}
    if onnx is not None:
        result["onnx"] = {"file": onnx, "largest_difference": exporting.export_onnx(model, onnx)}
    if torch is not None:
        difference = exporting.export_torch(model, torch)
        result["torch"] = {"file": torch, "largest_difference": difference}
    if tables is not None:
        if items is None:
            raise InputError("--tables needs --items: whose predictions should be written?")
        classifier, data = open_with_items(
            model, items, id_column=id_column, image_size=image_size, embed=embed, text=text
        )
        if private:
            exporting.export_tables(classifier, data.items[shuffled(len(data))], tables)
        else:
            exporting.export_tables(classifier, data.items, tables, data.ids)
        result["tables"] = {"folder": tables}
    rows = [
        (kind, " ".join(str(value) for value in made.values())) for kind, made in result.items()
    ]
    emit(json, result, facts(None, rows))
