"""Saved classifiers: a folder of safetensors and JSON, never a pickle.

``model.json`` says what the model is (kind, version, network, classes, noise found);
``weights.safetensors`` holds its tensors. Both are data: loading runs nothing from the folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from likewise.errors import InputError
from likewise.io.atomic import new_folder, write_json
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import MLP, NETWORKS, UnitLinear, build_network
from likewise.noise import check_transition

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier

KIND = "likewise-classifier"
VERSION = 1
MAX_JSON = 256 * 2**20
MAX_CLASSES = 1_000_000
MAX_LAYERS = 100


def save_classifier(classifier: SimilarityClassifier, folder: Path) -> None:
    """Write a fitted classifier into a folder that must not hold anything yet."""
    model = classifier.model_
    state = {k: v.detach().cpu().contiguous().clone() for k, v in model.state_dict().items()}
    with new_folder(folder) as temporary:
        write_json(temporary / "model.json", _description(classifier, model))
        save_file(state, temporary / "weights.safetensors")


def load(folder: str | Path, network: nn.Module | None = None) -> SimilarityClassifier:
    """Read a saved classifier. One with a network of the user's needs that module again."""
    from likewise.classifier import SimilarityClassifier

    path = Path(folder)
    about = read_description(path)
    model = _blank_model(about, network)
    _load_weights(model, path / "weights.safetensors")
    parameters = {k: v for k, v in about["parameters"].items() if k != "network"}
    classifier = SimilarityClassifier(network=network or _named(about), **parameters)
    classifier.model_ = model.eval().requires_grad_(False)
    classifier.network_ = about["network"].get("name")
    classifier.classes_ = np.array(about["classes"])
    classifier.item_shape_ = tuple(int(size) for size in about["item_shape"])
    classifier.n_features_in_ = int(np.prod(classifier.item_shape_))
    classifier.transition_ = None if about["transition"] is None else np.array(about["transition"])
    classifier.channel_ = _channel(about["channel"])
    classifier.annotators_ = about["annotators"]
    classifier.history_ = about["history"]
    classifier.method_ = about["method"]
    classifier.choice_ = about["choice"]
    classifier.best_epoch_ = int(about["best_epoch"])
    classifier.score_ = about["score"]
    classifier.class_evidence_ = about["class_evidence"]
    classifier.warnings_ = about["warnings"]
    return classifier


def read_description(folder: Path) -> dict[str, Any]:
    """``model.json``, checked: of our kind, of a version we know, whole."""
    path = folder / "model.json"
    if not folder.is_dir():
        raise InputError(f"there is no model folder {folder}.")
    if not path.is_file():
        raise InputError(f"{folder} is not a saved Likewise model: it has no model.json.")
    if path.stat().st_size > MAX_JSON:
        raise InputError(f"{path} is larger than any model description that Likewise writes.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON, so this is no saved Likewise model.") from error
    if not isinstance(about, dict) or about.get("kind") != KIND:
        raise InputError(f"{path} describes no Likewise classifier (its kind is not {KIND!r}).")
    if not isinstance(about.get("version"), int) or about["version"] > VERSION:
        raise InputError(
            f"{folder} was written by a newer Likewise (format {about.get('version')}, this one "
            f"reads up to {VERSION}); upgrade likewise."
        )
    _check_fields(about, path)
    return about


_FIELDS: dict[str, type | tuple[type, ...]] = {
    "network": dict,
    "network_shape": list,
    "item_shape": list,
    "inputs": dict,
    "classes": list,
    "parameters": dict,
    "transition": (list, type(None)),
    "channel": (dict, type(None)),
    "annotators": (dict, type(None)),
    "history": list,
    "method": str,
    "choice": str,
    "best_epoch": int,
    "score": (float, int, type(None)),
    "class_evidence": (dict, type(None)),
    "warnings": list,
}


def _check_fields(about: dict[str, Any], path: Path) -> None:
    from likewise.classifier import SimilarityClassifier

    for name, kind in _FIELDS.items():
        if name not in about:
            raise InputError(f"{path} lacks the field {name!r}; the model was not saved whole.")
        if not isinstance(about[name], kind):
            raise InputError(f"{path} has a field {name!r} of the wrong type.")
    classes = about["classes"]
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise InputError(f"{path} names {len(classes)} classes, which cannot be.")
    if not all(isinstance(name, str | int | float) for name in classes):
        raise InputError(f"{path} gives a class a name that is neither text nor number.")
    _check_shapes(about, path)
    if about["transition"] is not None:
        check_transition(about["transition"], len(classes))
    known = SimilarityClassifier().get_params(deep=False)
    if unknown := sorted(set(about["parameters"]) - set(known)):
        raise InputError(f"{path} gives a parameter {unknown[0]!r} that no classifier has.")


def _check_shapes(about: dict[str, Any], path: Path) -> None:
    shape = about["item_shape"]
    if not 1 <= len(shape) <= 3 or not all(_is_size(size, 2**24) for size in shape):
        raise InputError(f"{path} gives an impossible shape of items.")
    if about["network_shape"] != list(_network_shape(shape)):
        raise InputError(f"{path} gives its network another shape than its items.")
    size = 1 if len(shape) == 2 else shape[-1]
    if about["inputs"].get("size") != size or about["inputs"].get("images") is not (len(shape) > 1):
        raise InputError(f"{path} describes an input layer that does not fit its items.")


