"""`likewise fit`: items and judgements in, a run folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.app import (
    Annotator,
    Device,
    IdColumn,
    ImageSize,
    Items,
    Json,
    Judgements,
    Left,
    Right,
    Same,
    Seed,
    example,
)
from likewise.cli.output import emit, facts, say

if TYPE_CHECKING:
    from likewise.runs import Run


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise fit items.npy pairs.csv --classes 10 --out runs/first"))(
        fit
    )


def fit(
    items: Items,
    pairs: Judgements,
    out: Annotated[Path, typer.Option(help="A new folder for the run.", show_default=False)],
    classes: Annotated[str, typer.Option(help="How many, or auto: read off the answers.")] = "auto",
    method: Annotated[str, typer.Option(help="auto, joint, mns, mcl or kcl.")] = "auto",
    noise: Annotated[
        str, typer.Option(help="auto, class, judgement, both, annotator or confusion.")
    ] = "auto",
    transition: Annotated[
        str, typer.Option(help="estimate, none, or a file (.npy, CSV) with a known T.")
    ] = "estimate",
    network: Annotated[
        str | None, typer.Option(help="mlp, lenet, resnet32, vgg8 ...; by default by the items.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Instead of the recipe's.")] = None,
    lr: Annotated[
        float | None, typer.Option(help="Learning rate, instead of the recipe's.")
    ] = None,
    held_out: Annotated[float, typer.Option(help="Share of items that choose the epoch.")] = 0.1,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a killed fit of the same kind stopped.")
    ] = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0, help="Training that a kill may cost, at most.")
    ] = 60.0,
    track: Annotated[
        str | None, typer.Option(help="Also log to tensorboard:DIR or mlflow:URI.")
    ] = None,
    left: Left = "left",
    right: Right = "right",
    same: Same = "same",
    annotator: Annotator = "annotator",
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    json: Json = False,
) -> None:
    """Learn a classifier from items and same-or-different judgements about them.

    OUT becomes a run folder: the model, what was asked, what came out, and what a report needs.
    """
    from likewise import tracking
    from likewise.atomic import remove_leftovers
    from likewise.checkpoints import Checkpoints
    from likewise.classifier import SimilarityClassifier
    from likewise.errors import NonFiniteError
    from likewise.itemfiles import read_items
    from likewise.origins import input_record
    from likewise.pairs import Pairs
    from likewise.ranks import joined
    from likewise.runs import write_run
    from likewise.training import choose_device

    if track is not None:
        tracking.parse_spec(track)  # before anything is trained
    started = time.perf_counter()
    classifier = SimilarityClassifier(
        n_classes=_number_of_classes(classes),
        method=method,
        transition=_transition(transition),
        noise=noise,
        network=network,
        recipe=_recipe(epochs=epochs, batch_size=batch_size, lr=lr),
        held_out=held_out,
        device=device,
        random_state=seed,
        verbose=not quiet,
    )
    config = {
        "command": "fit",
        "seed": seed,
        "parameters": classifier.get_params(deep=False),
        "columns": {"left": left, "right": right, "same": same, "annotator": annotator},
        "items": {**input_record(items), "id": id_column, "image_size": image_size},
        "pairs": input_record(pairs),
    }
    folder = out.with_name(f"{out.name}.checkpoints")
    checkpoints = Checkpoints(folder, every_seconds=checkpoint_seconds)
    if (finished := _finished(out, config, resume)) is not None:
        checkpoints.remove()
        return _tell(finished, json)
    if not resume:
        _refuse_checkpoints(folder)
    remove_leftovers(out.parent, f"{out.name}.")
    data = read_items(items, id_column=id_column, size=image_size)
    judgements = Pairs.read(pairs, item_ids=data.ids, n_items=len(data), **config["columns"])
    read = time.perf_counter()
    try:
        with joined() as ranks:  # those that torchrun started, if it did
            classifier.fit(data.items, judgements, checkpoints=checkpoints)
    except NonFiniteError:
        checkpoints.remove()  # going on from them would end here again
        raise
    if ranks is not None and not ranks.is_first:
        return None  # one of several processes writes
    run = write_run(
        out,
        classifier,
        data.items,
        judgements,
        ids=None if data.ids is None else data.ids.tolist(),
        config=config,
        metrics={
            "device": str(choose_device(device)),
            "seconds": {"read": read - started, "fit": time.perf_counter() - read},
        },
    )
    checkpoints.remove()
    if track is not None:
        tracking.log_run(track, run.folder)
    return _tell(run, json)


def _finished(out: Path, config: dict[str, Any], resume: bool) -> Run | None:
    """The run in ``out`` if it is finished and this very one is to be resumed; else None."""
    from likewise.atomic import check_vacant
    from likewise.errors import InputError
    from likewise.runs import Run
    from likewise.storage import plain

    if not resume or not (out / "config.json").exists():
        check_vacant(out)
        return None
    run, asked = Run.open(out), plain(config)
    if differing := [name for name in asked if run.config.get(name) != asked[name]]:
        raise InputError(
            f"{out} holds a finished run with other {', '.join(differing)}; choose another name."
        )
    say(f"{out} is finished already")
    return run


def _refuse_checkpoints(folder: Path) -> None:
    """Hours of training are not thrown away because somebody forgot an option."""
    from likewise.errors import InputError

    if folder.is_dir():
        raise InputError(
            f"{folder} holds a fit that was cut short: add --resume to go on with it, or remove "
            "that folder to begin again."
        )


def _number_of_classes(text: str) -> int | str:
    from likewise.errors import InputError

    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--classes must be a whole number or auto, not {text!r}.") from None


def _transition(text: str) -> Any:
    from likewise.labelfiles import read_matrix

    if text in ("estimate", "none"):
        return None if text == "none" else text
    return read_matrix(text)


def _recipe(**changes: Any) -> dict[str, Any] | None:
    """What the person wants changed about the usual recipe; None for nothing."""
    return {name: value for name, value in changes.items() if value is not None} or None


def _tell(run: Run, as_json: bool) -> None:
    figures = run.metrics
    for warning in figures["warnings"]:
        say(f"warning: {warning}")
    rows = [
        ("run", run.folder),
        ("method", figures["choice"]),
        ("items", f"{figures['items']:,}, {figures['judgements']:,} judgements"),
        ("classes", f"{figures['classes']}, of {_sizes(figures['sizes'])} items"),
        ("best epoch", f"{figures['best_epoch'] + 1} of {figures['epochs']}"),
        ("seconds", f"{figures['seconds']['fit']:.1f} on {figures['device']}"),
        ("next", f"likewise report {run.folder}"),
    ]
    emit(as_json, {"run": str(run.folder), **figures}, facts(None, rows))


def _sizes(sizes: list[int]) -> str:
    shown = ", ".join(f"{size:,}" for size in sizes[:12])
    return shown if len(sizes) <= 12 else f"{shown}, ..."
