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

# An array inside an .npz is read into memory; a plain .npy is not, and may be larger.
MAX_MEMBER = 4 * 2**30
MAX_HEADER = 10_000
MAGIC = b"\x93NUMPY"
# All that NumPy and zipfile raise over damaged files: a header is parsed as Python's syntax.
_DAMAGE = (
    *(ValueError, OSError, EOFError, OverflowError, MemoryError, TypeError, KeyError),
    *(SyntaxError, RecursionError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
    *(NotImplementedError, RuntimeError),  # compression of an unknown kind, encryption
)


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped and not read: memory is used as it is looked at."""
    with array_errors(path):
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise InputError(f"{path.name} is not an array that NumPy saved.")
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def read_npz(path: Path, names: list[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name, only ``names`` where given; sizes are checked first."""
    with array_errors(path), zipfile.ZipFile(path) as archive:
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        for name, info in members.items():
            if names is None or name in names:
                _check_size(path, name, archive, info)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in members if names is None or name in names}


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    with array_errors(path), zipfile.ZipFile(path) as archive:
        found = archive.namelist()
    return [name.removesuffix(".npy") for name in found if name.endswith(".npy")]


def _check_size(path: Path, name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    if info.file_size > MAX_MEMBER:
        raise InputError(
            f"{path.name} holds {name} of {info.file_size / 2**30:.0f} GiB, too much to unpack; "
            "save it as .npy, which is read in place."
        )
    with archive.open(info) as file:
        shape, dtype = _header(file)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if any(length < 0 for length in shape) or size > info.file_size:
        raise ValueError("the header promises more than the file holds")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy_format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy_format.read_array_header_1_0(file, MAX_HEADER)
    else:
        shape, _, dtype = npy_format.read_array_header_2_0(file, MAX_HEADER)
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
