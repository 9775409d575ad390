"""The application and the options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from likewise.errors import InputError, StoppedError
from likewise.io.places import check_file, check_folder

# Options that name what a command writes.
OUTPUTS = ("out", "report", "judged", "ask", "export", "approvals", "onnx", "torch", "tables")
MAKE_FOLDERS = ("simulate", "demo", "merge", "split", "compact")  # what their --out is
LOOK_THEMSELVES = ("fit", "reproduce")  # they may go on, or write nothing


class Command(TyperCommand):
    """A command that never writes over a file it reads, or writes two things to one file.

    Before any work it looks whether what it is to write can be written where it is asked for.
    Ctrl-C ends it with an error of ours: typer would end it with status 130, and without a word.
    """

    def invoke(self, ctx: Any) -> Any:
        paths = [
            (name, path)
            for name, value in ctx.params.items()
            for path in (value if isinstance(value, list | tuple) else [value])
            if isinstance(path, Path)
        ]
        for number, (name, path) in enumerate(paths):
            for other, same in paths[:number]:
                if (name in OUTPUTS or other in OUTPUTS) and path.resolve() == same.resolve():
                    option = name if name in OUTPUTS else other
                    raise InputError(
                        f"{path} is named twice, and --{option} would write over it; "
                        "choose another name."
                    )
        for name, path in paths:
            if name in OUTPUTS:
                self._check_place(name, path, ctx.params)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError("stopped.") from None

    def _check_place(self, name: str, path: Path, asked: dict[str, Any]) -> None:
        if self.name in LOOK_THEMSELVES:
            return
        if self.name == "label" and name == "out" and (asked["export"] or asked["approvals"]):
            return  # it is read
        is_folder = name == "tables" or (name == "out" and self.name in MAKE_FOLDERS)
        (check_folder if is_folder else check_file)(path, f"--{name}")


class Commands(typer.Typer):
    """All commands, each of them a `Command`."""

    def command(self, *arguments: Any, **settings: Any) -> Any:
        return super().command(*arguments, **{"cls": Command} | settings)


app = Commands(
    name="likewise",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Items = Annotated[
    Path,
    typer.Argument(
        metavar="ITEMS",
        help=".npy/.npz array, CSV/Parquet table, or a folder of images or .txt files.",
        show_default=False,
    ),
]
Judgements = Annotated[
    Path,
    typer.Argument(
        metavar="PAIRS",
        help="Judgements: CSV, Parquet, SQLite or JSON; columns left, right, same[, annotator].",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A run folder or a model folder.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, help="Same seed, same device: same result.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
ImageSize = Annotated[
    int | None,
    typer.Option("--image-size", min=1, help="Scale each image of a folder to this many pixels."),
]
Private = Annotated[
    bool,
    typer.Option("--private", help="Leave out names, ids, pictures and single judgements."),
]
Embed = Annotated[
    str | None,
    typer.Option(
        "--embed", help="Encode photographs or texts: a name at the hub, .onnx, .pt2, a folder."
    ),
]
TextColumn = Annotated[
    str | None, typer.Option("--text", help="The column of a table that holds texts.")
]
Pixels = Annotated[
    str | None,
    typer.Option(help="For .onnx and .pt2: imagenet, clip, half, unit or bytes."),
]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="The column of a table that names the items.")
]
Left = Annotated[str, typer.Option(help="Column of the first item.")]
Right = Annotated[str, typer.Option(help="Column of the second item.")]
Same = Annotated[str, typer.Option(help="Column of the answer.")]
Format = Annotated[
    str | None,
    typer.Option(help="The tool that wrote PAIRS, where its columns do not tell: sorts, mturk ..."),
]
Threshold = Annotated[
    float | None, typer.Option(help='Answers are grades: above this they are "same".')
]
Annotator = Annotated[str, typer.Option(help="Column of the person, if there is one.")]


def columns_of(
    left: str,
    right: str,
    same: str,
    annotator: str,
    format: str | None = None,
    threshold: float | None = None,
) -> dict[str, str | float]:
    """How a file of judgements is to be read, as `Pairs.read` takes it: what was asked for."""
    names = {"left": left, "right": right, "same": same, "annotator": annotator}
    asked = {"format": format, "threshold": threshold}
    return names | {name: value for name, value in asked.items() if value is not None}


def one_of(names: Iterable[str]) -> str:
    """ "a, b or c", for the help of an option."""
    *most, last = names
    return f"{', '.join(most)} or {last}"


def example(*lines: str) -> str:
    """The end of a command's help: how it is used."""
    return "Example:  " + "   ".join(f"[bold]{line}[/bold]" for line in lines)


@app.callback(invoke_without_command=True)
def likewise(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Learn a multi-class classifier from noisy answers to "are these two of the same kind?"."""
    if version:
        from likewise._version import __version__

        sys.stdout.write(f"likewise {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")
        raise typer.Exit
