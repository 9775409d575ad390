"""Tables on disk: columns and rows as they stand there, and sentences that name the place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.io import tables
from likewise.io.csv_lines import FirstLine, empty_rows
from likewise.io.records import RecordTable
from likewise.io.tables import (
    CsvTable,
    ParquetTable,
    Table,
    arrow_errors,
    listing,
    open_table,
    require_columns,
    text_errors,
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def rows(table: Table, names: list[str], text: list[str], way: str = "batches") -> list[dict]:
    return pa.Table.from_batches(getattr(table, way)(names, text)).select(names).to_pylist()


class TestCsv:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_whichever_delimiter_the_first_line_uses_most(
        self, tmp_path: Path, delimiter: str
    ) -> None:
        lines = [["a", "b", "c,;"], ["1", "x", "2.5"], ["2", "", "3"]]
        quoted = [[f'"{cell}"' if "," in cell else cell for cell in line] for line in lines]
        text = "\n".join(delimiter.join(line) for line in quoted)
        table = CsvTable(write(tmp_path / "x.csv", "\ufeff" + text))
        assert table.delimiter == delimiter
        assert table.columns == ["a", "b", "c,;"]
        found = rows(table, ["c,;", "a", "b"], ["b"])
        assert found == [{"c,;": 2.5, "a": 1, "b": "x"}, {"c,;": 3.0, "a": 2, "b": ""}]

    def test_text_stays_as_written_and_numbers_may_lack(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", "a,b\n01,NA\nnull,1\n"))
        assert rows(table, ["a", "b"], ["a"]) == [{"a": "01", "b": None}, {"a": "null", "b": 1}]

    def test_blanks_around_a_column_name_are_none_of_it(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", 'a; b;" c "\n1;2;3\n'))
        assert table.columns == ["a", "b", "c"]
        assert rows(table, ["c", "b"], ["b"], "number_batches") == [{"c": 3.0, "b": "2"}]
        with pytest.raises(InputError, match="several columns named a;"):
            CsvTable(write(tmp_path / "x.csv", "a, a\n1,2\n"))

    def test_what_a_spreadsheet_leaves_is_nothing(self, tmp_path: Path) -> None:
        text = 'sep=;\na;b,,,;;\n;;;\n1;"\n;;;\n";;\n\n ;;;\n;2;;\n;;;\n3;x;;\n'
        table = CsvTable(write(tmp_path / "x.csv", text))
        assert table.columns == ["a", "b,,,"]
        found = [tuple(row.values()) for row in rows(table, table.columns, table.columns)]
        assert found == [("1", "\n;;;\n"), ("", "2"), ("3", "x")]
        assert [table.where(k) for k in range(3)] == ["line 6", "line 9", "line 11"]

    def test_a_row_of_separators_is_found_at_the_end_of_a_block(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path / "x.csv", "a;b\n1;2\n;\n3;4\n")
        for size in range(1, 12):
            monkeypatch.setattr("likewise.io.csv_lines._BLOCK_BYTES", size)
            assert empty_rows(path, FirstLine(";", ["a", "b"], 0)) == [2]

    def test_of_columns_without_a_name_the_first_is_pandas_index(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", ",a,,\n7,1,,\n8,2,,\n"))
        assert table.columns == ["", "a"]
        assert rows(table, ["a", ""], [""]) == [{"a": 1, "": "7"}, {"a": 2, "": "8"}]
        assert CsvTable(write(tmp_path / "x.csv", "a,,,b,\n1,2,3,4,\n")).columns == ["a", "", "b"]

    def test_without_a_header_columns_go_by_number(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", "1,1\n2,3\n"), header=False)
        assert table.columns == ["column 1", "column 2"]
        assert rows(table, ["column 2"], []) == [{"column 2": 1}, {"column 2": 3}]
        assert table.where(1) == "line 2"

    def test_whole_numbers_do_not_forbid_fractions_further_down(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tables, "_BLOCK_BYTES", 16)
        text = "a,b,c\n" + "1,,x\n" * 10 + "2.5,7.5,y\n"
        table = CsvTable(write(tmp_path / "x.csv", text))
        found = rows(table, ["a", "b", "c"], ["c"], "number_batches")
        assert found[-1] == {"a": 2.5, "b": 7.5, "c": "y"}
        assert found[:10] == [{"a": 1.0, "b": None, "c": "x"}] * 10
        with pytest.raises(pa.ArrowInvalid, match=r"2\.5"):
            rows(table, ["a"], [])

    def test_the_row_is_in_the_complaint(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", "a,b\n1,2\n3\n"))
        words = r"^x\.csv cannot be read: .*Row #3"
        with pytest.raises(InputError, match=words), arrow_errors(table.path):
            list(table.batches(["a"], []))

    def test_the_line_of_a_row(self, tmp_path: Path) -> None:
        text = 'a;b\n\n1;"two\nlines"\n\n2;x\n3;y'
        table = CsvTable(write(tmp_path / "x.csv", text))
        assert [table.where(row) for row in range(4)] == ["line 4", "line 6", "line 7", "row 3"]

    def test_lines_of_other_systems_and_of_broken_text(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_bytes(b'a,b\r\n1,"\xff\r\ny"\r\n2,x\r\n')
        table = CsvTable.__new__(CsvTable)
        table.path, table.delimiter, table._header = tmp_path / "x.csv", ",", True
        table._first = FirstLine(",", ["a", "b"], 0)
        assert [table.where(row) for row in range(3)] == ["line 3", "line 4", "row 2"]

    def test_text_stays_so_beside_numbers_and_other_columns_stay_away(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", "a,b,c\n1,01,x\n2,02,y\n"))
        for way, kind in (("batches", pa.int64()), ("number_batches", pa.float64())):
            (batch,) = getattr(table, way)(["b", "a"], ["b"])
            assert batch.schema.names == ["b", "a"]
            assert batch.schema.types == [pa.string(), kind]
            assert batch["b"].to_pylist() == ["01", "02"]

    def test_a_cell_may_go_on_beyond_its_line_and_block(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tables, "_BLOCK_BYTES", 24)
        table = CsvTable(write(tmp_path / "x.csv", "a,b\n" + '1,"two\nlines"\n' * 8))
        assert rows(table, ["a", "b"], ["b"]) == [{"a": 1, "b": "two\nlines"}] * 8

    def test_a_cell_too_long_for_python_leaves_the_number_of_the_row(self, tmp_path: Path) -> None:
        table = CsvTable(write(tmp_path / "x.csv", f"a\n{'x' * 200_000}\ny\n"))
        assert len(rows(table, ["a"], ["a"])) == 2
        assert table.where(1) == "row 1"

    def test_columns_of_one_name(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.csv", "a,b,a,c,c\n1,2,3,4,5\n")
        with pytest.raises(InputError, match=r"x\.csv has several columns named a, c; rename"):
            CsvTable(path)
        assert len(CsvTable(path, header=False).columns) == 5

    def test_other_encodings_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "x.csv"
        path.write_bytes(b"a,\xe4\n")
        with pytest.raises(InputError, match=r"x\.csv is not UTF-8 text \(byte 2\); save it as"):
            CsvTable(path)

    def test_an_empty_file_has_no_columns(self, tmp_path: Path) -> None:
        assert CsvTable(write(tmp_path / "x.csv", "")).columns == []


class TestParquet:
    def test_a_folder_is_its_parts_in_the_order_of_names(self, tmp_path: Path) -> None:
        parquet(tmp_path / "b.parquet", a=[3], t=["z"])
        parquet(tmp_path / "a.parquet", a=[1, 2], t=["x", None])
        table = ParquetTable(tmp_path)
        assert table.columns == ["a", "t"]
        assert table.count_rows() == 3
        files = tmp_path.glob("*.parquet")
        assert table.bytes_on_disk() == sum(path.stat().st_size for path in files)
        for way in ("batches", "number_batches"):
            found = rows(table, ["t", "a"], ["t"], way)
            assert [row["a"] for row in found] == [1, 2, 3]
            assert [row["t"] for row in found] == ["x", None, "z"]
            batches = getattr(table, way)(["t"], ["t"])
            assert [batch.schema.names for batch in batches] == [["t"], ["t"]]  # and no other
        assert table.where(7) == "row 7"

    def test_text_comes_as_a_dictionary_asked_for_or_not(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "x.parquet", t=["x", "y"], b=[b"1", b"2"], n=[1, 2])
        for batch in ParquetTable(path).batches(["t", "b", "n"], ["n"]):
            kinds = [pa.types.is_dictionary(column.type) for column in batch.columns]
            assert kinds == [True, True, False]

    def test_batches_are_bounded_in_rows_and_cells(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = ParquetTable(parquet(tmp_path / "x.parquet", a=range(10), b=range(10)))

        def sizes(*names: str) -> list[int]:
            return [len(batch) for batch in table.batches(names, [])]

        monkeypatch.setattr(tables, "_BATCH_CELLS", 8)
        assert sizes("a") == [8, 2]
        assert sizes("a", "b") == [4, 4, 2]
        monkeypatch.setattr(ParquetTable, "batch_rows", 3)
        assert sizes("a", "b") == [3, 3, 3, 1]
        monkeypatch.setattr(tables, "_BATCH_CELLS", 1)
        assert sizes("a", "b") == [1] * 10

    def test_parts_that_differ(self, tmp_path: Path) -> None:
        parquet(tmp_path / "a.parquet", a=[1], b=[1], c=[1])
        parquet(tmp_path / "b.parquet", a=[1])
        table = ParquetTable(tmp_path)
        with pytest.raises(InputError, match=r"^b\.parquet lacks the column b, c\.$"):
            list(table.batches(["a", "b", "c"], []))

    def test_lists_are_no_values(self, tmp_path: Path) -> None:
        table = ParquetTable(parquet(tmp_path / "x.parquet", a=[1], b=[[1, 2]]))
        words = r"^x\.parquet holds lists or structures in b, not one value\.$"
        with pytest.raises(InputError, match=words):
            list(table.batches(["a", "b"], []))
        assert rows(table, ["a"], []) == [{"a": 1}]

    def test_all_parts_count_and_their_own_size_is_fine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        zeros = np.zeros(50_000, np.int8)
        for name in ("a", "b"):
            parquet(tmp_path / f"{name}.parquet", a=zeros)
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0003")
        with pytest.raises(InputError, match=r": 100,000 rows of 1 columns would take"):
            list(ParquetTable(tmp_path).batches(["a"], []))
        noise = np.random.default_rng(0).normal(size=100_000)
        table = ParquetTable(parquet(tmp_path / "c", a=noise))
        assert len(rows(table, ["a"], [])) == 100_000

    def test_what_was_read_is_let_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Buffered ahead, the whole file would be in memory before the last batch."""
        values = np.random.default_rng(0).normal(size=1 << 19)
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table({"a": values}), path, row_group_size=1 << 15)
        monkeypatch.setattr(ParquetTable, "batch_rows", 1 << 13)
        before = pa.total_allocated_bytes()
        batches = ParquetTable(path).batches(["a"], [])
        most = max(pa.total_allocated_bytes() for _ in batches) - before
        assert most < path.stat().st_size / 2

    def test_columns_of_one_name(self, tmp_path: Path) -> None:
        table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
        pq.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(InputError, match="several columns named a; rename"):
            ParquetTable(tmp_path / "x.parquet")

    def test_damage_is_a_sentence(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.parquet", "PAR1 and no more")
        with pytest.raises(InputError, match=r"^x\.parquet cannot be read: [^\n]*[^.]\.$"):
            ParquetTable(path)

    def test_what_is_not_kept_must_fit_by_row_groups_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "x.parquet"
        zeros = np.zeros(100_000, np.int8)
        pq.write_table(pa.table({"a": zeros, "b": zeros}), path, row_group_size=10_000)
        names = ["a", "b"]
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0007")
        with pytest.raises(InputError, match=r"x\.parquet: 100,000 rows of 2 columns would take"):
            list(ParquetTable(path).batches(names, []))
        assert len(rows(ParquetTable(path, kept=False), names, [])) == 100_000
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.00005")
        with pytest.raises(InputError, match=r"x\.parquet: 10,000 rows of 2 columns would take"):
            list(ParquetTable(path, kept=False).batches(names, []))
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0009")
        assert len(rows(ParquetTable(path), names, [])) == 100_000


class TestRecords:
    def test_rows_in_memory(self) -> None:
        records = [{"a": 1, "b": 2.5}, {"c": "x", "a": None}, {"a": 3, "c": 4}]
        table = RecordTable(Path("x.json"), records)
        assert table.columns == ["a", "b", "c"]
        found = rows(table, ["b", "c", "a"], ["a"])
        assert found == [
            {"b": 2.5, "c": None, "a": "1"},
            {"b": None, "c": "x", "a": None},
            {"b": None, "c": "4", "a": "3"},
        ]
        assert table.where(2) == "record 2"

    def test_text_is_text_where_every_cell_is_blank(self) -> None:
        (batch,) = RecordTable(Path("x.json"), [{"a": None}]).batches(["a"], ["a"])
        assert batch.schema.types == [pa.string()]

    def test_bytes_are_refused_where_they_stand(self) -> None:
        table = RecordTable(Path("in/x.db"), [{"a": 1, "b": "x"}, {"a": 2, "b": b"x"}], "row")
        assert rows(table, ["a"], []) == [{"a": 1}, {"a": 2}]
        with pytest.raises(InputError, match=r"^x\.db, row 1: b holds bytes; it must be text"):
            list(table.batches(["a", "b"], []))


def test_a_table_by_its_kind(tmp_path: Path) -> None:
    assert isinstance(open_table(write(tmp_path / "x", "a,b\n"), "csv"), CsvTable)
    assert isinstance(open_table(parquet(tmp_path / "y", a=[1]), "parquet"), ParquetTable)


def test_names_for_a_message() -> None:
    assert listing([]) == "none"
    assert listing(["a", "b"]) == "a, b"
    assert listing(["a" * 40, "b" * 41]) == f"{'a' * 40}, {'b' * 40}..."
    assert listing(list("abc"), most=3) == "a, b, c"
    assert listing(list("abcd"), most=2) == "a, b and 2 more"
    assert listing([str(k) for k in range(21)]).endswith("18, 19 and 1 more")
    assert listing([str(k) for k in range(20)]).endswith("18, 19")


def test_columns_that_are_lacking(tmp_path: Path) -> None:
    table = CsvTable(write(tmp_path / "x.csv", "a,b\n"))
    require_columns(table, ["b", "a"])
    with pytest.raises(InputError) as one:
        require_columns(table, ["a", "c"], "; or rename b")
    expected = "x.csv lacks the column c; the columns there are a, b; or rename b."
    assert str(one.value) == expected
    with pytest.raises(InputError) as two:
        require_columns(table, ["d", "c"])
    assert str(two.value) == "x.csv lacks the columns d, c; the columns there are a, b."


@pytest.mark.parametrize(
    "error",
    [pa.ArrowInvalid("bad.\nmore"), OSError("bad"), OverflowError("bad.")],
)
def test_arrows_complaints_are_one_sentence(error: Exception) -> None:
    words = r"^x\.csv cannot be read: bad\.$"
    with pytest.raises(InputError, match=words), arrow_errors(Path("in/x.csv")):
        raise error


def test_pythons_complaints_about_csv_are_one_sentence() -> None:
    words = r"^x\.csv cannot be read as CSV: field too long\.$"
    with pytest.raises(InputError, match=words), text_errors(Path("in/x.csv")):
        raise tables.csv.Error("field too long")
