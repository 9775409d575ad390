"""Malformed files of judgements, met by ``likewise describe``."""

from __future__ import annotations

import gzip
import io
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from malformed.case import Bench, Case, bomb

CSV: dict[str, str] = {
    "empty": "",
    "blank lines": "\n\n \n",
    "header only": "left,right,same\n",
    "no header": "0,1,1\n1,2,0\n",
    "one column": "left\n0\n1\n",
    "no left": "lft,right,same\n0,1,1\n",
    "no right": "left,rght,same\n0,1,1\n",
    "no same": "left,right,answer\n0,1,1\n",
    "columns in capitals": "LEFT,RIGHT,SAME\n0,1,1\n",
    "column twice": "left,right,same,same\n0,1,1,0\n",
    "left twice": "left,left,right,same\n0,1,2,0\n",
    "negative index": "left,right,same\n-1,1,1\n0,1,0\n",
    "negative index later": "left,right,same\n0,1,1\n1,-2,0\n",
    "index past 32 bits": "left,right,same\n0,99999999999,1\n1,2,0\n",
    "blank left": "left,right,same\n,1,1\n1,2,0\n",
    "blank right": "left,right,same\n0,,1\n1,2,0\n",
    "compared with itself": "left,right,same\n3,3,1\n1,2,0\n",
    "only itself": "left,right,same\na,a,1\n",
    "answer 2": "left,right,same\n0,1,2\n1,2,0\n",
    "answer -7": "left,right,same\n0,1,-7\n1,2,0\n",
    "answer one half": "left,right,same\n0,1,0.5\n1,2,0\n",
    "answer maybe so": "left,right,same\n0,1,maybe so\n1,2,0\n",
    "answer nan text": "left,right,same\n0,1,nanana\n1,2,0\n",
    "answers are names": "left,right,same\n0,1,cat\n1,2,dog\n",
    "all answers blank": "left,right,same\n0,1,\n1,2,\n",
    "all answers unsure": "left,right,same\n0,1,unsure\n1,2,unsure\n",
    "short row": "left,right,same\n0,1\n1,2,0\n",
    "long row": "left,right,same\n0,1,1,1,1\n1,2,0\n",
    "long row later": "left,right,same\n0,1,1\n1,2,0,9,9\n",
    "quote never closed": 'left,right,same\n0,"1,1\n1,2,0\n',
    "quote in the middle": 'left,right,same\n0,1"x",1\n1,2,0,"\n',
    "weight negative": "left,right,same,weight\n0,1,1,-1\n1,2,0,1\n",
    "weight text": "left,right,same,weight\n0,1,1,heavy\n1,2,0,1\n",
    "weight nan": "left,right,same,weight\n0,1,1,nan\n1,2,0,1\n",
    "weight infinite": "left,right,same,weight\n0,1,1,inf\n1,2,0,1\n",
    "weight blank": "left,right,same,weight\n0,1,1,\n1,2,0,1\n",
    "weight 1e400": "left,right,same,weight\n0,1,1,1e400\n1,2,0,1\n",
    "html": "<!doctype html><html><body>left,right,same</body></html>\n",
    "prose": "These two are the same.\nThose are not.\n",
    "wrong delimiter": "left:right:same\n0:1:1\n",
    "spaces as delimiter": "left right same\n0 1 1\n",
    "formula as header": "=cmd|'/c calc'!A1,right,same\n0,1,1\n",
    "only commas": ",,,\n,,,\n",
    "huge header": "left,right," + "x" * 200_000 + "\n0,1,1\n",
    "many columns": ",".join(f"c{k}" for k in range(5000)) + "\n",
    "splink without answer": "unique_id_l,unique_id_r,other\n1,2,1\n",
    "splink score text": "unique_id_l,unique_id_r,clerical_match_score\na,b,high\n",
    "splink without right": "unique_id_l,clerical_match_score\na,1\n",
    "zingg without cluster": "z_isMatch,id\n1,a\n1,b\n",
    "zingg lonely record": "z_cluster,z_isMatch,id\n1,1,a\n",
    "zingg three in a cluster": "z_cluster,z_isMatch,id\n1,1,a\n1,1,b\n1,1,c\n",
    "zingg answer 9": "z_cluster,z_isMatch,id\n1,9,a\n1,9,b\n",
}

