"""A fitted model at work: predict, evaluate, suspects, name, suggest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.app import (
    Annotator,
    Embed,
    Format,
    IdColumn,
    ImageSize,
    Items,
    Json,
    Judgements,
    Left,
    Model,
    Right,
    Same,
    TextColumn,
    Threshold,
    columns_of,
    example,
)
from likewise.cli.output import emit, facts, table
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier
    from likewise.io.json import Record
    from likewise.items.files import ItemFile
    from likewise.pairs import Pairs

SHOWN = 20
MAX_SHOWN_CLASSES = 20

LabelColumn = Annotated[
    str | None, typer.Option("--column", help="The column of the class, where it is not clear.")
]
OutCsv = Annotated[Path | None, typer.Option(help="Write a CSV file.")]


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise predict RUN new_items.npy --out classes.csv"))(predict)
    app.command(epilog=example("likewise evaluate RUN test_items.npy test_truth.csv"))(evaluate)
    app.command(epilog=example("likewise suspects RUN --limit 50 --out ask.csv"))(suspects)
    app.command(epilog=example("likewise name RUN few_labels.csv"))(name)
    app.command(
        epilog=example("likewise suggest RUN items.npy pairs.csv --count 100 --out ask.csv")
    )(suggest)


def predict(
    model: Model,
    items: Items,
    out: OutCsv = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="A column for each class.")
    ] = False,
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    embed: Embed = None,
    text: TextColumn = None,
    json: Json = False,
) -> None:
    """Say the class of each item."""
    from likewise.export import probability_columns
    from likewise.io.spreadsheets import write_csv

    classifier, data = _open(model, items, id_column, image_size, embed, text)
    posterior = classifier.predict_proba(data.items).astype("float64")  # to round as printed
    best = posterior.argmax(axis=1)
    columns: Record = {
        "item": data.names.tolist(),
        "class": classifier.classes_[best].tolist(),
        "probability": posterior.max(axis=1).round(6).tolist(),
    }
    if probabilities:
        for name, p in zip(probability_columns(classifier.classes_), posterior.T, strict=True):
            columns[name] = p.round(6).tolist()
    if out is not None:
        write_csv(out, columns)
    result = {"items": len(data), "out": None if out is None else str(out)}
    _emit_columns(json, result, "predictions", columns, out)


def evaluate(
    model: Model,
    items: Items,
    truth: Annotated[
        Path,
        typer.Argument(help="True classes: CSV (item, label) or .npy.", show_default=False),
    ],
    column: LabelColumn = None,
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    embed: Embed = None,
    text: TextColumn = None,
    json: Json = False,
) -> None:
    """Compare with true classes, under the best matching of learned to true ones."""
    from likewise.items.labels import read_labels
    from likewise.metrics import evaluate_predictions

    classifier, data = _open(model, items, id_column, image_size, embed, text)
    positions, labels = read_labels(truth, data, column=column)
    outcome = evaluate_predictions(
        classifier.predict_proba(data.items[positions]), classifier.classes_, labels
    )
    rows = [("accuracy", f"{outcome.accuracy:.2%} of {outcome.items:,} items, best matching")]
    if outcome.named_accuracy is not None:
        rows.append(("as named", f"{outcome.named_accuracy:.2%} of the names are right"))
    shown = [facts(None, rows)]
    if len(outcome.classes) <= MAX_SHOWN_CLASSES:
        shown.append(_confusion_table(outcome))
    emit(json, outcome.to_dict(), *shown)


def suspects(
    model: Model,
    items: Annotated[
        Path | None,
        typer.Argument(
            metavar="ITEMS", help="Other items than those of a run.", show_default=False
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Argument(metavar="PAIRS", help="Judgements about them.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, worst first.")] = SHOWN,
    out: OutCsv = None,
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
    json: Json = False,
) -> None:
    """List the judgements that are most probably wrong, worst first; of a run, its own."""
    from likewise.active.suspects import suspects as find
    from likewise.io.spreadsheets import write_csv
    from likewise.pairs import Pairs

    if items is None or pairs is None:
        classifier, data, given = _reopened(model)
    else:
        classifier, data = _open(model, items, id_column, image_size, embed, text)
        columns = columns_of(left, right, same, annotator, format, threshold)
        given = Pairs.read(pairs, item_ids=data.ids, n_items=len(data), may_lack=True, **columns)
    found = find(classifier, data.items, given, limit=limit).to_dict()
    found["left"] = [str(data.names[k]) for k in found["left"]]
    found["right"] = [str(data.names[k]) for k in found["right"]]
    found["same"] = ["same" if answer else "different" for answer in found["same"]]
    found["probability_wrong"] = [round(p, 4) for p in found["probability_wrong"]]
    if out is not None:
        write_csv(out, found)
    result = {"judgements": len(given), "out": None if out is None else str(out)}
    _emit_columns(json, result, "suspects", found, out)


def name(
    model: Model,
    labels: Annotated[
        Path,
        typer.Argument(help="A few items' classes: CSV (item, label).", show_default=False),
    ],
    items: Annotated[
        Path | None, typer.Option(help="The items; for a run, those it was fitted to are known.")
    ] = None,
    column: LabelColumn = None,
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    embed: Embed = None,
    text: TextColumn = None,
    json: Json = False,
) -> None:
    """Give the learned classes names, after a few items whose class is known."""
    from likewise.io.places import why_not
    from likewise.runs.naming import name_saved

    if model.is_dir() and (why := why_not(model)):
        raise InputError(
            f"{model} cannot be written to ({why}), which is where names are kept; copy it to "
            "another place first."
        )
    data = None
    if items is not None:
        _, data = _open(model, items, id_column, image_size, embed, text)
    named = name_saved(model, labels, data, column=column)
    rows = [(k, label, count) for k, (label, count) in enumerate(zip(named.names, named.items))]
    result = {"classes": named.names, "items": named.items, "agreement": named.agreement}
    emit(json, result, table(None, ["class", "name", "items behind it"], rows))


def suggest(
    model: Model,
    items: Items,
    pairs: Judgements,
    count: Annotated[int, typer.Option(min=1, help="How many pairs.")] = SHOWN,
    out: OutCsv = None,
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
    json: Json = False,
) -> None:
    """Say which pairs to ask about next: those whose answers would tell most."""
    from likewise.active.suggestion import suggest as choose
    from likewise.io.spreadsheets import write_csv
    from likewise.pairs import Pairs

    classifier, data = _open(model, items, id_column, image_size, embed, text)
    columns = columns_of(left, right, same, annotator, format, threshold)
    given = Pairs.read(pairs, item_ids=data.ids, n_items=len(data), may_lack=True, **columns)
    chosen = choose(classifier, data.items, given, count)
    names = data.names
    told = {
        "left": [str(names[i]) for i, _ in chosen],
        "right": [str(names[j]) for _, j in chosen],
    }
    if out is not None:
        write_csv(out, told)
    _emit_columns(json, {"out": None if out is None else str(out)}, "pairs", told, out)


def _open(
    model: Path,
    items: Path,
    id_column: str | None,
    image_size: int | None,
    embed: str | None,
    text: str | None,
) -> tuple[SimilarityClassifier, ItemFile]:
    """The classifier and the items to ask it about, encoded as those of its fit were."""
    from likewise.io.progress import stage
    from likewise.training.progress import progress_shown

    with progress_shown(True):
        with stage(None, 0.1):
            from likewise.runs.model_items import open_with_items
        return open_with_items(
            model, items, id_column=id_column, image_size=image_size, embed=embed, text=text
        )


def _reopened(model: Path) -> tuple[SimilarityClassifier, ItemFile, Pairs]:
    """A run's classifier, and the items and judgements that it was fitted to."""
    from likewise.classifier import load
    from likewise.runs import Run
    from likewise.runs.inputs import reopen

    run = Run.open(model)
    data, given = reopen(run)
    return load(run.model), data, given


def _emit_columns(
    as_json: bool, result: Record, key: str, columns: Record, out: Path | None
) -> None:
    """Rows as JSON, or as a table of the first of them; only where they are if in a file."""
    total = len(next(iter(columns.values())))
    if out is not None:
        shown = facts(None, [(key, f"{total:,}, in {out}")])
        emit(as_json, {**result, key: total}, shown)
        return
    rows = list(zip(*columns.values(), strict=True))
    more = f"the first {SHOWN} of {total:,}" if total > SHOWN else None
    as_rows = [dict(zip(columns, row)) for row in rows] if as_json else []
    emit(as_json, {**result, key: as_rows}, table(more, list(columns), rows[:SHOWN]))


def _confusion_table(outcome: Any) -> Any:
    rows = [
        (label, *counts) for label, counts in zip(outcome.classes, outcome.confusion, strict=True)
    ]
    return table("true class (row) against predicted", ["", *outcome.matched], rows)
