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
PerPerson = Annotated[
    int | None, typer.Option(min=1, help="Questions (or screens) of each person; then the end.")
]
AskPairs = Annotated[
    Path | None, typer.Option("--pairs", help="Ask these pairs only: a table of left, right.")
]
Gold = Annotated[
    Path | None, typer.Option(help="Judgements known to be right, asked among the others.")
]
GoldEvery = Annotated[int, typer.Option(min=2, help="One question in so many is a gold one.")]
WithGold = Annotated[
    bool, typer.Option("--with-gold", help="With --export: answers to gold questions too.")
]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        "--person-parameter",
        help="The address's parameter that says who comes; by default annotator, PROLIFIC_PID or "
        "workerId. May be repeated.",
    ),
]
Finish = Annotated[
    str | None, typer.Option(help="Where people go at the end; {code}, {person}: theirs.")
]
Code = Annotated[
    str | None, typer.Option(help="The completion code; by default each person has their own.")
]
Approvals = Annotated[
    Path | None, typer.Option(help="Write a CSV table for paying people, and end.")
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
    per_person: PerPerson = None,
    pairs: AskPairs = None,
    gold: Gold = None,
    gold_every: GoldEvery = 10,
    person_parameter: Parameter = None,
    finish: Finish = None,
    code: Code = None,
    approvals: Approvals = None,
    with_gold: WithGold = False,
    id_column: IdColumn = None,
) -> None:
    """Serve the page on which people judge pairs, or sort; Ctrl-C ends it, answers are kept."""
    if _written(out, export, approvals, private, with_gold):
        return
    _check_installed()
    from likewise.label import serve
    from likewise.label.hiring import PARAMETERS, Hiring

    hire = Hiring(
        per_person=per_person,
        pairs=pairs,
        gold=gold,
        gold_every=gold_every,
        parameters=tuple(person_parameter or PARAMETERS),
        finish=finish,
        code=code,
    )
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
        hire=hire if hire != Hiring() else None,
        announce=lambda url: _announce(url, host, out),
    )


def _check_installed() -> None:
    try:
        import likewise.label.server  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the labelling page needs {error.name}: pip install 'likewise[label]'."
        ) from error


def _written(
    out: Path, export: Path | None, approvals: Path | None, private: bool, gold: bool
) -> bool:
    """Whether answers were written for others, or a table for paying, and that is all."""
    if export is None and (private or gold):
        option = "--private" if private else "--with-gold"
        raise InputError(
            f"{option} is about --export; a page needs the names of its people, and keeps answers "
            "to gold questions apart."
        )
    if approvals is not None:
        from likewise.label.approvals import write_approvals

        say(f"{write_approvals(out, approvals)} people written to {approvals}")
    if export is not None:
        from likewise.label import export_judgements

        written = export_judgements(out, export, private, gold=gold)
        say(f"{written} answers written to {export}")
    return export is not None or approvals is not None


def _announce(url: str, host: str, out: Path) -> None:
    from likewise.label.security import is_loopback

    if not is_loopback(host):
        say(
            "the page is served in the clear (http): whoever is on the way can read names, items, "
            "answers and the link; use it in a network you trust, or behind a proxy with https."
        )
    say(f"judge at {url}\nanswers go to {out}; Ctrl-C ends")
