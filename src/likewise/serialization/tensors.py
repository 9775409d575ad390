"""The files of tensors in a model folder: checked by shape, by type and by their SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from torch import nn

from likewise.errors import InputError
from likewise.io.json import JsonObject
from likewise.methods.result import Arrays, names_kept

WEIGHTS, FITTED = "weights.safetensors", "fitted.safetensors"
MAX_FITTED = 256 * 2**20  # bytes kept of what was learned of each fitted item


def write_tensors(folder: Path, model: nn.Module, arrays: Arrays) -> dict[str, str]:
    """Write a model's weights, and arrays where there are any; returns the files' SHA-256."""
    state = model.state_dict()
    save_file(
        {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()},
        folder / WEIGHTS,
    )
    if kept := _worth_keeping(arrays):
        save_arrays(kept, folder / FITTED)
    there = [name for name in (WEIGHTS, FITTED) if (folder / name).exists()]
    return {name: sha256_of(folder / name) for name in there}


def load_weights(model: nn.Module, path: Path) -> None:
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


def check_digests(folder: Path, sha256: JsonObject | None) -> None:
    """Refuse files that are not those whose digests were saved; None: no digest was."""
    if sha256 is None:
        return
    for name in (WEIGHTS, FITTED):
        path = folder / name
        there = sha256_of(path) if path.is_file() else None
        if sha256.get(name) != there:
            raise InputError(
                f"{path} is not the file that was saved with model.json: it was damaged or "
                "changed (its SHA-256 is another); copy the model folder again."
            )


def _worth_keeping(arrays: Arrays) -> Arrays:
    """The smallest first, as far as they fit: the classes of items matter more than chances."""
    kept: Arrays = {}
    for name, array in sorted(arrays.items(), key=lambda pair: pair[1].nbytes):
        if sum(other.nbytes for other in kept.values()) + array.nbytes <= MAX_FITTED:
            kept[name] = np.ascontiguousarray(array)
    return kept


def read_arrays(folder: Path, n_classes: int) -> Arrays:
    """What was learned of each fitted item, by field of a `FitResult`."""
    path = folder / FITTED
    if not path.is_file():
        return {}
    try:
        arrays: Arrays = load_arrays(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path.name} is not a safetensors file, or is cut short.") from error
    posterior, labels = arrays.get("posterior"), arrays.get("labels")
    if unknown := set(arrays) - set(names_kept("array")):
        raise InputError(f"{path.name} holds {sorted(unknown)[0]!r}, which no fit has.")
    if posterior is not None and posterior.shape[1:] != (n_classes,):
        raise InputError(f"{path.name} holds a posterior of shape {posterior.shape}.")
    if labels is not None and (
        labels.ndim != 1 or labels.dtype.kind != "i" or int(labels.max(initial=0)) >= n_classes
    ):
        raise InputError(f"{path.name} holds labels that are no classes.")
    return arrays


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
