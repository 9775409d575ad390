"""Reading and writing judgements one a row: CSV, Parquet, SQLite, JSON records."""

from __future__ import annotations

import json
import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.formats import read_links, read_pairs, write_pairs


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def judged() -> Pairs:
    return Pairs([0, 1, 2], [3, 2, 3], [1, 0, 1], ["ann", "bob", "ann"], [1.0, 0.5, 2.0])


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.parquet"])
def test_written_judgements_read_back(tmp_path: Path, judged: Pairs, name: str) -> None:
    judged.write(tmp_path / name)
    back = Pairs.read(tmp_path / name)
    for column in ("left", "right", "same", "annotator", "annotator_names", "weight"):
        np.testing.assert_array_equal(getattr(back, column), getattr(judged, column))
    assert back.left.dtype == np.int32
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.parquet"])
def test_names_of_items_survive_writing(tmp_path: Path, name: str) -> None:
    source = write(tmp_path / "source.csv", "left,right,same\ncat,dog,0\ndog,ant,1\n")
    named = read_pairs(source)
    np.testing.assert_array_equal(named.item_ids, ["ant", "cat", "dog"])
    write_pairs(named, tmp_path / name)
    back = read_pairs(tmp_path / name)
    np.testing.assert_array_equal(back.item_ids, named.item_ids)
    np.testing.assert_array_equal(back.left, named.left)


def test_csv_for_people_holds_no_formula(tmp_path: Path) -> None:
    pairs = Pairs([0], [1], [1], ["=HYPERLINK(1)"], item_ids=["@a", "b"])
    pairs.write(tmp_path / "p.csv")
    assert "'=HYPERLINK(1)" in (tmp_path / "p.csv").read_text()
    assert "'@a" in (tmp_path / "p.csv").read_text()
    pairs.write(tmp_path / "p.parquet")
    assert read_pairs(tmp_path / "p.parquet").annotator_names.tolist() == ["=HYPERLINK(1)"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, judged: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write(tmp_path / "pairs.csv", "precious")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("likewise.pairs.formats.writing._batch", fail)
    with pytest.raises(OSError, match="disk full"):
        write_pairs(judged, target)
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]


@pytest.mark.parametrize("name", ["pairs.pickle", "pairs"])
def test_writing_needs_a_name_that_says_how(tmp_path: Path, judged: Pairs, name: str) -> None:
    with pytest.raises(InputError, match=r"must end in \.csv or \.parquet"):
        write_pairs(judged, tmp_path / name)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_any_column_names_and_delimiters(tmp_path: Path, delimiter: str) -> None:
    rows = [["who", "first", "second", "verdict"], ["ann", "0", "1", "Same"], ["", "1", "2", "NO"]]
    text = "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows)
    path = write(tmp_path / "survey.csv", text)
    pairs = read_pairs(path, left="first", right="second", same="verdict", annotator="who")
    np.testing.assert_array_equal(pairs.same, [True, False])
    np.testing.assert_array_equal(pairs.annotator_names, ["", "ann"])
    np.testing.assert_array_equal(pairs.annotator, [1, 0])


def test_unanswered_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", "left,right,same\n0,1,1\n1,2,\n2,3,unsure\n0,3,0\n")
    pairs = read_pairs(path)
    assert (len(pairs), pairs.dropped, pairs.n_items) == (2, 2, 4)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([True, False, None]), [True, False]),
        (pa.array([1, -1, None], pa.int8()), [True, False]),
        (pa.array([1.0, 0.0, float("nan")]), [True, False]),
        (pa.array(["same", "different", "?"]).dictionary_encode(), [True, False]),
    ],
)
def test_parquet_answers_of_any_type(tmp_path: Path, column: pa.Array, expected: list) -> None:
    table = pa.table({"left": [0, 1, 2], "right": [1, 2, 0], "same": column})
    pq.write_table(table, tmp_path / "p.parquet")
    pairs = read_pairs(tmp_path / "p.parquet")
    np.testing.assert_array_equal(pairs.same, expected)
    assert pairs.dropped == 1


