"""Reading the pickles of the CIFAR sets without trusting them.

A pickle is a program. Here it may build numbers, strings, bytes, lists, tuples, dicts and arrays of
numbers, and nothing else: every name that it asks for is refused unless it is one of the few that
NumPy arrays and bytes are pickled with, and even for those it gets a stand-in of ours, so that no
function of NumPy or of the standard library ever runs on arguments that the file chose.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import InputError
from likewise.io.npy import Array

MAX_BYTES = 1 << 30


class _Refused(Exception):
    """The pickle asked for something that an array file has no need of."""


class _Stub:
    """Callable stand-in for a pickled name; cannot be changed by the pickle."""

    __slots__ = ("_build",)

    def __init__(self, build: Callable[..., object]) -> None:
        self._build = build

    def __call__(self, *args: object) -> object:
        return self._build(*args)

    def __setstate__(self, state: object) -> None:
        raise _Refused("it tries to change a function")


class _PickledDtype:
    """Stand-in for ``numpy.dtype``: plain numbers only."""

    __slots__ = ("code", "order")

    def __init__(self, code: object, *_: object) -> None:
        text = code.decode("ascii", "replace") if isinstance(code, bytes) else code
        if not isinstance(text, str) or text not in _NUMBER_CODES:
            raise _Refused(f"an array of type {text!r}")
        self.code, self.order = text, "="

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode("ascii", "replace") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "=", "|"):
            raise _Refused(f"a byte order {order!r}")
        self.order = order


_NUMBER_CODES = frozenset({"b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"})


class _PickledArray:
    """Stand-in for ``numpy.ndarray``; `array` is set once its state was read and checked."""

    __slots__ = ("array",)

    def __init__(self, *_: object) -> None:
        self.array: Array | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        sizes_fit = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
        is_data = isinstance(data, bytes | bytearray)
        if not (isinstance(dtype, _PickledDtype) and is_data and sizes_fit):
            raise _Refused("a malformed array")
        order = "=" if dtype.order == "|" else dtype.order
        flat = np.frombuffer(data, np.dtype(order + dtype.code))
        self.array = flat.reshape(shape, order="F" if fortran else "C")


def _from_buffer(data: object, dtype: object, shape: object, order: object) -> _PickledArray:
    """How protocol 5 writes arrays."""
    array = _PickledArray()
    array.__setstate__((1, shape, dtype, order == "F", data))
    return array


def _encode(text: object, encoding: object = "latin1") -> bytes:
    """How protocol 2 writes bytes: as text with one character a byte."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _Refused("an encoding other than latin1")
    return text.encode("latin1")


def _allowed(module: str, name: str) -> object:
    # NumPy 1 and 2, and Python 2 and 3, name the same things differently.
    if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
        return _Stub(_PickledArray)
    if module in ("numpy.core.numeric", "numpy._core.numeric") and name == "_frombuffer":
        return _Stub(_from_buffer)
    if (module, name) == ("numpy", "ndarray"):
        return "numpy.ndarray"  # only ever handed to _reconstruct, which ignores it
    if (module, name) == ("numpy", "dtype"):
        return _Stub(_PickledDtype)
    if (module, name) == ("_codecs", "encode"):
        return _Stub(_encode)
    if module in ("builtins", "__builtin__") and name == "bytes":
        return _Stub(lambda: b"")
    raise _Refused(f"{module}.{name}")


class _Unpickler(pickle._Unpickler):
    # The Python implementation on purpose: the C one allocates a memo as long as the file asks.

    def find_class(self, module: str, name: str) -> object:
        return _allowed(module, name)

    def persistent_load(self, pid: object) -> object:
        raise _Refused("an object outside the file")

    def get_extension(self, code: int) -> None:
        raise _Refused("an object of an extension registry")


def load_arrays(path: Path) -> dict[bytes, Any]:
    """The dict that a CIFAR pickle holds, its keys and strings as bytes, its arrays as arrays."""
    if path.stat().st_size > MAX_BYTES:
        raise InputError(f"{path} is too large to be a CIFAR batch.")
    try:
        loaded = _Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        if not isinstance(loaded, dict):
            raise _Refused("something other than a dict")
        return {_key(k): _plain(v) for k, v in loaded.items()}
    except _Refused as refusal:
        raise InputError(
            f"{path} was refused: besides arrays, lists and strings it holds {refusal}. "
            "Nothing in it was run; fetch the file again from its publisher."
        ) from None
    except Exception as error:  # a damaged pickle can fail in any of a dozen ways
        raise InputError(f"{path} is damaged or no pickle ({type(error).__name__}).") from error


def _key(key: Any) -> bytes:
    return key.encode() if isinstance(key, str) else bytes(key)


def _plain(value: Any) -> Any:
    if isinstance(value, _PickledArray):
        if value.array is None:
            raise _Refused("an array without contents")
        return value.array
    if isinstance(value, _Stub | _PickledDtype):
        raise _Refused("a function in place of data")
    if isinstance(value, list) and any(isinstance(v, _PickledArray | _Stub) for v in value):
        return [_plain(v) for v in value]
    return value