JSON: dict[str, str] = {
    "cut short": '[{"left": 0, "right": 1',
    "a number": "[1, 2, 3]",
    "empty list": "[]",
    "empty object": "{}",
    "list of lists": "[[0, 1, 1], [1, 2, 0]]",
    "null in the list": '[null, {"left": 0, "right": 1, "same": 1}]',
    "no same": '[{"left": 0, "right": 1}]',
    "left is a list": '[{"left": [0], "right": 1, "same": 1}]',
    "left is an object": '[{"left": {"a": 1}, "right": 1, "same": 1}]',
    "left is a fraction": '[{"left": 0.5, "right": 1, "same": 1}]',
    "left is true": '[{"left": null, "right": 1, "same": 1}]',
    "same is a list": '[{"left": 0, "right": 1, "same": [1]}]',
    "same is 3": '[{"left": 0, "right": 1, "same": 3}]',
    "infinite index": '[{"left": 1e999, "right": 1, "same": 1}]',
    "nan index": '[{"left": NaN, "right": 1, "same": 1}]',
    "index of 5000 digits": '[{"left": ' + "9" * 5000 + ', "right": 1, "same": 1}]',
    "deep nesting": "[" * 100_000,
    "deep nesting closed": "[" * 50_000 + "]" * 50_000,
    "deep objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "two documents": '[{"left": 0, "right": 1, "same": 1}] [1]',
    "comment": '// judgements\n[{"left": 0, "right": 1, "same": 1}]',
    "control characters": '[{"le\x01ft": 0}]',
    "dedupe empty": '{"distinct": [], "match": []}',
    "dedupe not a list": '{"distinct": 3, "match": "x"}',
    "dedupe one record": '{"distinct": [[{"id": "a"}]], "match": []}',
    "dedupe three records": '{"match": [[{"id": 1}, {"id": 2}, {"id": 3}]], "distinct": []}',
    "label studio without result": '[{"annotations": [{}]}]',
    "label studio result text": '[{"annotations": [{"result": "same"}], "data": {}}]',
    "label studio data list": '[{"annotations": [{"result": []}], "data": [1]}]',
    "label studio annotations 3": '[{"annotations": 3, "data": {"left": "a", "right": "b"}}]',
}

FOREIGN: dict[str, bytes] = {
    "png": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
    "jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 40,
    "pdf": b"%PDF-1.7\n" + b"\0" * 40,
    "old excel": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 40,
    "elf": b"\x7fELF" + b"\0" * 40,
    "utf-16": "left,right,same\n0,1,1\n".encode("utf-16"),
    "utf-32": "left,right,same\n0,1,1\n".encode("utf-32"),
    "latin-1": "left,right,same\n0,1,1\n# é\xe9\n".encode("latin-1"),
    "a byte that is not utf-8": b"left,right,same\n0,1,1\n1,\xff,0\n",
    "nul bytes": b"left,right,same\n0,1,\0\n",
    "all zero": b"\0" * 100,
    "all 255": b"\xff" * 100,
    "gzip": gzip.compress(b"left,right,same\n0,1,1\n", mtime=0),
    "gzip bomb": gzip.compress(b"0" * 2**24, mtime=0),
    "arrow": b"ARROW1\0\0" + b"\0" * 64,
    "parquet magic only": b"PAR1",
    "parquet magic twice": b"PAR1PAR1",
    "parquet of junk": b"PAR1" + b"\x15" * 64 + b"\xff\xff\xff\x7fPAR1",
    "sqlite magic only": b"SQLite format 3\0",
    "sqlite of junk": b"SQLite format 3\0" + b"\x10\x00\x01\x01\x00\x40\x20\x20" * 40,
    "numpy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}",
}


def cases() -> Iterator[Case]:
    """All of them."""
    for name, text in CSV.items():
        yield _file(f"judgements/csv/{name}", "pairs.csv", text)
    for name, text in JSON.items():
        yield _file(f"judgements/json/{name}", "pairs.json", text)
    for name, content in FOREIGN.items():
        yield _file(f"judgements/foreign/{name}", "pairs", content)
        yield _file(f"judgements/foreign named csv/{name}", "pairs.csv", content)
    yield from _built("judgements/zip", "pairs.csv", {"a zip": _zip})
    yield from _built("judgements/parquet", "pairs.parquet", PARQUET)
    yield from _built("judgements/sqlite", "pairs.db", SQLITE)
    for ending in ("pkl", "pickle", "pt", "csv", "json", "parquet", "db"):
        yield _pickle(ending)


def _file(name: str, file: str, content: bytes | str) -> Case:
    return Case(name, lambda bench: ["describe", bench.write(file, content)])


def _built(group: str, file: str, makers: dict[str, Callable[[Path], None]]) -> Iterator[Case]:
    for name, maker in makers.items():

        def make(bench: Bench, maker: Callable[[Path], None] = maker) -> list[str | Path]:
            path = bench.folder / file
            maker(path)
            return ["describe", path]

        yield Case(f"{group}/{name}", make)


