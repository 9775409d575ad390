"""JSON: what it knows, everything else as that, and files of it read with bounded trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

import numpy as np

from likewise.errors import InputError

MAX_JSON = 256 * 2**20

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


def plain(value: object) -> Json:
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
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def plain_object(value: dict[str, object]) -> JsonObject:
    """A dictionary as a JSON object."""
    found = plain(value)
    assert isinstance(found, dict)
    return found


def read_json_object(path: Path, limit: int = MAX_JSON) -> JsonObject:
    """A JSON object of bounded size, or an `InputError` that says what is wrong with the file."""
    if path.stat().st_size > limit:
        raise InputError(f"{path} is larger than anything that Likewise writes there.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON, or is cut short.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is not what Likewise writes there: it holds no JSON object.")
    return found
