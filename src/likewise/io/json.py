"""The one reader of JSON files, within bounds, and the one way of making values fit for JSON."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from likewise.errors import InputError
from likewise.io.regular import open_regular

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
# The same where each value is looked at by who uses it, as a file of ours promises it.
Record: TypeAlias = "dict[str, Any]"

MAX_BYTES = 256 * 2**20
MAX_DEPTH = 60  # whatever walks through a value by calling itself must come back
_MAX_BITS = 1023  # whole numbers beyond have no floating-point neighbour


def read_json(
    path: Path,
    *,
    max_bytes: int = MAX_BYTES,
    hint: str = "",
    foreign: bool = False,
    lines: bool = False,
) -> Json:
    """The value in a JSON file, or an `InputError` that says what is wrong with the file.

    ``hint`` is what to do about a damaged file. In a ``foreign`` file, which other programs wrote,
    NaN and infinity (no JSON, but Python writes them) are read as null; in ours they are damage.
    With ``lines`` the file may also be JSON Lines: an object a line, read as a list of them.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise InputError(
                f"{path} has {size / 2**20:,.0f} MiB, more than the {max_bytes / 2**20:,.0f} MiB "
                f"of JSON that are read{f'; {hint}' if hint else ''}."
            )
        content = file.read(max_bytes)  # not what is written to it meanwhile
    if lines and _is_lines(path, content):
        return [
            parse_json(line, f"{path}, line {k}", hint=hint, foreign=foreign)
            for k, line in enumerate(content.splitlines(), 1)
            if line.strip()
        ]
    return parse_json(content, str(path), hint=hint, foreign=foreign)


def _is_lines(path: Path, content: bytes) -> bool:
    """Whether a file is JSON Lines: by its name, or because an object ends where a line does."""
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    first, _, rest = content.strip().partition(b"\n")
    first = first.strip()
    return bool(rest) and first.startswith(b"{") and first.endswith(b"}")


def read_json_object(path: Path, *, hint: str = "") -> JsonObject:
    """The object in a JSON file of ours; what its fields hold is for the caller to check."""
    return _as_object(read_json(path, hint=hint), str(path))


def parse_json_object(content: bytes | str, source: str) -> JsonObject:
    """The object of a JSON text of ours; ``source`` names it in a message."""
    return _as_object(parse_json(content, source), source)


def _as_object(found: Json, source: str) -> JsonObject:
    if not isinstance(found, dict):
        raise InputError(f"{source} is not what Likewise writes there: it holds no JSON object.")
    return found


def parse_json(content: bytes | str, source: str, *, hint: str = "", foreign: bool = False) -> Json:
    """The value of a JSON text; ``source`` names it in a message."""
    remedy = f"; {hint}" if hint else ""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        found = json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_constant=_null if foreign else _refuse_constant,
        )
        return _checked(found, foreign)
    except RecursionError:
        raise InputError(f"{source} is nested deeper than {MAX_DEPTH} levels{remedy}.") from None
    except _Unfit as problem:
        raise InputError(f"{source} {problem}{remedy}.") from None
    except ValueError as error:  # a number of 5,000 digits is one too
        reason = str(error).partition(": line")[0]
        raise InputError(
            f"{source} is not valid JSON, or is cut short: {reason}{remedy}."
        ) from error


def plain(value: object) -> Json:
    """Arrays, tuples, NumPy's numbers and paths as what JSON knows; non-finite numbers as null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers, tensors
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):  # half a character, as in some file names, is none to a reader
        return value.encode(errors="replace").decode()
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, os.PathLike):
        return plain(str(value))
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def plain_object(value: dict[str, object]) -> JsonObject:
    """A dictionary as a JSON object."""
    found = plain(value)
    assert isinstance(found, dict)
    return found


class _Unfit(Exception):
    """The text is JSON, but holds what nobody can do anything with."""


def _without_repeats(fields: list[tuple[str, Json]]) -> JsonObject:
    found = dict(fields)
    if len(found) < len(fields):
        seen: set[str] = set()
        for name, _ in fields:
            if name in seen:
                raise _Unfit(f"has the field {name[:80]!r} twice in one object")
            seen.add(name)
    return found


def _null(_: str) -> None:
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise _Unfit(f"holds {name}, which is not JSON")


def _checked(value: Json, foreign: bool) -> Json:
    """The value itself, once nothing in it can surprise: depth, text, numbers."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Json] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.keys()
                inner += one.values()
            elif isinstance(one, list):
                inner += one
            else:
                _check_leaf(one, foreign)
        if not inner:
            return value
        level = inner
    raise RecursionError


def _check_leaf(value: bool | int | float | str | None, foreign: bool) -> None:
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _Unfit("cannot hold half a character (a lone surrogate)") from None
    elif isinstance(value, float):
        if math.isinf(value) and not foreign:
            raise _Unfit("holds a number too large for any computer")
    elif isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise _Unfit("holds a number too large for any computer")
