"""Databases that compute: views without end, cells without end, functions of the file's own."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io.sqlite_files import BoundedConnection, connect_read_only, fetch_all
from likewise.label import read_judgements
from likewise.label.database import open_database
from likewise.pairs import Pairs

COUNT = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n)"
ENDLESS = {
    "rows": f"{COUNT} SELECT 'a' || k AS left, 'b' AS right, 1 AS same FROM n",
    "silence": f"{COUNT} SELECT 'a' AS left, 'b' AS right, 1 AS same FROM n WHERE k < 0",
    "text": f"{COUNT} SELECT hex(zeroblob(400000)) AS left, 'b' AS right, 1 AS same FROM n",
    "sorting": f"{COUNT} SELECT hex(zeroblob(400000)) AS left, 'b' AS right, 1 AS same FROM n "
    "ORDER BY k DESC",
    "long": "SELECT hex(zeroblob(900000000)) AS left, 'b' AS right, 1 AS same",
}


def database(path: Path, query: str) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE VIEW judgements AS {query}")
    return path


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_view_without_end_is_ended(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.io.sqlite_files.MAX_STEPS", 10**7)
    monkeypatch.setattr("likewise.io.sqlite_files.MAX_SECONDS", 3)
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.05")
    with pytest.raises(InputError, match=r"x\.db (gives more than|takes too long|cannot be read)"):
        Pairs.read(database(tmp_path / "x.db", ENDLESS[kind]))


def test_the_labelling_database_is_not_trusted_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.io.sqlite_files.MAX_STEPS", 10**7)
    connection = open_database(tmp_path / "j.db")
    connection.execute("DROP TABLE judgements")
    connection.execute(
        f"CREATE VIEW judgements AS {COUNT} SELECT 1 AS id, 'a' AS left, 'b' AS right, 1 AS same, "
        "'c' AS annotator FROM n WHERE k < 0"
    )
    connection.close()
    with pytest.raises(InputError, match="takes too long"):
        read_judgements(tmp_path / "j.db")


def test_a_schema_cannot_call_what_it_should_not(tmp_path: Path) -> None:
    query = "SELECT load_extension('x') AS left, 'b' AS right, 1 AS same"
    with pytest.raises(InputError, match="cannot be read"):
        Pairs.read(database(tmp_path / "x.db", query))
    connection = connect_read_only(tmp_path / "x.db")
    assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("CREATE TABLE t (a)")
    connection.close()


def test_ctrl_c_ends_a_query(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", ENDLESS["silence"])
    code = (
        "import sys; from pathlib import Path; from likewise.io import sqlite_files as s\n"
        "s.MAX_STEPS, s.MAX_SECONDS = 10**12, 1e9\n"
        "c = s.connect_read_only(Path(sys.argv[1])); print(1, flush=True)\n"
        "try: s.fetch_all(c, 'SELECT * FROM judgements', Path(sys.argv[1]))\n"
        "except KeyboardInterrupt: print('stopped')"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20)[0].strip() == b"stopped"


def test_tables_and_finite_views_are_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (left, right, same)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [(f"i{k}", f"j{k}", k % 2) for k in range(50_000)]
        )
    assert len(Pairs.read(tmp_path / "x.db")) == 50_000
    connection = connect_read_only(tmp_path / "x.db")
    assert len(fetch_all(connection, "SELECT * FROM t", tmp_path / "x.db")) == 50_000
    connection.close()


def test_a_pipe_is_no_database(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.db")
    done = threading.Event()

    def read() -> None:
        with pytest.raises(InputError, match="pipe"):
            connect_read_only(tmp_path / "x.db")
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(10)


def test_rows_as_they_are_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "a ?#.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT value AS k FROM json_each('[1, \"x\", null]')")
    found = connect_read_only(path)
    assert fetch_all(found, "SELECT k FROM t", path) == [(1,), ("x",), (None,)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        found.execute("DELETE FROM t")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        fetch_all(found, "SELECT k FROM other", path)
    assert found.execute("PRAGMA trusted_schema").fetchone() == (0,)
    assert found.execute("PRAGMA busy_timeout").fetchone() == (5000,)
    assert found.isolation_level is None
    found.close()


def test_rows_and_their_text_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path / "x.db", f"{COUNT} SELECT k FROM n LIMIT 5000")
    found = connect_read_only(path)
    held = 20 * path.stat().st_size
    monkeypatch.setattr("likewise.io.sqlite_files.memory_limit", lambda: 5000 * 200 - held)
    assert len(fetch_all(found, "SELECT k FROM judgements", path)) == 5000
    with pytest.raises(InputError, match=r"x\.db gives more than 4,8\d\d rows, far more"):
        fetch_all(found, "SELECT hex(zeroblob(5)) FROM judgements LIMIT 5000", path)
    monkeypatch.setattr("likewise.io.sqlite_files.memory_limit", lambda: 5000 * 200 - held - 1)
    with pytest.raises(InputError, match=r"more than 5,000 rows.*set LIKEWISE_MAX_GB"):
        fetch_all(found, "SELECT k FROM judgements", path)
    found.close()


def test_steps_and_time_are_counted(tmp_path: Path) -> None:
    found = connect_read_only(database(tmp_path / "x.db", "SELECT 1 AS k"))
    found.bound(10_000, 60)
    assert [found._count() for _ in range(4)] == [0, 0, 1, 1]  # 5,000 at a time
    assert found.is_spent
    found.bound(10**9, 60)
    assert found._count() == 0
    found.bound(10**9, -1)
    assert found._count() == 1
    found.close()


def test_a_larger_file_may_take_longer_and_no_cell_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = []
    monkeypatch.setattr(BoundedConnection, "bound", lambda _, *limits: allowed.append(limits))
    path = database(tmp_path / "x.db", "SELECT 1 AS k")
    before = path.stat().st_size
    found = connect_read_only(path)
    assert found.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == 1_000_000
    found.close()
    with path.open("ab") as file:
        file.truncate(before + 10**8)
    connect_read_only(path).close()
    (steps, seconds), (more_steps, more_seconds) = allowed
    assert (more_steps - steps, more_seconds - seconds) == (4 * 10**8, pytest.approx(20))
    assert steps == 10**8 + 4 * before
    assert seconds == pytest.approx(20, abs=0.1)


def test_a_query_that_somebody_else_stops(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", ENDLESS["silence"])
    found = connect_read_only(path)
    found.set_progress_handler(lambda: 1, 1000)
    with pytest.raises(KeyboardInterrupt):
        fetch_all(found, "SELECT * FROM judgements", path)
    found.close()