def test_a_folder_of_parquet_parts_is_one_table(tmp_path: Path) -> None:
    for k in range(3):
        part = pa.table(
            {"left": [k], "right": [k + 1], "same": [k % 2], "annotator": [f"p{2 - k}"]}
        )
        pq.write_table(part, tmp_path / f"part-{k}.parquet")
    pairs = read_pairs(tmp_path)
    np.testing.assert_array_equal(pairs.left, [0, 1, 2])
    np.testing.assert_array_equal(pairs.annotator_names[pairs.annotator], ["p2", "p1", "p0"])


def test_many_batches_agree_on_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch has its own dictionary; the codes of the whole must not depend on the cut."""
    rng = np.random.default_rng(0)
    names = rng.choice(["eve", "ann", "bob", "", "zoe"], 500)
    left = rng.integers(50, size=500)
    table = pa.table({"left": left, "right": left + 1, "same": left % 2, "annotator": names})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=64)
    monkeypatch.setattr("likewise.io.tables._BATCH_ROWS", 7)
    pairs = read_pairs(tmp_path / "p.parquet")
    np.testing.assert_array_equal(pairs.annotator_names[pairs.annotator], names)
    np.testing.assert_array_equal(pairs.left, left)


def test_ids_may_turn_to_text_after_the_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.io.tables._BLOCK_BYTES", 64)
    numbers = "".join(f"{k},{k + 1},1\n" for k in range(20))
    words = "".join(f"a{k},b{k},0\n" for k in range(60))
    pairs = read_pairs(write(tmp_path / "p.csv", "left,right,same\n" + numbers + words))
    assert len(pairs) == 80
    assert pairs.item_ids is not None
    assert pairs.item_ids[pairs.left[0]] == "0"
    assert pairs.item_ids[pairs.right[-1]] == "b59"


BAD_ROWS = [
    ("0,1,perhaps", r"p\.csv, line 5: same is 'perhaps', which is none of 1/0"),
    ("0,,1", r"p\.csv, line 5: right is blank"),
    ("0,0,1", r"p\.csv, line 5: item 0 is compared with itself"),
    ("0,-4,1", r"p\.csv, line 5: right is -4, but item indices start at 0"),
    ("0,9,1", r"p\.csv, line 5: right is 9, but there are only 4 items \(0 to 3\)"),
    ("0,1x,1", r"p\.csv, line 5: right is '1x', not a whole number like the others"),
    ("0,1.5,1", r"p\.csv, line 5: right is '1\.5', not a whole number like the others"),
    ("0,1,-1", r"p\.csv, line 4: same is 0 while other answers are -1"),
]


@pytest.mark.parametrize(("row", "message"), BAD_ROWS)
def test_a_bad_row_is_told_with_its_line(tmp_path: Path, row: str, message: str) -> None:
    path = write(tmp_path / "p.csv", f"left,right,same\n0,1,1\n\n1,2,0\n{row}\n2,3,1\n")
    with pytest.raises(InputError, match=message):
        read_pairs(path, n_items=4)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_line_is_right_after_a_quoted_line_break(tmp_path: Path, delimiter: str) -> None:
    text = 'left,note,right,same\n0,"two\nlines",1,1\n1,x,2,eh\n'.replace(",", delimiter)
    with pytest.raises(InputError, match=r"line 4: same is 'eh'"):
        read_pairs(write(tmp_path / "p.csv", text))


def test_numbers_as_text_are_positions_where_none_has_a_leading_zero(tmp_path: Path) -> None:
    rows = {"left": ["0", "10"], "right": ["9", "99"], "same": [1, 0]}
    pq.write_table(pa.table(rows), tmp_path / "p.parquet")
    pairs = read_pairs(tmp_path / "p.parquet")
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 10], [9, 99])
    assert pairs.item_ids is None
    pq.write_table(pa.table(rows | {"left": ["0", "010"]}), tmp_path / "p.parquet")
    named = read_pairs(tmp_path / "p.parquet").item_ids
    assert named is not None
    assert sorted(named.tolist()) == ["0", "010", "9", "99"]


def test_a_column_of_lists_is_named(tmp_path: Path) -> None:
    rows = {"left": [0, 1], "right": [[1], [2]], "same": [1, 0]}
    pq.write_table(pa.table(rows), tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"p\.parquet holds lists or structures in right, not"):
        read_pairs(tmp_path / "p.parquet")


@pytest.mark.parametrize("weight", ["2\v", "1_0", "٣", "x" * 3000])
@pytest.mark.parametrize("row", [0, 3, 6])
def test_what_only_python_takes_for_a_number_is_told(tmp_path: Path, weight: str, row: int) -> None:
    """Found by make fuzz: float() reads these, Arrow does not."""
    weights = ["1"] * 7
    weights[row] = weight
    rows = [f"{k},{k + 1},1,{given}" for k, given in enumerate(weights)]
    (tmp_path / "j.csv").write_text("\n".join(["left,right,same,weight", *rows]), encoding="utf-8")
    with pytest.raises(InputError, match=rf"line {row + 2}: weight is .*not a number") as told:
        Pairs.read(tmp_path / "j.csv")
    assert len(str(told.value)) < 700


@pytest.mark.parametrize(
    ("weight", "message"),
    [("-1", r"line 3: weight is -1\.0"), ("heavy", "line 3: weight is 'heavy'")],
)
def test_a_bad_weight(tmp_path: Path, weight: str, message: str) -> None:
    text = f"left,right,same,weight\n0,1,1,1\n1,2,0,{weight}\n"
    with pytest.raises(InputError, match=message):
        read_pairs(write(tmp_path / "p.csv", text))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_missing_column_names_those_that_are_there(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    if suffix == ".csv":
        path.write_text("left,other,answer\n0,1,1\n")
    else:
        pq.write_table(pa.table({"left": [0], "other": [1], "answer": [1]}), path)
    with pytest.raises(InputError, match=r"lacks the columns right, same; .* left, other, answer"):
        read_pairs(path)
    with pytest.raises(InputError, match="lacks the column person"):
        read_pairs(path, right="other", same="answer", annotator="person")


WRONG_FILES = [
    ("p.csv", b"", "p.csv is empty"),
    ("p.csv", b"left,right,same\n", "p.csv holds no judgement"),
    ("p.csv", b"left,right,same\n0,1,\n", "holds no judgement: all 1 answers are blank"),
    ("p.csv", b"PAR1....PAR1", r"named like CSV but holds Parquet; rename it to p\.parquet"),
    ("p.parquet", b"left,right,same\n0,1,1\n", r"named like Parquet but holds CSV"),
    ("p.parquet", b"PAR1 this is not really one PAR1", "p.parquet cannot be read"),
    ("p.db", b"SQLite format 3\x00 and then nothing", "p.db cannot be read"),
    ("p.json", b'{"left": [0', "p.json is not valid JSON"),
    ("p.json", b'{"left": [0]}', "neither dedupe's training file"),
    ("p.csv", b'[{"a": 1}]', "named like CSV but holds JSON"),
    ("p.csv", pickle.dumps([1, 2, 3]), "is a pickle, which could run code"),
    ("p.pkl", b"(lp0\nI1\na.", "is a pickle, which could run code"),
    ("p.npy", b"\x93NUMPY\x01\x00", "is a NumPy array"),
    ("p.xlsx", b"PK\x03\x04rest", "is a ZIP archive"),
    ("p.csv", "left,right,same\n0,1,1\n".encode("utf-16"), "is text in UTF-16"),
    ("p.csv", b"left,right,same\n0,1,\x00\n", "is not text"),
    ("p.csv", "left,right,same,é\n0,1,1\n".encode("latin-1"), "is not UTF-8 text"),
    ("p.csv", b"left,left,right,same\n0,1,1,1\n", "several columns named left"),
    ("p.csv", b"left,right,same\n0,1\n", "cannot be read: .*Expected 3 columns"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG_FILES)
def test_a_wrong_file_gets_one_sentence(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_pairs(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_pairs(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="is a folder without Parquet files"):
        read_pairs(tmp_path)
    with pytest.raises(InputError, match="format must be one of pairs, splink"):
        read_pairs(write(tmp_path / "p.csv", "left,right,same\n0,1,1\n"), format="excel")
    with pytest.raises(InputError, match=r"p\.csv is a table, but dedupe writes JSON"):
        read_pairs(tmp_path / "p.csv", format="dedupe")


class TestSqlite:
    def make(self, path: Path, *tables: str) -> Path:
        connection = sqlite3.connect(path)
        for table in tables:
            connection.execute(f'CREATE TABLE {table} ("left", "right", same, annotator)')
            rows = [("a", "b", 1, "ann"), ("b", "c", 0, "bob"), ("a", "c", None, "bob")]
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE TABLE notes (text)")
        connection.commit()
        connection.close()
        return path

    def test_any_table_with_the_columns(self, tmp_path: Path) -> None:
        pairs = read_pairs(self.make(tmp_path / "p.db", "answers"), item_ids=["a", "b", "c"])
        np.testing.assert_array_equal(pairs.right, [1, 2])
        assert pairs.dropped == 1

    def test_which_table(self, tmp_path: Path) -> None:
        path = self.make(tmp_path / "p.db", "first", '"se""cond"')
        with pytest.raises(InputError, match=r'several tables of judgements \(first, se"cond\)'):
            read_pairs(path)
        assert len(read_pairs(path, table='se"cond')) == 2
        with pytest.raises(InputError, match="no table third; the tables there are first"):
            read_pairs(path, table="third")

    def test_no_table_has_the_columns(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"no table with the columns .* notes: text"):
            read_pairs(self.make(tmp_path / "p.db"))

    def test_a_bad_answer(self, tmp_path: Path) -> None:
        path = self.make(tmp_path / "p.db", "answers")
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT INTO answers VALUES ('a', 'b', 'eh', 'ann')")
        with pytest.raises(InputError, match=r"p\.db, row 3: same is 'eh'"):
            read_pairs(path)


def test_json_records(tmp_path: Path) -> None:
    """Label Studio's JSON-MIN is such a list."""
    rows = [
        {"image1": "a.png", "image2": "b.png", "kind": "Same", "annotator": 1, "id": 3},
        {"image1": "a.png", "image2": "c.png", "kind": "Different", "annotator": 2, "id": 4},
    ]
    path = write(tmp_path / "p.json", json.dumps(rows))
    pairs = read_pairs(path, left="image1", right="image2", same="kind")
    np.testing.assert_array_equal(pairs.same, [True, False])
    np.testing.assert_array_equal(pairs.annotator_names, ["1", "2"])
    with pytest.raises(InputError, match="lacks the columns left, right, same"):
        read_pairs(path)


