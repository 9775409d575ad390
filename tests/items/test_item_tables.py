"""Tables of items: header, ids, numbers and text, and where a cell is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.items import tables
from likewise.items.tables import ItemTable, check_ids


def csv(folder: Path, text: str) -> Path:
    (folder / "x.csv").write_text(text, encoding="utf-8")
    return folder / "x.csv"


def parquet(folder: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


@pytest.mark.parametrize("name", ["id", "Item", " ITEM_ID ", ""])
def test_the_column_that_names_items(tmp_path: Path, name: str) -> None:
    table = ItemTable(csv(tmp_path, f"a,{name},b\n1,x,2\n3,y,4.5\n"), "csv")
    assert (table.id_column, table.columns) == (name.strip(), ["a", "b"])
    assert table.has_header
    numbers, ids = table.numbers()
    assert (numbers.tolist(), numbers.dtype) == ([[1, 2], [3, 4.5]], np.float32)
    assert ids == ["x", "y"]
    assert numbers.flags.c_contiguous


def test_another_column_of_ids(tmp_path: Path) -> None:
    path = csv(tmp_path, "id,key\n1,x\n2,y\n")
    table = ItemTable(path, "csv", "key")
    assert (table.id_column, table.columns) == ("key", ["id"])
    assert table.numbers()[1] == ["x", "y"]
    with pytest.raises(InputError, match=r"^x\.csv has no column name; the columns .* id, key\.$"):
        ItemTable(path, "csv", "name")


@pytest.mark.parametrize(
    ("header", "is_header"),
    [
        ("0,1,2", True),
        ("1,2,3", False),
        ("1,2,3,4,5", True),
        ("1,2,3,4", False),
        ("400,410.5,421,431.5,442", True),
        ("1,2,3,4,6", False),
        ("5,5,5,5,5", False),
        ("0,0", False),
        ("1.5", False),
        ("a,2", True),
        ("7,9,8", True),
    ],
)
def test_which_first_lines_are_headers(tmp_path: Path, header: str, is_header: bool) -> None:
    row = ",".join("0" for _ in header.split(","))
    table = ItemTable(csv(tmp_path, f"{header}\n{row}\n"), "csv", known=["9", "8", "7"])
    assert table.has_header == is_header
    assert len(table.numbers()[0]) == (1 if is_header else 2)
    if not is_header:
        assert table.columns[0] == "column 1"


def test_an_id_column_of_a_number_needs_a_header(tmp_path: Path) -> None:
    table = ItemTable(csv(tmp_path, "1,3\nx,2\n"), "csv", "1")
    assert (table.has_header, table.columns) == (True, ["3"])
    assert ItemTable(parquet(tmp_path, **{"1": [2], "3": [4]}), "parquet").has_header


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3,x\n", r"^x\.csv, line 3: b is 'x', not a number; items must be finite"),
        ("a,b\n1,2\n3,\n", r"^x\.csv, line 3: b is blank"),
        ("a\n1\ninf\n", r"line 3: a is 'inf', not a number"),
        ("a\n1e39\n", r"line 2: a is '1e\+39', not a number"),
        (f"a\n{'x' * 61}\n", rf"line 2: a is '{'x' * 60}\.\.\.', not a number"),
        (f"a\n{'x' * 60}\n", rf"line 2: a is '{'x' * 60}', not a number"),
        ("id\nx\n", r"^x\.csv has no column of numbers"),
        ("a,b\n", r"^x\.csv has no rows"),
    ],
)
def test_what_is_no_number_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ItemTable(csv(tmp_path, text), "csv").numbers()


def test_rows_are_counted_over_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.io.tables.ParquetTable.batch_rows", 2)
    path = parquet(tmp_path, id=list("abcde"), a=["1", "2", "3", "x", "5"])
    with pytest.raises(InputError, match=r"^x\.parquet, row 3: a is 'x'"):
        ItemTable(path, "parquet").numbers()
    path = parquet(tmp_path, id=list("abcde"), a=["1", "2.5", "3", "1e2", "5"])
    numbers, ids = ItemTable(path, "parquet").numbers()
    assert numbers[:, 0].tolist() == [1, 2.5, 3, 100, 5]
    assert ids == list("abcde")
    rows = ItemTable(path, "parquet").text()
    assert rows.ids == list("abcde")
    assert [rows.row(k) for k in (1, 4)] == [[("a", "2.5")], [("a", "5")]]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["x", "y", "x"], "row 2: the column id has 'x' twice; every item needs an id of its own"),
        (["x", "", "x"], "row 1: the column id is blank; every item"),
        (["x", None, "y"], "row 1: the column id is blank"),
    ],
)
def test_ids_of_their_own(tmp_path: Path, ids: list[str | None], words: str) -> None:
    table = ItemTable(parquet(tmp_path, id=ids, a=[1, 2, 3]), "parquet")
    for reading in (table.numbers, table.text):
        with pytest.raises(InputError, match=rf"^x\.parquet, {words}"):
            reading()


def test_cells_as_text(tmp_path: Path) -> None:
    table = ItemTable(csv(tmp_path, "a,id,b,c\n1.50,x,,two words\n2,y,3,\n"), "csv")
    rows = table.text()
    assert (rows.columns, rows.ids) == (["a", "b", "c"], ["x", "y"])
    assert rows.row(0) == [("a", "1.50"), ("b", ""), ("c", "two words")]
    assert rows.row(1) == [("a", "2"), ("b", "3"), ("c", "")]
    assert table.text(2).columns == ["a", "b"]
    only = table.text(only=["c"])
    assert (only.columns, only.row(0)) == (["c"], [("c", "two words")])
    none = table.text(0)
    assert (none.columns, none.ids, len(none.cells)) == ([], ["x", "y"], 2)
    plain = ItemTable(csv(tmp_path, "a,b\n1,2\n"), "csv").text()
    assert (plain.ids, plain.row(0)) == (None, [("a", "1"), ("b", "2")])


def test_text_counts_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = pa.DictionaryArray.from_arrays(np.zeros(2000, np.int32), pa.array(["x" * 1000]))
    table = ItemTable(parquet(tmp_path, a=text, b=text), "parquet")
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.003")
    words = r"^x\.parquet: the text of its cells, written out, would take 0\.0 GB .*shorten"
    with pytest.raises(InputError, match=words):
        table.text()
    assert len(table.text(1).cells) == 2000


def test_sizes_are_of_four_bytes_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(tables, "check_memory", lambda *a, **k: given.append(a))
    path = parquet(tmp_path, id=["x", "y"], a=[1, 2], b=[3, 4])
    ItemTable(path, "parquet").numbers()
    ItemTable(path, "parquet").text(1)
    what, disk = "x.parquet: 2 rows of 2 columns", path.stat().st_size
    assert [call for call in given if call[0] == what] == [(what, 16, disk), (what, 32, disk)]


def test_ids_from_elsewhere() -> None:
    found = check_ids(["b", "a"], "items")
    assert (found.tolist(), found.dtype.kind) == (["b", "a"], "U")
    with pytest.raises(InputError, match=r"^items has the id 'b' twice; every item needs one"):
        check_ids(["a", "b", "c", "b", "c"], "items")
