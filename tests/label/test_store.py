"""The database of judgements: durable, once a pair, readable, and never half-written."""

from __future__ import annotations

import csv
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.label import export_judgements, is_judgements_database, read_judgements
from likewise.label.statements import AnswerConflict
from likewise.label.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "judgements.db")
    yield store
    store.close()


def test_answers_come_back_in_order_with_not_sure_as_none(store):
    store.record("Ada", "a", "b", 1).result()
    store.record("Bo", "b", "a", 0).result()
    store.record("Ada", "c", "a", None).result()
    assert read_judgements(store.path) == {
        "left": ["a", "b", "c"],
        "right": ["b", "a", "a"],
        "same": [1, 0, None],
        "annotator": ["Ada", "Bo", "Ada"],
    }


def test_the_same_answer_again_is_one_answer_and_another_is_refused(store):
    first = store.record("Ada", "a", "b", 1).result()
    assert store.record("Ada", "b", "a", 1).result() == first  # whichever stood on the left
    with pytest.raises(AnswerConflict):
        store.record("Ada", "b", "a", 0).result()
    with pytest.raises(AnswerConflict):
        store.record("Ada", "a", "b", None).result()
    assert store.count() == 1


def test_undo_takes_back_only_ones_own_answer_and_keeps_a_trace(store):
    mine = store.record("Ada", "a", "b", 1).result()
    with pytest.raises(AnswerConflict):
        store.undo("Bo", mine).result()
    assert store.undo("Ada", mine).result() == mine
    assert store.undo("Ada", mine).result() == mine  # a retry after a lost reply
    assert read_judgements(store.path)["same"] == []
    history = store.history("Ada").result()
    assert history.standing == []
    assert [judgement.id for judgement in history.undone] == [mine]
    assert store.record("Ada", "a", "b", 0).result() != mine


def test_a_failing_task_does_not_take_its_neighbours_with_it(store):
    store.record("Ada", "a", "b", 1).result()
    hold, held = threading.Event(), threading.Event()

    def block(_):
        held.set()
        hold.wait()

    store.submit(block)  # so that the next three share one commit
    held.wait()
    good = store.record("Ada", "a", "c", 1)

    def half_done(db):
        db.execute("DELETE FROM judgements")
        raise AnswerConflict("after having written")

    bad = store.submit(half_done)
    also_good = store.record("Ada", "b", "c", 1)
    hold.set()
    good.result()
    also_good.result()
    with pytest.raises(AnswerConflict):
        bad.result()
    assert read_judgements(store.path)["same"] == [1, 1, 1]


def test_a_commit_that_fails_acknowledges_nobody(store):
    store._connection.execute("PRAGMA max_page_count = 1")  # a disk that is full
    futures = [store.record("Ada", "a" * 5000, f"{k}", 1) for k in range(20)]
    failed = [f for f in futures if isinstance(f.exception(), sqlite3.OperationalError)]
    assert failed
    assert len(read_judgements(store.path)["same"]) == len(futures) - len(failed)


def test_many_threads_lose_nothing(store):
    def judge(person):
        return [store.record(f"p{person}", "x", f"{k}", k % 2).result() for k in range(50)]

    with ThreadPoolExecutor(8) as pool:
        ids = [identity for part in pool.map(judge, range(8)) for identity in part]
    assert len(set(ids)) == 400
    assert len(read_judgements(store.path)["left"]) == 400


def test_everything_survives_a_new_start(store, tmp_path):
    store.keep_items(["a", "b"])
    store.record("Ada", "a", "b", 1).result()
    copy = Store(store.path)  # while the other is still open, as after a kill
    assert copy.key == store.key
    assert len(copy.history("Ada").result().standing) == 1
    copy.close()