class TestLinks:
    @pytest.mark.parametrize("header", ["", "id1,id2\n", "one,two\n"])
    def test_two_lists(self, tmp_path: Path, header: str) -> None:
        must = write(tmp_path / "must.csv", header + "0,1\n1,2\n")
        cannot = write(tmp_path / "cannot.txt", "0 3\n2\t3\n")
        pairs = read_links(must, cannot, n_items=5)
        np.testing.assert_array_equal(pairs.left, [0, 1, 0, 2])
        np.testing.assert_array_equal(pairs.right, [1, 2, 3, 3])
        np.testing.assert_array_equal(pairs.same, [True, True, False, False])
        assert pairs.n_items == 5

    def test_names_and_parquet(self, tmp_path: Path) -> None:
        must = write(tmp_path / "must.csv", "left;right\ncat;lion\n")
        pq.write_table(pa.table({"a": ["cat"], "b": ["dog"]}), tmp_path / "cannot.parquet")
        pairs = read_links(must, tmp_path / "cannot.parquet", item_ids=["dog", "cat", "lion"])
        np.testing.assert_array_equal(pairs.right, [2, 0])

    def test_mistakes(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="give a must-link file"):
            read_links()
        three = write(tmp_path / "three.csv", "0,1\n0,1,1\n")
        with pytest.raises(InputError, match=r"three\.csv must have two columns.* 3 in line 2"):
            read_links(must=three)
        pq.write_table(pa.table({"a": [1], "b": [2], "c": [3]}), tmp_path / "t.parquet")
        with pytest.raises(InputError, match=r"must have two columns.* not a, b, c"):
            read_links(cannot=tmp_path / "t.parquet")