def _network_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """What a network sees of an item of that shape; see `likewise.items.network_shape`."""
    if len(shape) == 1:
        return tuple(shape)
    return (shape[2] if len(shape) == 3 else 1, shape[0], shape[1])


def _is_size(value: Any, limit: int) -> bool:
    return type(value) is int and 0 < value < limit


def _description(classifier: SimilarityClassifier, model: nn.Module) -> dict[str, Any]:
    inputs, network = model.inputs, model.network
    assert isinstance(inputs, InputLayer)
    assert isinstance(network, nn.Module)
    parameters = classifier.get_params(deep=False)
    if isinstance(parameters["network"], nn.Module):
        parameters["network"] = None
    if hasattr(parameters["recipe"], "to_dict"):
        parameters["recipe"] = parameters["recipe"].to_dict()
    channel = classifier.channel_
    shape = classifier.item_shape_
    description: dict[str, Any] = plain(
        {
            "kind": KIND,
            "version": VERSION,
            "network": _network_description(classifier.network_, network),
            "network_shape": _network_shape(shape),
            "item_shape": shape,
            "inputs": {
                "images": inputs.images,
                "size": len(inputs.mean),
                "mirror": bool(getattr(model, "mirror", False)),
            },
            "classes": classifier.classes_,
            "parameters": parameters,
            "transition": classifier.transition_,
            "channel": channel.to_dict() if hasattr(channel, "to_dict") else None,
            "annotators": classifier.annotators_,
            "history": classifier.history_,
            "method": classifier.method_,
            "choice": classifier.choice_,
            "best_epoch": classifier.best_epoch_,
            "score": classifier.score_,
            "class_evidence": classifier.class_evidence_,
            "warnings": classifier.warnings_,
        }
    )
    return description


def _network_description(name: str | None, network: nn.Module) -> dict[str, Any]:
    if isinstance(network, MLP):  # by its sizes, so that any of ours can be built again
        linear = [layer for layer in network if isinstance(layer, nn.Linear)]
        return {"name": "mlp", "hidden": [layer.out_features for layer in linear[:-1]]}
    return {"name": "unit_linear" if isinstance(network, UnitLinear) else name}


def _blank_model(about: dict[str, Any], given: nn.Module | None) -> Model:
    """The model that a description speaks of, without weights, and without memory for them."""
    shape = tuple(about["network_shape"])
    inputs = about["inputs"]
    try:
        with torch.device("meta"):
            blank = InputLayer(
                torch.zeros(inputs["size"]), torch.ones(inputs["size"]), bool(inputs.get("images"))
            )
            network = _network(about["network"], given, shape, len(about["classes"]))
    except (RuntimeError, TypeError, OverflowError) as error:
        raise InputError("this model describes a network that cannot be built.") from error
    return Model(blank, network, bool(inputs.get("mirror")))


def _network(
    about: dict[str, Any], given: nn.Module | None, shape: tuple[int, ...], n_classes: int
) -> nn.Module:
    if given is not None:
        return build_network(given, shape, n_classes)
    name = about.get("name")
    if name is None:
        raise InputError(
            "this model has a network of your own; load it with lw.load(folder, network=module)."
        )
    if not isinstance(name, str) or name not in NETWORKS:
        raise InputError(f"this model has a network {name!r}, which this Likewise does not know.")
    hidden = about.get("hidden")
    if name == "mlp" and isinstance(hidden, list):
        if len(hidden) > MAX_LAYERS or not all(_is_size(size, 2**20) for size in hidden):
            raise InputError("this model gives impossible sizes of its hidden layers.")
        return MLP(int(np.prod(shape)), n_classes, tuple(hidden))
    return build_network(name, shape, n_classes)


def _load_weights(model: nn.Module, path: Path) -> None:
    """Put stored weights in place of blank ones, once names, shapes and types are known to fit."""
    if not path.is_file():
        raise InputError(f"{path.parent} is not a whole model: it has no {path.name}.")
    expected = model.state_dict()
    try:
        with safe_open(path, framework="pt") as file:
            names = set(file.keys())
            wrong = [
                name
                for name, tensor in expected.items()
                if name not in names or file.get_slice(name).get_shape() != list(tensor.shape)
            ]
            if wrong or len(names) != len(expected):
                raise InputError(
                    f"{path} does not fit the network that model.json describes"
                    + (f" ({wrong[0]})." if wrong else ".")
                )
            state = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a safetensors file, or is cut short.") from error
    for name, tensor in state.items():
        if tensor.dtype != expected[name].dtype or not tensor.isfinite().all():
            raise InputError(f"{path} holds weights that are no finite numbers ({name}).")
    model.load_state_dict(state, assign=True)


def _named(about: dict[str, Any]) -> str | None:
    name = about["network"].get("name")
    return name if isinstance(name, str) else None


def _channel(about: dict[str, Any] | None) -> Any:
    if about is None:
        return None
    from likewise.noise.channels import channel_from_dict

    return channel_from_dict(about)


def plain(value: Any) -> Any:
    """Arrays, tuples and NumPy numbers as what JSON knows; non-finite numbers as None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