def test_a_database_is_its_owners_alone(store):
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_answers_are_written_ahead_and_synchronised(store):
    pragma = store._connection.execute
    assert pragma("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert pragma("PRAGMA synchronous").fetchone()[0] == 2  # FULL


def test_export_writes_csv_and_parquet(store, tmp_path):
    store.record("Ada", "=cmd()", 'b "quoted", ü', 1).result()
    store.record("Bo", "a", "b", None).result()
    assert export_judgements(store.path, tmp_path / "out.csv") == 2
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["left", "right", "same", "annotator"],
        ["'=cmd()", 'b "quoted", ü', "1", "Ada"],
        ["a", "b", "", "Bo"],
    ]
    export_judgements(store.path, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == read_judgements(store.path)
    assert sorted(path.name for path in tmp_path.glob("*out*")) == ["out.csv", "out.parquet"]


def test_export_says_what_it_cannot_write(store, tmp_path):
    with pytest.raises(InputError, match="must end in"):
        export_judgements(store.path, tmp_path / "out.xlsx")
    for name in ("out.csv", "out.parquet"):
        with pytest.raises(InputError, match="there is no folder"):
            export_judgements(store.path, tmp_path / "no" / name)


def _sqlite(path: Path, script: str) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p, "no file"),
        (lambda p: (p.mkdir(), p)[1], "no file"),
        (lambda p: (p.write_bytes(b"left,right,same\n" * 100), p)[1], "not a database"),
        (lambda p: (p.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4000), p)[1], "not a data"),
        (lambda p: _sqlite(p, "CREATE TABLE t (a); INSERT INTO t VALUES (1)"), "not one of judge"),
        (
            lambda p: _sqlite(p, "PRAGMA application_id = 1279871813; PRAGMA user_version = 9"),
            "newer version",
        ),
        (
            lambda p: _sqlite(
                p,
                "PRAGMA application_id = 1279871813; PRAGMA user_version = 1;"
                'CREATE TABLE judgements (id, "left", "right", same, annotator);'
                "INSERT INTO judgements VALUES (1, 'a', 'b', 7, 'Ada')",
            ),
            "the answer 7",
        ),
        (
            lambda p: _sqlite(
                p,
                "PRAGMA application_id = 1279871813; PRAGMA user_version = 1;"
                'CREATE TABLE judgements (id, "left", "right", same, annotator);'
                "INSERT INTO judgements VALUES (1, x'00', 'b', 1, 'Ada')",
            ),
            "not text",
        ),
        (
            lambda p: _sqlite(p, "PRAGMA application_id = 1279871813; PRAGMA user_version = 1;"),
            "cannot be read",
        ),
    ],
)
def test_a_file_of_another_kind_gets_one_sentence(tmp_path, make, message):
    path = make(tmp_path / "file.db")
    with pytest.raises(InputError, match=message):
        read_judgements(path)


def test_a_database_of_something_else_is_never_written_to(tmp_path):
    path = _sqlite(tmp_path / "other.db", "CREATE TABLE t (a)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="not one of judgements"):
        Store(path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Store(tmp_path / "no" / "judgements.db")


def test_the_kind_of_a_file_is_told_by_its_header(store, tmp_path):
    store.record("Ada", "a", "b", 1).result()
    other = tmp_path / "pairs.csv"
    other.write_text("left,right,same\n")
    assert is_judgements_database(store.path)
    assert not is_judgements_database(other)
    assert not is_judgements_database(tmp_path / "missing.db")


def test_an_empty_file_becomes_a_database(tmp_path):
    path = tmp_path / "judgements.db"
    path.touch()  # as a kill between making the file and its tables leaves it
    store = Store(path)
    store.record("Ada", "a", "b", 1).result()
    store.close()
    assert read_judgements(path)["same"] == [1]


def test_a_private_export_numbers_people(store, tmp_path):
    for who in ("Zoe", "Ada", "Zoe"):
        store.record(who, f"{who}'s {len(list(tmp_path.iterdir()))}", "b", 1).result()
    export_judgements(store.path, tmp_path / "out.parquet", private=True)
    found = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert set(found["annotator"]) == {"person 1", "person 2"}
    assert found["annotator"][0] == "person 1"  # who came first, whatever the name
    with pytest.raises(InputError, match="holds people's names"):
        export_judgements(store.path, tmp_path / "copy.db", private=True)