def _pickle(ending: str) -> Case:
    return Case(
        f"judgements/pickle/{ending}",
        lambda bench: ["describe", bench.write(f"pairs.{ending}", bomb(bench))],
    )


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pairs.csv", "left,right,same\n0,1,1\n")


def _parquet(columns: dict[str, Any]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)

    return write


def _cut(keep: float, flip: bool = False) -> Callable[[Path], None]:
    """A whole Parquet file, of which the first part is left, or whose footer is spoilt."""

    def write(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        rows = {"left": list(range(99)), "right": list(range(1, 100)), "same": [1, 0, 1] * 33}
        pq.write_table(pa.table(rows), buffer)
        content = bytearray(buffer.getvalue())
        if flip:
            content[-40:-8] = bytes(byte ^ 0xFF for byte in content[-40:-8])
        path.write_bytes(bytes(content[: int(len(content) * keep)]))

    return write


PARQUET: dict[str, Callable[[Path], None]] = {
    "no rows": _parquet({"left": [], "right": [], "same": []}),
    "no columns": _parquet({}),
    "other columns": _parquet({"a": [1], "b": [2]}),
    "left nested": _parquet({"left": [[0]], "right": [1], "same": [1]}),
    "left a struct": _parquet({"left": [{"a": 1}], "right": [1], "same": [1]}),
    "left binary": _parquet({"left": [b"\xff\xfe"], "right": [b"\x80"], "same": [1]}),
    "left negative": _parquet({"left": [-5], "right": [1], "same": [1]}),
    "left fraction": _parquet({"left": [0.5], "right": [1.0], "same": [1]}),
    "left nan": _parquet({"left": [float("nan")], "right": [1.0], "same": [1]}),
    "left infinite": _parquet({"left": [float("inf")], "right": [1.0], "same": [1]}),
    "left null": _parquet({"left": [None, 1], "right": [1, 2], "same": [1, 0]}),
    "left all null": _parquet({"left": [None, None], "right": [1, 2], "same": [1, 0]}),
    "same nested": _parquet({"left": [0], "right": [1], "same": [[1]]}),
    "same 7": _parquet({"left": [0], "right": [1], "same": [7]}),
    "same all null": _parquet({"left": [0], "right": [1], "same": [None]}),
    "weight nested": _parquet({"left": [0], "right": [1], "same": [1], "weight": [[1.0]]}),
    "weight text": _parquet({"left": [0], "right": [1], "same": [1], "weight": ["x"]}),
    "cut to a tenth": _cut(0.1),
    "cut in half": _cut(0.5),
    "cut at nine tenths": _cut(0.9),
    "cut by a hundredth": _cut(0.99),
    "footer spoilt": _cut(1.0, flip=True),
}


def _sqlite(*statements: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return write


def _sqlite_cut(keep: float) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        rows = ", ".join(f"({k}, {k + 1}, 1)" for k in range(2000))
        _sqlite(_TABLE, f"INSERT INTO j VALUES {rows}")(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * keep)])

    return write


def _schema_not_text(path: Path) -> None:
    """The statement that made the table, spoilt: SQLite complains of it in bytes, not in text."""
    _sqlite(_TABLE, "INSERT INTO j VALUES (0, 1, 1)")(path)
    path.write_bytes(path.read_bytes().replace(b"TABLE j", b"TAB\xff\xff\xffj"))


_TABLE = 'CREATE TABLE j ("left", "right", same)'
SQLITE: dict[str, Callable[[Path], None]] = {
    "no tables": _sqlite("CREATE TABLE t (a)", "DROP TABLE t"),
    "other columns": _sqlite("CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 2)"),
    "two tables": _sqlite(
        _TABLE, _TABLE.replace(" j ", " k "), "INSERT INTO j VALUES (0, 1, 1)",
        "INSERT INTO k VALUES (0, 1, 1)",
    ),
    "no rows": _sqlite(_TABLE),
    "left a blob": _sqlite(_TABLE, "INSERT INTO j VALUES (x'ff00', 1, 1)"),
    "left a fraction": _sqlite(_TABLE, "INSERT INTO j VALUES (0.5, 1, 1)"),
    "left null": _sqlite(_TABLE, "INSERT INTO j VALUES (NULL, 1, 1)"),
    "same text": _sqlite(_TABLE, "INSERT INTO j VALUES (0, 1, 'perhaps so')"),
    "negative": _sqlite(_TABLE, "INSERT INTO j VALUES (-4, 1, 1)"),
    "schema not text": _schema_not_text,
    "cut in half": _sqlite_cut(0.5),
    "cut to a tenth": _sqlite_cut(0.1),
}  # fmt: skip
