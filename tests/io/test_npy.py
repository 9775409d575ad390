"""NumPy files from strangers: read as they are, or refused in a sentence."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.io.npy import array_errors, npz_names, read_npy, read_npz


def test_an_array_is_mapped_not_read(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "x.npy", values)
    found = read_npy(tmp_path / "x.npy")
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    assert found.tolist() == values.tolist()


def test_arrays_of_an_archive_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(3), b=np.zeros((2, 0)), **{"c.d": np.array("text")})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("note.txt", "no array")
    assert npz_names(path) == ["a", "b", "c.d"]
    every = read_npz(path)
    assert list(every) == ["a", "b", "c.d"]
    assert every["a"].tolist() == [0, 1, 2]
    assert every["b"].shape == (2, 0)
    assert str(every["c.d"]) == "text"
    assert list(read_npz(path, ["b", "none"])) == ["b"]
    assert read_npz(path, []) == {}


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_both_kinds_of_header(tmp_path: Path, version: tuple[int, int]) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("a.npy", "w") as file:
        np.lib.format.write_array(file, np.arange(4), version=version)
    assert read_npz(path)["a"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("shape", ["(3, -1)", "(2, 2)", "(4,)"])
def test_a_header_that_promises_more_than_there_is(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "x.npz"
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", content + bytes(24))
    with pytest.raises(InputError, match=r"x\.npz is damaged or cut short"):
        read_npz(path)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_objects_are_refused(tmp_path: Path, name: str) -> None:
    objects = np.array([{}, None], object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", objects)
    with pytest.raises(InputError, match=rf"{name} holds Python objects, which could run code"):
        (read_npy if name == "x.npy" else read_npz)(tmp_path / name)


def test_what_is_no_array_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match=r"x\.npy is not an array that NumPy saved"):
        read_npy(path)
    for reader in (read_npz, npz_names):
        with pytest.raises(InputError, match=r"x\.npy is damaged or cut short"):
            reader(path)
    np.save(path, np.arange(100))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"x\.npy is damaged or cut short"):
        read_npy(path)
    for reader in (read_npy, read_npz, npz_names):
        with pytest.raises(InputError, match=r"none\.npy is missing"):
            reader(tmp_path / "none.npy")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(), r"there is no file a/x\.npy"),
        (ValueError("Object arrays"), r"^x\.npy holds Python objects"),
        (OSError("PICKLED data"), r"^x\.npy holds Python objects"),
        (KeyError("x"), r"^x\.npy is damaged"),
        (InputError("a sentence"), "^a sentence$"),
    ],
)
def test_every_complaint_is_one_sentence(error: Exception, words: str) -> None:
    with pytest.raises(InputError, match=words), array_errors(Path("a/x.npy")):
        raise error


def test_what_else_a_person_could_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0001")
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(10**5), b=np.zeros(10))
    words = r"^x\.npz: a, b, unpacked, would .*; save it as \.npy, which is read in place, or set"
    with pytest.raises(InputError, match=words):
        read_npz(tmp_path / "x.npz")
    assert list(read_npz(tmp_path / "x.npz", ["b"])) == ["b"]
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**6,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * 10**6)
    if (tmp_path / "x.npy").stat().st_blocks * 512 > 10**6:
        pytest.skip("this file system keeps no holes")
    with pytest.raises(
        InputError, match=r"^x\.npy, which is mostly holes .*; write it whole, or set"
    ):
        read_npy(tmp_path / "x.npy")
