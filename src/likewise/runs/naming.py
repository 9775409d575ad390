"""Names for the classes of a saved model, from a few items whose class is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.classifier import load
from likewise.errors import InputError
from likewise.io.atomic import write_jsons
from likewise.io.npy import Array
from likewise.items.files import ItemFile
from likewise.items.labels import read_labels
from likewise.metrics import names_by_majority
from likewise.runs.files import read_json
from likewise.runs.run import Run, model_folder
from likewise.serialization.description import read_description, with_class_names


@dataclass(frozen=True)
class Named:
    """``names`` (C,), how many labelled ``items`` stand behind each, and their agreement."""

    names: list[str]  # (C,) of the classes
    items: list[int]  # (C,) labelled items behind each
    agreement: float  # share of labelled items whose class has their name


def name_saved(
    model: str | Path, labels: str | Path, data: ItemFile | None = None, column: str | None = None
) -> Named:
    """Name the classes of a saved model (a model folder or a run folder), in place.

    ``labels`` names items of ``data``; without it, items that the run was fitted to. Whatever
    asks the model from then on is answered with names.
    """
    folder = model_folder(model)
    n_classes = len(read_description(folder).classes)
    predicted, given = _labelled(Path(model), folder, labels, data, column)
    if len(given) == 0:
        raise InputError(f"{Path(labels).name} gives no item a class.")
    classes, counts = names_by_majority(predicted, given, n_classes)
    names = [str(name) for name in classes]
    known = np.unique(given)
    behind = [int(counts[k, known == name].sum()) for k, name in enumerate(names)]
    changed: dict[Path, object] = {**with_class_names(folder, names)}
    metrics = Path(model) / "metrics.json"
    if metrics.is_file():
        changed[metrics] = {**read_json(metrics), "class_names": names}
    write_jsons(changed)
    return Named(names, behind, sum(behind) / len(given))


def _labelled(
    model: Path, folder: Path, labels: str | Path, data: ItemFile | None, column: str | None
) -> tuple[Array, NDArray[np.str_]]:
    """The predicted class (a number) and the given one of each labelled item."""
    if data is not None:
        positions, given = read_labels(labels, data, column=column)
        classifier = load(folder)
        items = classifier.check_items(data.items, data.columns)
        posterior = classifier.predict_proba(items[positions])
        return posterior.argmax(axis=1), given
    if model == folder:
        raise InputError(
            f"{model} is a model folder, which knows no items; give them with --items."
        )
    run = Run.open(model)
    if run.is_private:
        raise InputError(
            f"{model} was fitted with --private and does not know which item is which; give the "
            "items with --items."
        )
    positions, given = read_labels(labels, ItemFile(run.posterior, run.ids), column=column)
    return run.posterior[positions].argmax(axis=1), given
