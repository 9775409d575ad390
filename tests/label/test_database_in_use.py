"""The database while people judge: copied, removed, shared by mistake, given other items."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from forked import Forked, print_line
from label_people import Visitor
from likewise.errors import InputError
from likewise.io.lock import exclusive
from likewise.label import create_app, export_judgements, read_judgements, serve
from likewise.label.store import BUSY_SECONDS, DatabaseLost, Store


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return table(tmp_path / "items.csv", "abcdef")


def table(path: Path, names: str) -> Path:
    path.write_text("id,text\n" + "".join(f"{name},{name * 3}\n" for name in names))
    return path


def copied(database: Path, folder: Path) -> list[int]:
    """The answers in a copy of the file alone, as ``cp`` makes it."""
    folder.mkdir(exist_ok=True)
    shutil.copy(database, folder / "copy.db")
    return read_judgements(folder / "copy.db")["same"]


def wait_for(what, seconds: float = 15.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_a_copy_of_the_file_is_a_backup_while_it_is_served(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    store.record("Ada", "a", "b", 1).result()
    assert wait_for(lambda: copied(store.path, tmp_path / "once") == [1])
    store.record("Ada", "a", "c", 0).result()
    assert wait_for(lambda: copied(store.path, tmp_path / "twice") == [1, 0])
    store.close()


def test_a_copy_is_not_far_behind_however_busy_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    until, k = time.monotonic() + 2.5 * BUSY_SECONDS, 0
    while time.monotonic() < until:
        store.record("Ada", "a", f"b{k}", 1).result()
        k += 1
        time.sleep(0.01)  # never idle for long enough
    shutil.copy(store.path, tmp_path / "copy.db")
    assert len(read_judgements(tmp_path / "copy.db")["same"]) > 0
    store.close()


def record_and_die(path: Path) -> None:
    Store(path).record("Ada", "a", "b", 1).result()
    time.sleep(1.5)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_server_leaves_a_file_that_can_be_copied(tmp_path: Path) -> None:
    Forked(record_and_die, tmp_path / "j.db").communicate()
    assert copied(tmp_path / "j.db", tmp_path / "copy") == [1]


def test_the_database_exports_a_whole_copy_of_itself(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    store.record("Ada", "a", "b", 1).result()
    assert export_judgements(store.path, tmp_path / "copy.db") == 1
    assert read_judgements(tmp_path / "copy.db")["same"] == [1]
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert not list(tmp_path.glob("copy.db-*"))
    with pytest.raises(InputError, match="is there already"):
        export_judgements(store.path, tmp_path / "copy.db")
    store.close()


@pytest.mark.parametrize("harm", ["removed", "renamed", "replaced"])
def test_a_lost_database_stops_acknowledging(items: Path, tmp_path: Path, harm: str) -> None:
    database = tmp_path / "j.db"
    ada = Visitor(create_app(items, database), "Ada")
    assert ada.answer().status_code == 200
    if harm == "removed":
        database.unlink()
    else:
        database.rename(tmp_path / "elsewhere.db")
    if harm == "replaced":
        shutil.copy(tmp_path / "elsewhere.db", database)
    response = ada.answer()
    assert response.status_code == 503
    assert "gone" in response.json()["error"]
    assert ada.undo().status_code == 503
    if harm == "renamed":
        (tmp_path / "elsewhere.db").rename(database)
        assert ada.answer().status_code == 200
        assert len(read_judgements(database)["same"]) == 2


def test_what_was_committed_to_a_file_that_went_away_meanwhile_is_not_acknowledged(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "j.db")

    def work(db: sqlite3.Connection) -> int:
        os.rename(store.path, tmp_path / "elsewhere.db")
        return 1

    with pytest.raises(DatabaseLost, match="removed, renamed or replaced"):
        store.submit(work, writes=True).result()
    assert store.submit(lambda db: 7).result() == 7  # reading goes on
    store.close()


# -- two servers ---------------------------------------------------------------------------------


def test_two_servers_on_one_database_are_refused(items: Path, tmp_path: Path) -> None:
    database = tmp_path / "j.db"
    first = Forked(partial(serve, announce=print_line), items, database, "127.0.0.1", 0, False)
    try:
        assert first.stdout.readline().startswith("http")
        with pytest.raises(InputError, match="in use by another labelling server; judge there"):
            serve(items, database, port=0, open_browser=False)
        (tmp_path / "link.db").symlink_to(database)
        with pytest.raises(InputError, match="in use"):
            serve(items, tmp_path / "link.db", port=0, open_browser=False)
    finally:
        first.kill()
        first.communicate()
    with exclusive(database, "is in use."):  # a kill frees it
        pass
    assert not list(tmp_path.glob(".*.lock"))


def test_a_person_is_not_locked_out_by_answers_given_elsewhere(items: Path, tmp_path: Path) -> None:
    database = tmp_path / "j.db"
    here = Visitor(create_app(items, database, show_names=True), "Ada")
    there = Visitor(create_app(items, database, show_names=True), "Ada")
    pair = here.shown()
    assert there.shown() == pair
    assert there.answer("different").status_code == 200
    assert here.answer("same").status_code == 409
    here.state = here.post("/api/join", annotator="Ada").json()
    assert here.shown() != pair
    assert here.answer("same").status_code == 200


# -- other items ---------------------------------------------------------------------------------


def judged(items: Path, database: Path, answers: int = 6) -> None:
    ada = Visitor(create_app(items, database), "Ada")
    for _ in range(answers):
        assert ada.answer().status_code == 200


def test_a_database_refuses_other_items(items: Path, tmp_path: Path) -> None:
    database = tmp_path / "j.db"
    judged(items, database)
    other = table(tmp_path / "other.csv", "uvwxyz")
    with pytest.raises(InputError, match=r"holds answers about other items: '\w' and \d more"):
        create_app(other, database)
    judged(table(tmp_path / "more.csv", "abcdefgh"), database, 1)  # further ones are welcome
    judged(table(tmp_path / "fewer.csv", "abcde"), database, 1)  # and one may have been removed
    assert len(read_judgements(database)["same"]) == 8


def test_a_database_without_answers_takes_new_items(items: Path, tmp_path: Path) -> None:
    database = tmp_path / "j.db"
    create_app(items, database)
    create_app(table(tmp_path / "other.csv", "uvwxyz"), database)
    with sqlite3.connect(database) as connection:
        assert {row[0] for row in connection.execute("SELECT id FROM items")} == set("uvwxyz")


def test_items_that_go_by_numbers_are_known_by_their_content(tmp_path: Path) -> None:
    database, path = tmp_path / "j.db", tmp_path / "items.csv"
    path.write_text("text\n" + "".join(f"text {k}\n" for k in range(10)))
    judged(path, database)
    judged(path, database, 1)
    path.write_text("text\n" + "".join(f"text {k}\n" for k in range(12)))
    judged(path, database, 1)
    path.write_text("text\n" + "".join(f"other {k}\n" for k in range(10)))
    with pytest.raises(InputError, match="number 0 is not what it was"):
        create_app(path, database)
    pixels = np.random.default_rng(0).integers(256, size=(10, 4, 4), dtype=np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    np.save(tmp_path / "y.npy", pixels[::-1])
    judged(tmp_path / "x.npy", tmp_path / "k.db")
    with pytest.raises(InputError, match="is not what it was"):
        create_app(tmp_path / "y.npy", tmp_path / "k.db")
