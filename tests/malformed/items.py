"""Malformed files and folders of items, met by ``likewise predict``; its model takes 64 numbers."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from malformed.case import Bench, Case, Make, bomb

CSV: dict[str, str] = {
    "empty": "",
    "header only": ",".join(f"f{k}" for k in range(64)) + "\n",
    "too few columns": "a,b\n1,2\n",
    "text": "a,b\nx,y\n",
    "one word among numbers": "a,b\n1,2\n3,four\n",
    "blank cell": "a,b\n1,2\n3,\n",
    "nan": "a,b\n1,2\n3,nan\n",
    "infinite": "a,b\n1,2\n3,inf\n",
    "past single precision": "a,b\n1,2\n3,1e300\n",
    "ragged": "1.5,2.5\n3.5\n",
    "ragged the other way": "1.5,2.5\n3.5,4.5,5.5\n",
    "ids only": "id\n1\n2\n",
    "judgements": "left,right,same\n0,1,1\n",
    "nul": "a,b\n1,\0\n",
    "quote": 'a,b\n"1,2\n',
    "formula": "a,b\n=1+1,2\n",
    "hexadecimal": "a,b\n0x10,2\n",
}


def npy(array: Any, pickled: bool = False) -> bytes:
    """The bytes of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=pickled)
    return buffer.getvalue()


def header(text: str, body: bytes = b"\0" * 64) -> bytes:
    """A .npy file whose header says what it likes."""
    padded = text.encode() + b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + body


def _shape(shape: str, descr: str = "'<f4'", more: str = "") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}{more}}}")


NPY: dict[str, bytes] = {
    "no dimension": npy(np.float32(1)),
    "one dimension": npy(np.zeros(64, np.float32)),
    "five dimensions": npy(np.zeros((1, 2, 2, 2, 2), np.float32)),
    "no items": npy(np.zeros((0, 64), np.float32)),
    "no features": npy(np.zeros((5, 0), np.float32)),
    "other features": npy(np.zeros((5, 63), np.float32)),
    "images for features": npy(np.zeros((5, 8, 8), np.float32)),
    "nan": npy(np.full((2, 64), np.nan, np.float32)),
    "infinite": npy(np.full((2, 64), np.inf, np.float32)),
    "infinite in the last place": npy(np.r_[np.zeros(127), -np.inf].reshape(2, 64)),
    "past single precision": npy(np.full((2, 64), 1e300)),
    "text": npy(np.full((2, 64), "x")),
    "bytes": npy(np.full((2, 64), b"x")),
    "complex": npy(np.zeros((2, 64), np.complex64)),
    "dates": npy(np.zeros((2, 64), "datetime64[s]")),
    "records": npy(np.zeros(2, [("a", "f4"), ("b", "i4")])),
    "void": npy(np.zeros((2, 64), "V8")),
    "objects": npy(np.array([[1, "x"], [None, {}]], object), pickled=True),
    "shape past memory": _shape("(1000000000000, 64)"),
    "shape past 64 bits": _shape("(99999999999999999999, 64)"),
    "shape negative": _shape("(-1, 64)"),
    "shape of 40 dimensions": _shape("(" + "1, " * 40 + ")"),
    "shape a text": _shape("'64'"),
    "shape none": _shape("None"),
    "type unknown": _shape("(1, 64)", "'<q9'"),
    "type an object": _shape("(1, 64)", "'|O'"),
    "type a list": _shape("(1, 64)", "[('a', '|O')]"),
    "more keys": _shape("(1, 64)", more=", 'x': 1"),
    "header runs code": header("__import__('os').system('touch exploded')"),
    "header a call": header("{'descr': print(1), 'fortran_order': False, 'shape': (1, 64)}"),
    "header nested": header("(" * 3000),
    "header not closed": header("{'descr': '<f4', 'fortran_order"),
    "header cut": npy(np.zeros((2, 64), np.float32))[:20],
    "magic only": b"\x93NUMPY",
    "version 9": b"\x93NUMPY\x09\x00" + npy(np.zeros((2, 64), np.float32))[8:],
    "header of 4 GB": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{",
    "body cut": npy(np.zeros((20, 64), np.float32))[:-7],
    "no body": npy(np.zeros((20, 64), np.float32))[:128],
    "empty": b"",
    "junk": b"junk" * 30,
}


def npz(**arrays: bytes) -> bytes:
    """A ZIP of members, whatever they hold."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    return buffer.getvalue()


_GOOD = npy(np.zeros((3, 64), np.float32))
_WHOLE = npz(items=_GOOD)
NPZ: dict[str, bytes] = {
    "no arrays": npz(),
    "ids only": npz(ids=npy(np.arange(3))),
    "two arrays": npz(a=_GOOD, b=_GOOD),
    "ids of another length": npz(items=_GOOD, ids=npy(np.arange(4))),
    "ids nested": npz(items=_GOOD, ids=npy(np.zeros((3, 2)))),
    "ids objects": npz(items=_GOOD, ids=npy(np.array([{}, 1, 2], object), pickled=True)),
    "items objects": npz(items=NPY["objects"]),
    "items without dimension": npz(items=NPY["no dimension"], ids=npy(np.arange(3))),
    "member is junk": npz(items=b"junk"),
    "member is empty": npz(items=b""),
    "shape past memory": npz(items=NPY["shape past memory"]),
    "shape negative": npz(items=NPY["shape negative"]),
    "header runs code": npz(items=NPY["header runs code"]),
    "cut in half": _WHOLE[: len(_WHOLE) // 2],
    "end cut": _WHOLE[:-5],
    "start spoilt": b"PK\x03\x04" + b"\xff" * 30 + _WHOLE[34:],
    "checksum wrong": _WHOLE.replace(b"\0" * 200, b"\0" * 199 + b"\1", 1),
    "magic only": b"PK\x03\x04",
    "encrypted": _WHOLE.replace(
        b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00"
    ).replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"),
    "compression unknown": _WHOLE.replace(
        b"PK\x03\x04\x14\x00\x00\x00\x00\x00", b"PK\x03\x04\x14\x00\x00\x00\x63\x00"
    ).replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x63\x00"
    ),
}


def png(width: int, height: int, depth: int = 8, colour: int = 0, body: bytes = b"") -> bytes:
    """A PNG that claims a size, whatever it holds."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)),
        (b"IDAT", body or zlib.compress(b"\0" * 1000)),
        (b"IEND", b""),
    ]
    framed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


