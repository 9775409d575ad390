"""Files of true classes that are none, met by `evaluate`, `name` and `report --truth`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from malformed.case import Bench, Case, Make
from malformed.items import header, npy

WHOLE = "item,label\n" + "".join(f"{k},{k % 10}\n" for k in range(200))
FILES: dict[str, str | bytes] = {
    "empty": "",
    "blank lines": "\n\n\n",
    "header only": "item,label\n",
    "no label column": "item,kind,other\n0,a,b\n",
    "item twice": "item,label\n0,a\n0,b\n",
    "item blank": "item,label\n,a\n",
    "item not there": "item,label\n999,a\n",
    "item negative": "item,label\n-1,a\n",
    "item a fraction": "item,label\n0.5,a\n",
    "item a name": "item,label\ncat.jpg,a\n",
    "label column twice": "item,label,label\n0,a,b\n",
    "short row": WHOLE + "1\n",
    "long row": WHOLE + "1,2,3\n",
    "quote never closed": 'item,label\n0,"a\n',
    "not utf-8": b"item,label\n0,\xff\xfe\n",
    "utf-16": "item,label\n0,a\n".encode("utf-16"),
    "null bytes": b"\0" * 64,
    "html": "<html><body>404</body></html>",
    "json": '{"0": "a"}',
    "png": b"\x89PNG\r\n\x1a\n" + b"\0" * 32,
    "pdf": b"%PDF-1.4\n",
    "zip": b"PK\x03\x04" + b"\0" * 30,
    "parquet that is none": b"PAR1" + b"\0" * 20 + b"PAR1",
    "sqlite that is none": b"SQLite format 3\0" + b"\0" * 84,
}
ARRAYS: dict[str, bytes] = {
    "too few": npy(np.zeros(3, np.int64)),
    "too many": npy(np.zeros(1000, np.int64)),
    "two columns": npy(np.zeros((200, 2), np.int64)),
    "no axis": npy(np.int64(3)),
    "objects": npy(np.array([None] * 200), pickled=True),
    "cut": npy(np.zeros(200, np.int64))[:-8],
    "header only": header("{'descr': '<i8', 'fortran_order': False, 'shape': (200,), }", b""),
    "header endless": header("{'descr': '<i8', 'fortran_order': False, 'shape': (10**18,), }", b""),
}
COMMANDS = {
    "evaluate": lambda bench, path: ["evaluate", bench.run, bench.items, path],
    "name": lambda bench, path: ["name", bench.run, path],
    "report": lambda b, path: ["report", b.run, "--truth", path, "--out", b.folder / "page.html"],
}


def cases() -> Iterator[Case]:
    """All of them."""
    files = [(f"csv/{name}", "labels.csv", content) for name, content in FILES.items()]
    files += [(f"npy/{name}", "labels.npy", content) for name, content in ARRAYS.items()]
    for command in COMMANDS:
        for name, file, content in files:
            if (command, name) != ("name", "csv/no label column"):  # two columns: the second it is
                yield Case(f"labels/{command}/{name}", _make(command, file, content))


def _make(command: str, file: str, content: str | bytes) -> Make:
    def make(bench: Bench) -> list[object]:
        return COMMANDS[command](bench, bench.write(file, content))

    return make
