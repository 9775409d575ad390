"""``model.json``: what a saved model is, read with bounded trust, also as Likewise 0.1 wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from likewise.errors import InputError
from likewise.io.json import Json, JsonObject, read_json_object
from likewise.items.schema import ItemSchema
from likewise.methods.result import names_kept

KIND = "likewise-classifier"
VERSION = 2
DESCRIPTION = "model.json"
MAX_CLASSES = 1_000_000

# Version 1 is that of Likewise 0.1. What its fields are called since.
INPUTS_OF_VERSION_1 = {"mirror": "flip_tta"}
RECIPE_OF_VERSION_1 = {
    "averaging": "ema_decay",
    "forerunners": "teachers",
    "revivals": "split_merged_at",
    "teacher_from": "mean_teacher_from",
    "teacher_temperature": "mean_teacher_temperature",
}
# Every model has these; fields that came later take their default where a file lacks them.
LEARNED_SINCE_VERSION_1 = (
    *("method", "transition", "history", "best_epoch", "score", "choice", "channel", "annotators"),
    *("class_evidence", "warnings"),
)

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Description:
    """``model.json``, checked: of our kind, of a version we know, whole."""

    path: Path
    """The file itself, for messages."""
    network: JsonObject
    """``name`` (None: a module of the user's) and, for an MLP, its ``hidden`` sizes."""
    item_shape: tuple[int, ...]
    """The shape of one item."""
    items: ItemSchema | None
    """What the items of the fit were like; None where it was not kept."""
    flip_tta: bool
    """Whether predictions are the mean over an image and its mirror image."""
    classes: list[str | int | float]
    """(C,) numbers or names."""
    parameters: JsonObject
    """The estimator's parameters."""
    learned: JsonObject
    """The fields of a `FitResult` that JSON holds."""
    sha256: JsonObject | None
    """Digests of the files beside it; None in version 1, which had none."""


def read_description(folder: Path) -> Description:
    """``model.json`` of a folder, or an `InputError` that says why it is none."""
    path = folder / DESCRIPTION
    if not folder.is_dir():
        raise InputError(f"there is no model folder {folder}.")
    if not path.is_file():
        raise InputError(f"{folder} is not a saved Likewise model: it has no {DESCRIPTION}.")
    about = read_json_object(path)
    if about.get("kind") != KIND:
        raise InputError(f"{path} describes no Likewise classifier (its kind is not {KIND!r}).")
    version = about.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise InputError(
            f"{folder} was written by a newer Likewise (format {version}, this one "
            f"reads up to {VERSION}); upgrade likewise."
        )
    if version == 1:
        about = _from_version_1(about)
    return _checked(about, path)


def with_class_names(folder: Path, names: list[str]) -> dict[Path, JsonObject]:
    """``model.json`` of a folder with its classes called otherwise, and nothing else changed."""
    read_description(folder)
    path = folder / DESCRIPTION
    return {path: {**read_json_object(path), "classes": list(names)}}


def _from_version_1(about: JsonObject) -> JsonObject:
    """What Likewise 0.1 wrote, in the words of today."""
    renamed = dict(about)
    if isinstance(inputs := about.get("inputs"), dict):
        renamed["inputs"] = {INPUTS_OF_VERSION_1.get(k, k): v for k, v in inputs.items()}
    parameters = about.get("parameters")
    if isinstance(parameters, dict) and isinstance(parameters.get("recipe"), dict):
        renamed["parameters"] = parameters | {"recipe": _recipe(parameters["recipe"])}
    return renamed


def _recipe(changes: Json) -> Json:
    """A recipe, and the changes for high noise inside it, with the fields' names of today."""
    if not isinstance(changes, dict):
        return changes
    return {
        RECIPE_OF_VERSION_1.get(name, name): _recipe(value) if name == "high_noise" else value
        for name, value in changes.items()
    }


def _checked(about: JsonObject, path: Path) -> Description:
    def get(name: str, kind: type[Kind]) -> Kind:
        if name not in about:
            raise InputError(f"{path} lacks the field {name!r}; the model was not saved whole.")
        value = about[name]
        if not isinstance(value, kind):
            raise InputError(f"{path} has a field {name!r} of the wrong type.")
        return value

    names = get("classes", list)
    if not 2 <= len(names) <= MAX_CLASSES:
        raise InputError(f"{path} names {len(names)} classes, which cannot be.")
    classes = [name for name in names if isinstance(name, str | int | float)]
    if len(classes) < len(names):
        raise InputError(f"{path} gives a class a name that is neither text nor number.")
    for name in LEARNED_SINCE_VERSION_1:
        get(name, object)
    inputs, shape = get("inputs", dict), _item_shape(get("item_shape", list), path)
    if get("network_shape", list) != list(network_shape(shape)):
        raise InputError(f"{path} gives its network another shape than its items.")
    if inputs.get("size") != n_channels(shape) or inputs.get("images") is not (len(shape) > 1):
        raise InputError(f"{path} describes an input layer that does not fit its items.")
    return Description(
        path,
        network=get("network", dict),
        item_shape=shape,
        items=_items(about.get("items"), shape, path),
        flip_tta=bool(inputs.get("flip_tta")),
        classes=classes,
        parameters=get("parameters", dict),
        learned={name: about[name] for name in names_kept("json") if name in about},
        sha256=get("sha256", dict) if about["version"] != 1 else None,
    )


def _items(found: Json, shape: tuple[int, ...], path: Path) -> ItemSchema | None:
    if found is None:
        return None
    try:
        schema = ItemSchema.from_dict(found if isinstance(found, dict) else {})
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if schema.columns is not None and shape != (len(schema.columns),):
        raise InputError(f"{path} names {len(schema.columns)} columns of its items, not {shape}.")
    return schema


def _item_shape(shape: list[Json], path: Path) -> tuple[int, ...]:
    sizes = tuple(size for size in shape if type(size) is int and 0 < size < 2**24)
    if not 1 <= len(shape) <= 3 or len(sizes) < len(shape):
        raise InputError(f"{path} gives an impossible shape of items.")
    return sizes


def network_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """What a network sees of an item of that shape; see `likewise.items.network_shape`."""
    return shape if len(shape) == 1 else (n_channels(shape), shape[0], shape[1])


def n_channels(shape: tuple[int, ...]) -> int:
    return 1 if len(shape) == 2 else shape[-1]