IMAGES: dict[str, dict[str, bytes]] = {
    "empty folder": {},
    "no images": {"notes.txt": b"nothing here"},
    "text named png": {"a.png": b"not a picture"},
    "empty png": {"a.png": b""},
    "empty jpeg": {"a.jpg": b""},
    "png cut": {"a.png": png(8, 8)[:40]},
    "png without pixels": {"a.png": png(8, 8, body=b"\0")},
    "png of no width": {"a.png": png(0, 8)},
    "decompression bomb": {"a.png": png(50_000, 50_000)},
    "decompression bomb by width": {"a.png": png(2**31 - 1, 1)},
    "large past the limit": {"a.png": png(20_000, 20_000)},
    "jpeg header only": {"a.jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF\0"},
    "gif of junk": {"a.gif": b"GIF89a" + b"\xff" * 30},
    "webp of junk": {"a.webp": b"RIFF\xff\xff\xff\x7fWEBPVP8 " + b"\xff" * 30},
    "bmp of junk": {"a.bmp": b"BM" + b"\xff" * 60},
    "tiff of junk": {"a.tif": b"II*\0\x08\0\0\0\xff\xff" + b"\xff" * 60},
    "postscript named png": {"a.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage"},
    "svg named png": {"a.png": b"<svg xmlns='http://www.w3.org/2000/svg'/>"},
    "one good and two bad": {"a.png": png(8, 8), "b.png": b"\x89PNG\r\n\x1a\n", "c.png": b"GIF"},
}


def cases() -> Iterator[Case]:
    """All of them."""
    for name, text in CSV.items():
        yield Case(f"items/csv/{name}", _predict("items.csv", text))
    yield Case("items/csv/not utf-8", _predict("items.csv", b"1,2\n3,4\n\xcd"))
    for name, content in NPY.items():
        yield Case(f"items/npy/{name}", _predict("items.npy", content))
    for name, content in NPZ.items():
        yield Case(f"items/npz/{name}", _predict("items.npz", content))
    for name, files in IMAGES.items():
        yield Case(f"items/images/{name}", _folder(files))
    for ending in ("npy", "npz", "csv", "parquet", "pkl", "pt"):
        yield Case(f"items/pickle/{ending}", _predict(f"items.{ending}", bomb))
    yield Case("items/json", _predict("items.json", "[[1, 2]]"))
    yield Case("items/sqlite", _predict("items.db", b"SQLite format 3\0" + b"\0" * 90))
    yield Case("items/idx", _predict("items-idx3-ubyte", b"\0\0\x08\x03" + b"\0" * 12))
    yield Case("items/missing", lambda bench: ["predict", bench.run, bench.folder / "none.npy"])
    yield Case("items/image bomb", _folder({"a.png": b"", "pickle.png": b"\x80\x04."}))


def _predict(file: str, content: bytes | str | Callable[[Bench], bytes]) -> Make:
    def make(bench: Bench) -> list[Any]:
        body = content(bench) if callable(content) else content
        return ["predict", bench.run, bench.write(file, body)]

    return make


def _folder(files: dict[str, bytes]) -> Make:
    def make(bench: Bench) -> list[Any]:
        folder = bench.folder / "images"
        folder.mkdir()
        for name, content in files.items():
            bench.write(f"images/{name}", content)
        return ["predict", bench.run, folder]

    return make
