"""Pages and files for others: report, label, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli.app import IdColumn, ImageSize, Json, Model, Private, example
from likewise.cli.output import emit, facts, say
from likewise.errors import InputError


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise report RUN --out report.html"))(report)
    app.command(epilog=example("likewise label photos/ --out answers.db"))(label)
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
    from likewise.report import render_report

    target = run / "report.html" if out is None else out
    page = render_report(run, target, truth, pictures, private)
    if open_browser:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    emit(json, {"report": str(page), "bytes": page.stat().st_size}, facts(None, [("report", page)]))


ExportTo = Annotated[
    Path | None,
    typer.Option(help="Write the answers so far (.csv, .parquet, .db: a backup), and end."),
]
NumberPeople = Annotated[
    bool, typer.Option("--private", help="With --export: people are numbered, not named.")
]


def label(
    items: Annotated[
        Path, typer.Argument(help="A folder of images, or a CSV/Parquet table.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The database of answers; goes on if it exists.")] = (
        Path("judgements.db")
    ),
    host: Annotated[str, typer.Option(help="Another than loopback needs the link's token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8000,
    browser: Annotated[bool, typer.Option(help="Open the page at once.")] = True,
    question: Annotated[str | None, typer.Option(help="What to ask people.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name people reach it by; may be repeated.")
    ] = None,
    show_names: Annotated[bool, typer.Option("--show-names", help="Show file names.")] = False,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Let a model, fitted in the background, choose pairs.")
    ] = False,
    classes: Annotated[
        int | None, typer.Option(min=2, help="Of that model; by default read off the answers.")
    ] = None,
    export: ExportTo = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="LIKEWISE_TOKEN", help="The link's token; by default a new one."),
    ] = None,
    private: NumberPeople = False,
    id_column: IdColumn = None,
) -> None:
    """Serve the page on which people judge pairs; Ctrl-C ends it, answers are kept."""
    if _exported(out, export, private):
        return
    try:
        from likewise.label import serve
    except ImportError as error:
        raise InputError(
            f"the labelling page needs {error.name}: pip install 'likewise[label]'."
        ) from error
    options: dict[str, Any] = {} if question is None else {"question": question}
    serve(
        items,
        out,
        host,
        port,
        browser,
        allow_hosts=tuple(allow_host or ()),
        show_names=show_names,
        id_column=id_column,
        classes=(classes or "auto") if suggest else None,
        token=token,
        announce=lambda url: _announce(url, host, out),
        **options,
    )


def _exported(out: Path, export: Path | None, private: bool) -> bool:
    """Whether answers were written for others, and that is all."""
    if export is None:
        if private:
            raise InputError("--private is about --export; a page needs the names of its people.")
        return False
    from likewise.label import export_judgements

    say(f"{export_judgements(out, export, private)} answers written to {export}")
    return True


def _announce(url: str, host: str, out: Path) -> None:
    from likewise.label.security import is_loopback

    if not is_loopback(host):
        say(
            "the page is served in the clear (http): whoever is on the way can read names, items, "
            "answers and the link; use it in a network you trust, or behind a proxy with https."
        )
    say(f"judge at {url}\nanswers go to {out}; Ctrl-C ends")


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
    private: Private = False,
    json: Json = False,
) -> None:
    """Take a model elsewhere; each export is checked against the original before it is kept."""
    from likewise import export as exporting
    from likewise.items.files import read_items
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
        data = read_items(items, id_column=id_column, size=image_size)
        if private:
            exporting.export_tables(model, data.items[shuffled(len(data))], tables)
        else:
            exporting.export_tables(model, data.items, tables, data.ids)
        result["tables"] = {"folder": tables}
    rows = [
        (kind, " ".join(str(value) for value in made.values())) for kind, made in result.items()
    ]
    emit(json, result, facts(None, rows))
