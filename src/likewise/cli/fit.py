"""`likewise fit`: items and judgements in, a run folder out."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.app import (
    Annotator,
    Device,
    Embed,
    Format,
    IdColumn,
    ImageSize,
    Items,
    Json,
    Judgements,
    Left,
    Pixels,
    Private,
    Right,
    Same,
    Seed,
    TextColumn,
    Threshold,
    columns_of,
    example,
    one_of,
)
from likewise.cli.output import emit, facts, say
from likewise.errors import StoppedError
from likewise.io.places import checkpoints_of
from likewise.methods.registry import METHODS
from likewise.noise.registry import noise_names

if TYPE_CHECKING:
    from likewise.io.json import Record
    from likewise.runs import Run


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise fit items.npy pairs.csv --classes 10 --out runs/first"))(
        fit
    )


Out = Annotated[Path, typer.Option(help="A new folder for the run.", show_default=False)]
Classes = Annotated[str, typer.Option(help="How many, or auto: read off the answers.")]
MethodName = Annotated[str, typer.Option(help=f"{one_of(METHODS)}.")]
NoiseName = Annotated[str, typer.Option(help=f"Noise model: {one_of(noise_names())}.")]
Transition = Annotated[
    str, typer.Option(help="estimate, none, or a file (.npy, CSV) with a known T.")
]
Network = Annotated[
    str | None, typer.Option(help="mlp, lenet, resnet32, vgg8 ...; by default by the items.")
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")]
BatchSize = Annotated[int | None, typer.Option(min=2, help="Instead of the recipe's.")]
Rate = Annotated[float | None, typer.Option(help="Learning rate, instead of the recipe's.")]
HeldOut = Annotated[float, typer.Option(help="Share of items that choose the epoch.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where a killed fit of the same kind stopped.")
]
CheckpointSeconds = Annotated[
    float, typer.Option(min=0, help="Training that a kill may cost, at most.")
]
Track = Annotated[str | None, typer.Option(help="Also log to tensorboard:DIR or mlflow:URI.")]
Known = Annotated[
    Path | None,
    typer.Option(help="Classes of some items that are certain: CSV (item, label). They help."),
]
Gold = Annotated[
    Path | None, typer.Option(help="Judgements whose answers are certain, in any form of PAIRS.")
]
Like = Annotated[
    Path | None, typer.Option(help="A run whose classes keep their numbers and names.")
]
WithoutPerson = Annotated[
    list[str] | None, typer.Option(help="Leave this person's judgements out; may be repeated.")
]
Stability = Annotated[
    bool,
    typer.Option("--stability", help="Fit three times more: would another seed find the same?"),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


# In this order: each takes its part of the first seconds, and so progress has a pace at once.
SLOW_IMPORTS = ("numpy", "scipy.sparse", "torch", "sklearn.base", "likewise.classifier")


def fit(
    items: Items,
    pairs: Judgements,
    out: Out,
    classes: Classes = "auto",
    method: MethodName = "auto",
    noise: NoiseName = "auto",
    transition: Transition = "estimate",
    network: Network = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Rate = None,
    held_out: HeldOut = 0.1,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Resume = False,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    track: Track = None,
    private: Private = False,
    known: Known = None,
    gold: Gold = None,
    like: Like = None,
    without_person: WithoutPerson = None,
    stability: Stability = False,
    left: Left = "left",
    right: Right = "right",
    same: Same = "same",
    annotator: Annotator = "annotator",
    format: Format = None,
    threshold: Threshold = None,
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    embed: Embed = None,
    text: TextColumn = None,
    pixels: Pixels = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a classifier from items and same-or-different judgements about them.

    OUT becomes a run folder: the model, what was asked, what came out, and what a report needs.
    """
    _check_model(embed)
    job: Record = {"columns": columns_of(left, right, same, annotator, format, threshold)}
    job |= {"id_column": id_column, "image_size": image_size, "private": private}
    job |= {"resume": resume, "checkpoint_seconds": checkpoint_seconds, "track": track}
    job["stability"] = stability
    how: Record = {"n_classes": _number_of_classes(classes), "method": method, "noise": noise}
    how |= {"network": network, "recipe": _recipe(epochs=epochs, batch_size=batch_size, lr=lr)}
    how |= {"held_out": held_out, "device": device, "random_state": seed, "verbose": not quiet}
    told = known, gold, tuple(without_person or ()), like
    try:
        run = _fitted((items, pairs, out), (embed, text, pixels), told, job, how, transition)
    except KeyboardInterrupt:
        raise StoppedError(f"stopped{_way_on(out)}.") from None
    _tell(run, json)