def test_the_database_of_the_labelling_page(tmp_path: Path) -> None:
    """Answers that stand, by the items' own names; "not sure" is no answer."""
    store = pytest.importorskip("likewise.label.store")
    page = store.Store(tmp_path / "judgements.db")
    page.keep_items(["a.jpg", "b.jpg", "c.jpg"])
    page.record("ann", "c.jpg", "a.jpg", 1).result()
    page.record("bob", "b.jpg", "c.jpg", 0).result()
    page.record("bob", "a.jpg", "b.jpg", None).result()
    page.close()
    pairs = read_pairs(tmp_path / "judgements.db", item_ids=["a.jpg", "b.jpg", "c.jpg"])
    np.testing.assert_array_equal(pairs.left, [2, 1])
    np.testing.assert_array_equal(pairs.right, [0, 2])
    np.testing.assert_array_equal(pairs.same, [True, False])
    np.testing.assert_array_equal(pairs.annotator_names[pairs.annotator], ["ann", "bob"])
    assert (pairs.dropped, pairs.n_items) == (1, 3)


class TestOddNames:
    @pytest.mark.parametrize(
        "content",
        [
            '[{"left": "a\\ud800", "right": "b", "same": 1}]',
            '[{"left": "a", "right": "b", "same": 1, "annotator": "\\udc00x"}]',
            '{"distinct": [[{"id": "a\\ud800"}, {"id": "b"}]], "match": []}',
        ],
    )
    def test_half_a_character(self, tmp_path: Path, content: str) -> None:
        path = write(tmp_path / "p.json", content)
        with pytest.raises(InputError, match=r"p\.json .*half (of )?a character"):
            read_pairs(path)

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_half_a_character_is_not_written(self, tmp_path: Path, suffix: str) -> None:
        for pairs in (
            Pairs([0], [1], [1], ["ann\ud800"]),
            Pairs([0], [1], [1], item_ids=["a", "\udc00"]),
        ):
            with pytest.raises(InputError, match="cannot hold half a character"):
                pairs.write(tmp_path / f"p{suffix}")
        assert list(tmp_path.iterdir()) == []

    def test_a_doubled_column(self, tmp_path: Path) -> None:
        names = ["left", "right", "same", "left"]
        pq.write_table(pa.table([pa.array([k]) for k in (0, 1, 1, 2)], names), tmp_path / "p.pq")
        with pytest.raises(InputError, match=r"p\.pq has several columns named left"):
            read_pairs(tmp_path / "p.pq")
        pq.write_table(pa.table([pa.array([0]), pa.array([1])], ["a", "a"]), tmp_path / "l.pq")
        with pytest.raises(InputError, match=r"l\.pq has several columns named a"):
            read_links(must=tmp_path / "l.pq")

    def test_a_file_name_that_is_too_long(self, tmp_path: Path) -> None:
        path = tmp_path / f"{'x' * 300}.csv"
        message = r"the file x{40}\.\.\. cannot be used: its name is longer than the system allows"
        with pytest.raises(InputError, match=message):
            read_pairs(path)
        with pytest.raises(InputError, match=message):
            read_links(must=path)
        with pytest.raises(InputError, match=message):
            Pairs([0], [1], [1]).write(path)

    def test_names_of_people_and_items_may_be_long(self, tmp_path: Path) -> None:
        pairs = Pairs([0], [1], [1], ["a" * 300], item_ids=["i" * 300, "j" * 300])
        pairs.write(tmp_path / "p.csv")
        back = read_pairs(tmp_path / "p.csv")
        assert back.annotator_names.tolist() == ["a" * 300]
        assert back.item_ids.tolist() == ["i" * 300, "j" * 300]
