"""NumPy files from strangers: no pickle, sizes known before memory is taken, one kind of error."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.limits import check_memory
from likewise.io.regular import hole_bytes, open_regular
from likewise.io.tables import listing

Array = NDArray[Any]  # of whatever type the file says
MAGIC = b"\x93NUMPY"
# All that NumPy and zipfile raise over damaged files: a header is parsed as Python's syntax.
_DAMAGE = (
    ValueError,
    OSError,
    EOFError,
    OverflowError,
    MemoryError,
    TypeError,
    KeyError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,  # compression of an unknown kind, encryption, recursion
)


def read_npy(path: Path) -> Array:
    """The array of a .npy file, mapped and not read: memory is used as it is looked at."""
    with array_errors(path):
        with open_regular(path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise InputError(f"{path.name} is not an array that NumPy saved.")
        check_holes(path)
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def read_npz(path: Path, names: list[str] | None = None) -> dict[str, Array]:
    """The arrays of an .npz file by name, only ``names`` where given; sizes are checked first."""
    with array_errors(path), open_regular(path) as file, zipfile.ZipFile(file) as archive:
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        wanted = {name: members[name] for name in members if names is None or name in names}
        _check_sizes(path, archive, wanted)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in wanted}


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    with array_errors(path), open_regular(path) as file, zipfile.ZipFile(file) as archive:
        found = archive.namelist()
    return [name.removesuffix(".npy") for name in found if name.endswith(".npy")]


def _check_sizes(path: Path, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> None:
    """What is unpacked must fit in memory, and each array in what is unpacked for it."""
    check_memory(
        f"{path.name}: {listing(list(members))}, unpacked,",
        sum(info.file_size for info in members.values()),
        sum(info.compress_size for info in members.values()),
        instead="save it as .npy, which is read in place",
    )
    for info in members.values():
        with archive.open(info) as file:
            shape, dtype = _header(file)
        size = dtype.itemsize
        for length in shape:
            size *= length
        if any(length < 0 for length in shape) or size > info.file_size:
            raise ValueError("the header promises more than the file holds")


def check_holes(path: Path) -> None:
    """A sparse file takes no disk and hours to read."""
    size = path.stat().st_size
    check_memory(
        f"{path.name}, which is mostly holes that take no place on disk,",
        size,
        size - hole_bytes(path),
        instead="write it whole",
    )


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = npy_format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy_format.read_array_header_1_0(file)
    else:
        shape, _, dtype = npy_format.read_array_header_2_0(file)
    return shape, dtype


@contextmanager
def array_errors(path: Path) -> Iterator[None]:
    """Whatever is wrong with a NumPy file as one sentence of ours."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.") from None
    except _DAMAGE as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise InputError(
                f"{path.name} holds Python objects, which could run code when opened; save numbers."
            ) from error
        raise InputError(
            f"{path.name} is damaged or cut short, so that it cannot be read."
        ) from error