def _way_on(out: Path) -> str:
    """What to say of the checkpoints beside ``out``, if there are any."""
    if not checkpoints_of(out).is_dir():
        return ""
    return "; the same command with --resume goes on where it was"


def _fitted(
    files: tuple[Path, Path, Path],
    encoding: tuple[str | None, str | None, str | None],
    told: tuple[Path | None, Path | None, tuple[str, ...], Path | None],
    job: Record,
    how: Record,
    transition: str,
) -> Run | None:
    """The run, with progress from before the first slow import on."""
    from likewise.io.progress import stage, tracked
    from likewise.training.progress import progress_shown

    with progress_shown(how["verbose"], lines=True):
        with stage(None, 0.1):
            for module in tracked(SLOW_IMPORTS, of=len(SLOW_IMPORTS)):
                import_module(module)
            from likewise.classifier import SimilarityClassifier
            from likewise.items.encoders.reading import Encoding
            from likewise.runs.fit_job import FitJob
            from likewise.runs.told import Told
        classifier = SimilarityClassifier(transition=_transition(transition), **how)
        work = FitJob(*files, told=Told(*told), encoding=Encoding(*encoding), tell=say, **job)
        with stage(None):
            return work.run(classifier)


def _check_model(embed: str | None) -> None:
    """Refuse a model that is not there in the first second, before anything heavy is imported."""
    from likewise.io.hub import locate

    if embed is not None:
        locate(embed)


def _number_of_classes(text: str) -> int | str:
    from likewise.errors import InputError

    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--classes must be a whole number or auto, not {text!r}.") from None


def _transition(text: str) -> Any:
    from likewise.items.labels import read_matrix

    if text in ("estimate", "none"):
        return None if text == "none" else text
    return read_matrix(text)


def _recipe(**changes: Any) -> Record | None:
    """What the person wants changed about the usual recipe; None for nothing."""
    return {name: value for name, value in changes.items() if value is not None} or None


def _tell(run: Run | None, as_json: bool) -> None:
    if run is None:  # in all but the first of several processes that share the work
        return
    from likewise.runs.verdict import in_words

    figures = run.metrics
    for warning in figures["warnings"]:
        say(f"warning: {warning}")
    counted = "" if figures["class_evidence"] is None else "; read off the answers, see --classes"
    rows = [
        ("run", run.folder),
        ("method", figures["choice"]),
        ("items", f"{figures['items']:,}, {figures['judgements']:,} judgements"),
        ("classes", f"{figures['classes']}, of {_sizes(figures['sizes'])} items{counted}"),
        ("best epoch", f"{figures['best_epoch'] + 1} of {figures['epochs']}"),
        ("seconds", f"{figures['seconds']['fit']:.1f} of fitting alone, on {figures['device']}"),
        ("next", f"likewise report {run.folder}"),
    ]
    if (like := figures.get("like")) is not None:
        kept = f"{like['kept']:.1%} of {like['shared']:,} shared items keep their class"
        rows.insert(4, (f"like {like['run']}", kept))
    rows[-1:-1] = [("", text) for text in in_words(figures.get("comparison"))]
    emit(as_json, {"run": str(run.folder), **figures}, facts(None, rows))


def _sizes(sizes: list[int]) -> str:
    shown = ", ".join(f"{size:,}" for size in sizes[:12])
    return shown if len(sizes) <= 12 else f"{shown}, ..."
