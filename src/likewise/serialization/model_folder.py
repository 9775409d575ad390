"""Model folders: ``model.json`` beside files of tensors.

``model.json`` says what the model is (kind, version, network, classes, what the fit has learned);
``weights.safetensors`` holds its tensors, ``fitted.safetensors`` what was learned of each fitted
item, where there is such. All are data: loading runs nothing from the folder. The SHA-256 of both
files of tensors stand in ``model.json``, so that a flipped bit is found before it predicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from likewise._version import __version__
from likewise.errors import InputError
from likewise.io.atomic import new_folder, write_json
from likewise.io.json import JsonObject, plain_object
from likewise.items.schema import ItemSchema
from likewise.methods.result import FitResult
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import MLP, NETWORKS, UnitLinear, build_network
from likewise.serialization import tensors
from likewise.serialization.description import (
    DESCRIPTION,
    KIND,
    VERSION,
    Description,
    n_channels,
    network_shape,
    read_description,
)

MAX_LAYERS = 100


@dataclass(frozen=True)
class SavedModel:
    """What a model folder holds."""

    result: FitResult
    """What the fit has learned, the network among it."""
    network: str | None
    """The network's name; None for a module of the user's."""
    item_shape: tuple[int, ...]
    """The shape of one item: (d,), (H, W) or (H, W, channels)."""
    classes: NDArray[np.generic]
    """(C,) the classes' numbers, or their names."""
    items: ItemSchema | None = None
    """What the items were like; None in models of 0.1, which did not keep it."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """The estimator's parameters, as JSON knows them."""


def write_model(folder: Path, saved: SavedModel) -> None:
    """Write a model into a folder that must not hold anything yet."""
    with new_folder(folder) as temporary:
        digests = tensors.write_tensors(temporary, saved.result.model, saved.result.arrays())
        write_json(temporary / DESCRIPTION, _described(saved, digests))


def read_model(folder: Path, network: nn.Module | None = None) -> SavedModel:
    """The model in a folder. One with a network of the user's needs that module again."""
    about = read_description(folder)
    model = _blank_model(about, network)
    try:
        arrays = tensors.read_arrays(folder, len(about.classes))
        result = FitResult.from_dict(about.learned, model, arrays)
    except InputError as error:
        raise InputError(f"{about.path} describes no fit of ours: {error}") from error
    if result.transition is not None and len(result.transition) != len(about.classes):
        raise InputError(
            f"{about.path}: the transition matrix is for {len(result.transition)} classes, but "
            f"there are {len(about.classes)}."
        )
    tensors.load_weights(model, folder / tensors.WEIGHTS)
    tensors.check_digests(folder, about.sha256)
    model.eval().requires_grad_(False)
    name = about.network.get("name")
    return SavedModel(
        result,
        network=name if isinstance(name, str) else None,
        item_shape=about.item_shape,
        classes=np.array(about.classes),
        items=about.items,
        parameters=about.parameters,
    )


def _described(saved: SavedModel, digests: dict[str, str]) -> JsonObject:
    model = saved.result.model
    assert isinstance(model, Model)
    return plain_object(
        {
            "kind": KIND,
            "version": VERSION,
            "likewise": __version__,
            "sha256": digests,
            "network": _network_note(saved.network, model.network),
            "network_shape": network_shape(saved.item_shape),
            "item_shape": saved.item_shape,
            "inputs": {
                "images": model.inputs.images,
                "size": len(model.inputs.mean),
                "flip_tta": model.flip_tta,
            },
            "items": None if saved.items is None else saved.items.to_dict(),
            "classes": saved.classes,
            "parameters": dict(saved.parameters),
            **saved.result.to_dict(),
        }
    )


def _network_note(name: str | None, network: nn.Module) -> dict[str, object]:
    if isinstance(network, MLP):  # by its sizes, so that any of ours can be built again
        linear = [layer for layer in network if isinstance(layer, nn.Linear)]
        return {"name": "mlp", "hidden": [layer.out_features for layer in linear[:-1]]}
    return {"name": "unit_linear" if isinstance(network, UnitLinear) else name}


def _blank_model(about: Description, given: nn.Module | None) -> Model:
    """The model that a description speaks of, without weights, and without memory for them."""
    size = n_channels(about.item_shape)
    images = len(about.item_shape) > 1
    try:
        with torch.device("meta"):
            inputs = InputLayer(torch.zeros(size), torch.ones(size), images)
            return Model(inputs, _network(about, given), about.flip_tta)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise InputError(f"{about.path} describes a network that cannot be built.") from error


def _network(about: Description, given: nn.Module | None) -> nn.Module:
    shape, n_classes = network_shape(about.item_shape), len(about.classes)
    if given is not None:
        return build_network(given, shape, n_classes)
    name, hidden = about.network.get("name"), about.network.get("hidden")
    if name is None:
        raise InputError(
            "this model has a network of your own; load it with lw.load(folder, network=module)."
        )
    if not isinstance(name, str) or name not in NETWORKS:
        raise InputError(f"this model has a network {name!r}, which this Likewise does not know.")
    if name == "mlp" and isinstance(hidden, list):
        sizes = tuple(size for size in hidden if type(size) is int and 0 < size < 2**20)
        if len(hidden) > MAX_LAYERS or len(sizes) < len(hidden):
            raise InputError("this model gives impossible sizes of its hidden layers.")
        return MLP(int(np.prod(shape)), n_classes, sizes)
    return build_network(name, shape, n_classes)
