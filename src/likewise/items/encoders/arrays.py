"""Arrays of fitted encoders as safetensors: finite numbers, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from likewise.errors import InputError
from likewise.io.npy import Array


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name."""
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file that `write_arrays` wrote."""
    try:
        found: dict[str, Array] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path} is not a safetensors file, or is cut short.") from error
    for name, array in found.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise InputError(f"{path} holds numbers that are not finite ({name}).")
    return found
