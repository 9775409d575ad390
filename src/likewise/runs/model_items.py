"""The items that a person asks a saved model about, read and encoded as those of its fit were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from likewise.classifier import SimilarityClassifier, load
from likewise.errors import InputError
from likewise.items.encoders.reading import read_like
from likewise.items.encoders.stored import FOLDER
from likewise.items.files import ItemFile, read_items
from likewise.runs.run import model_folder


def open_with_items(
    model: str | Path,
    items: str | Path,
    *,
    id_column: str | None = None,
    image_size: int | None = None,
    embed: str | None = None,
    text: str | None = None,
) -> tuple[SimilarityClassifier, ItemFile]:
    """A saved classifier (a run folder or a model folder) and the items to ask it about.

    Photographs and texts go through the encoder of its fit; ``embed`` says where that is, if it is
    not to be found. Pixels come in the size that the model was fitted to.
    """
    folder, path = model_folder(model), Path(items)
    encoder = folder / FOLDER
    data = None
    if encoder.is_dir():
        data = read_like(encoder, path, given=embed, text=text, id_column=id_column)
    elif embed is not None or text is not None:
        given = "--embed" if embed is not None else "--text"
        raise InputError(
            f"{model} was fitted to numbers or pixels, not to encoded items: no {given}."
        )
    classifier = load(folder)
    if data is None:
        data = _numbers(classifier, path, id_column, image_size)
    return classifier, replace(data, items=classifier.check_items(data.items, data.columns))


def _numbers(
    classifier: SimilarityClassifier, path: Path, id_column: str | None, image_size: int | None
) -> ItemFile:
    shape, schema = classifier.item_shape_, classifier.item_schema_
    if image_size is None and path.is_dir() and len(shape) > 1 and shape[0] == shape[1]:
        image_size = shape[0]
    known = None if schema is None else schema.columns
    return read_items(path, id_column=id_column, size=image_size, known=known)
