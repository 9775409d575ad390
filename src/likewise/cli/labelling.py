"""The page on which people judge: `label`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.app import IdColumn, example
from likewise.cli.output import say
from likewise.errors import InputError

Items = Annotated[
    Path, typer.Argument(help="A folder of images, or a CSV/Parquet table.", show_default=False)
]
Out = Annotated[Path, typer.Option(help="The database of answers; goes on if it exists.")]
Host = Annotated[str, typer.Option(help="Another than loopback needs the link's token.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")]
Browser = Annotated[bool, typer.Option(help="Open the page at once.")]
Question = Annotated[str | None, typer.Option(help="What to ask people.")]
AllowHost = Annotated[
    list[str] | None, typer.Option(help="Another name people reach it by; may be repeated.")
]
ShowNames = Annotated[bool, typer.Option("--show-names", help="Show file names.")]
Sort = Annotated[bool, typer.Option("--sort", help="Let people sort screens of items into piles.")]
Screen = Annotated[int, typer.Option(min=3, max=35, help="Items a screen, with --sort.")]
Suggest = Annotated[
    bool, typer.Option("--suggest", help="Let a model, fitted in the background, choose pairs.")
]
Classes = Annotated[
    int | None, typer.Option(min=2, help="Of that model; by default read off the answers.")
]
Export = Annotated[
    Path | None,
    typer.Option(help="Write the answers so far (.csv, .parquet, .db: a backup), and end."),
]
Token = Annotated[
    str | None,
    typer.Option(envvar="LIKEWISE_TOKEN", help="The link's token; by default a new one."),
]
NumberPeople = Annotated[
    bool, typer.Option("--private", help="With --export: people are numbered, not named.")
]


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise label photos/ --out answers.db"))(label)


def label(
    items: Items,
    out: Out = Path("judgements.db"),
    host: Host = "127.0.0.1",
    port: Port = 8000,
    browser: Browser = True,
    question: Question = None,
    allow_host: AllowHost = None,
    show_names: ShowNames = False,
    sort: Sort = False,
    screen: Screen = 35,
    suggest: Suggest = False,
    classes: Classes = None,
    export: Export = None,
    token: Token = None,
    private: NumberPeople = False,
    id_column: IdColumn = None,
) -> None:
    """Serve the page on which people judge pairs, or sort; Ctrl-C ends it, answers are kept."""
    if _exported(out, export, private):
        return
    try:
        from likewise.label import serve
    except ImportError as error:
        raise InputError(
            f"the labelling page needs {error.name}: pip install 'likewise[label]'."
        ) from error
    serve(
        items,
        out,
        host,
        port,
        browser,
        allow_hosts=tuple(allow_host or ()),
        question=question,
        show_names=show_names,
        id_column=id_column,
        classes=(classes or "auto") if suggest else None,
        token=token,
        sort=screen if sort else None,
        announce=lambda url: _announce(url, host, out),
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
