"""Sorting: moves are kept, undone, retried and resumed; a finished sort is read as judgements."""

from __future__ import annotations

import csv
import sqlite3
from itertools import combinations

import pyarrow.parquet as pq
import pytest

from label_people import Sorter, Visitor
from likewise.errors import InputError
from likewise.label import create_app, export_judgements, read_judgements, serve
from likewise.label.database import open_database
from likewise.label.screens import joined, next_screen
from likewise.pairs import Pairs


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,text\n" + "".join(f"{k % 3}-{k:02d},text {k}\n" for k in range(40)))
    return path


@pytest.fixture
def database(tmp_path):
    return tmp_path / "judgements.db"


@pytest.fixture
def app(items, database):
    return create_app(items, database, sort=12, show_names=True)


def kind(name):
    return int(name[0])


def names_in(sorter, pile):
    keys = {key for key, where in sorter.state["sort"]["piles"].items() if where == pile}
    return {item["name"] for item in sorter.items if item["key"] in keys}


def rows_of(database):
    columns = read_judgements(database)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_a_finished_sort_is_every_pair_of_its_items(app, database):
    ada = Sorter(app, "Ada")
    assert len(ada.items) == 12
    names = [item["name"] for item in ada.items]
    ada.sort_all(kind)
    rows = rows_of(database)
    assert {frozenset((r["left"], r["right"])) for r in rows} == set(
        map(frozenset, combinations(names, 2))
    )
    assert len(rows) == 66
    for row in rows:
        assert row["same"] == (kind(row["left"]) == kind(row["right"]))
        assert (row["annotator"], row["sort"]) == ("Ada", 1)
    pairs = Pairs.read(database)
    assert (len(pairs), pairs.annotator_names.tolist()) == (66, ["Ada"])
    assert pairs.is_consistent()


def test_a_screen_that_is_not_finished_is_kept_but_is_no_judgement(app, database):
    ada = Sorter(app, "Ada")
    ada.move(ada.keys()[:4], 0)
    assert rows_of(database) == []
    with pytest.raises(InputError, match="no judgement yet: nobody has answered, or finished"):
        Pairs.read(database)
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM moves").fetchone()[0] == 4


def test_items_left_out_and_a_screen_skipped_are_no_judgements(app, database):
    ada = Sorter(app, "Ada")
    first = ada.keys()
    ada.move(first[:2], 3)
    ada.move(first[2:3], 1)
    ada.move(first[2:3], None)  # back again
    ada.finish()
    assert ada.state["mine"] == 1
    assert [row["same"] for row in rows_of(database)] == [1]
    ada.finish()  # the next one as it is
    assert ada.state["mine"] == 2
    assert len(rows_of(database)) == 1


def test_a_reload_and_a_new_start_show_the_piles_as_they_stand(app, items, database):
    ada = Sorter(app, "Ada")
    ada.move(ada.keys()[:3], 0)
    ada.move(ada.keys()[3:5], 1)
    anew = Sorter(create_app(items, database, sort=12, show_names=True))
    anew.client.cookies = ada.client.cookies
    state = anew.client.get("/api/state").json()
    assert state["sort"]["piles"] == ada.state["sort"]["piles"]
    assert [item["key"] for item in state["sort"]["items"]] == ada.keys()
    anew.name, anew.state, anew.items = "Ada", state, state["sort"]["items"]
    assert anew.move(anew.keys()[5:], 2).status_code == 200
    assert anew.finish().status_code == 200
    assert len(rows_of(database)) == 66


def test_undo_goes_back_move_by_move_and_into_the_screen_before(app, database):
    ada = Sorter(app, "Ada")
    assert ada.state["undo"] is None
    first = ada.keys()
    ada.move(first[:6], 0)
    ada.move(first[6:], 1)
    ada.move(first[:1], 1)
    ada.undo()
    assert ada.state["sort"]["piles"] == dict.fromkeys(first[:6], 0) | dict.fromkeys(first[6:], 1)
    ada.finish()
    assert ada.state["mine"] == 1
    second = ada.keys()
    assert second != first
    ada.move(second[:1], 0)
    ada.undo()
    ada.undo()  # nothing is left on this screen: the one before opens again
    assert ada.state["mine"] == 0
    assert ada.keys() == first
    assert rows_of(database) == []
    ada.finish()
    assert ada.keys() == second
    assert len(rows_of(database)) == 66


def test_a_move_sent_again_counts_once_and_an_old_page_is_told(app):
    ada = Sorter(app, "Ada")
    keys = ada.keys()
    old = ada.state
    ada.move(keys[:2], 0)
    body = {"annotator": "Ada", "ticket": old["sort"]["ticket"], "after": 0, "pile": 0}
    again = ada.post("/api/move", **body, items=keys[:2])  # its reply was lost
    assert again.status_code == 200
    assert again.json()["sort"]["after"] == 1
    other = ada.post("/api/move", **body, items=keys[2:4])  # from a tab that saw nothing of it
    assert other.status_code == 409
    assert "another tab" in other.json()["error"]
    undo = ada.state["undo"]
    ada.undo()
    assert ada.post("/api/undo", annotator="Ada", undo=undo).status_code == 200  # a retry
    assert ada.state["sort"]["piles"] == {}
    stale = ada.state["sort"] | {"after": 0}
    assert ada.act("finish", after=stale["after"]).status_code == 409
    done = ada.state["sort"]
    assert ada.finish().status_code == 200
    retry = {"annotator": "Ada", "ticket": done["ticket"], "after": done["after"]}
    assert ada.post("/api/finish", **retry).status_code == 200
    assert ada.state["mine"] == 1
    assert ada.post("/api/move", **retry, items=keys[:1], pile=0).status_code == 409


def test_people_do_not_reach_into_each_others_screens(app):
    ada, bo = Sorter(app, "Ada"), Sorter(app, "Bo")
    ada.move(ada.keys()[:2], 0)
    assert bo.move(bo.keys()[:2], 0, ticket=ada.state["sort"]["ticket"]).status_code == 422
    assert bo.post("/api/undo", annotator="Bo", undo=ada.state["undo"]).status_code == 409
    foreign = set(ada.keys()) - set(bo.keys())
    assert bo.move(sorted(foreign), 0).status_code == 409
    assert len(names_in(ada, 0)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"pile": 35},
        {"pile": -1},
        {"pile": True},
        {"pile": "0"},
        {"items": []},
        {"items": "x"},
        {"items": [1]},
        {"items": ["x"] * 36},
        {"after": -1},
        {"after": None},
        {"after": 2**70},
        {"ticket": "x"},
        {"ticket": None},
    ],
)
def test_nonsense_is_refused_in_a_sentence(app, wrong):
    ada = Sorter(app, "Ada")
    body = {"items": ada.keys()[:1], "pile": 0} | wrong
    response = ada.act("move", **body)
    assert response.status_code in (409, 422)
    assert response.json()["error"].endswith(".")
    undo = ada.post("/api/undo", annotator="Ada", undo=wrong)
    assert undo.status_code == 422


def test_nobody_meets_a_screen_twice_and_each_item_comes_once_beside_anchors(
    items, database, monkeypatch
):
    monkeypatch.setattr("secrets.token_bytes", lambda count: b"k" * count)  # the same screens
    app = create_app(items, database, sort=15, show_names=True)
    ada, screens, fresh = Sorter(app, "Ada"), [], []
    while ada.state["sort"] is not None:
        names = [item["name"] for item in ada.items]
        screens.append(frozenset(names))
        fresh += [name for name in names if name not in fresh]
        ada.sort_all(kind)
    assert len(set(screens)) == len(screens)
    assert sorted(fresh) == sorted({name for screen in screens for name in screen})
    assert len(fresh) == 40
    assert Pairs.read(database).is_consistent()  # the anchors agree
    assert Pairs.read(database).describe().components == 3  # and join the screens
    assert ada.state["mine"] == len(screens)


def test_the_next_screen_is_a_function_of_the_person():
    def coming(person="Ada", seen=(1, 2, 3), groups=((1, 2), (3,))):
        return next_screen(person, 1, set(seen), groups, 1000, 10, b"k")

    assert coming() == coming(seen=(3, 2, 1))
    assert coming() != coming("Bo")
    assert len(set(coming())) == 10
    assert len(set(coming()) & {1, 2}) == len(set(coming()) & {3}) == 1  # one of each group
    assert coming(seen=range(1000)) == []
    assert len(coming(seen=range(999))) == 3  # one is left, with two anchors


def test_piles_of_several_sorts_are_joined_by_what_they_share():
    assert joined([[1, 2], [3], [2, 4], [5, 3], [6]]) == [[1, 2, 4], [3, 5], [6]]
    assert joined([]) == []


def test_two_people_sort_at_once(app, database):
    ada, bo = Sorter(app, "Ada"), Sorter(app, "Bo")
    for mine, other in zip(ada.keys(), bo.keys(), strict=True):
        assert ada.move([mine], 0).status_code == 200
        assert bo.move([other], 1).status_code == 200
    ada.finish()
    bo.finish()
    rows = rows_of(database)
    assert [sum(row["annotator"] == who for row in rows) for who in ("Ada", "Bo")] == [66, 66]
    assert {row["sort"] for row in rows if row["annotator"] == "Ada"} == {1}


def test_answers_and_sorts_live_in_one_database_and_are_exported(items, database, tmp_path):
    ada = Visitor(create_app(items, database), "Ada")
    ada.answer("same")
    bo = Sorter(create_app(items, database, sort=3, show_names=True), "Bo")
    bo.sort_all(kind)
    assert [row["sort"] for row in rows_of(database)] == [None, 1, 1, 1]
    assert export_judgements(database, tmp_path / "out.csv") == 4
    with (tmp_path / "out.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["sort"] for row in written] == ["", "1", "1", "1"]
    export_judgements(database, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == read_judgements(database)
    for name in ("out.csv", "out.parquet"):
        assert len(Pairs.read(tmp_path / name)) == 4


def test_a_database_of_the_format_before_is_taken_further(items, database):
    Visitor(create_app(items, database), "Ada").answer("same")
    with sqlite3.connect(database) as connection:
        for table in ("sorts", "screens", "moves", "gold"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert read_judgements(database)["same"] == [1]  # as it is
    open_database(database).close()
    assert read_judgements(database)["same"] == [1]
    Sorter(create_app(items, database, sort=3, show_names=True), "Bo").sort_all(kind)
    assert read_judgements(database)["same"][0] == 1
    assert len(read_judgements(database)["same"]) == 4


def test_a_sort_larger_than_any_screen_is_refused(app, database):
    with sqlite3.connect(database) as connection:
        connection.executemany(
            "INSERT INTO sorts VALUES (1, 'Ada', ?, 0, '')", [(f"{k}",) for k in range(36)]
        )
    connection.close()
    with pytest.raises(InputError, match="more than 35 items"):
        read_judgements(database)


def test_what_cannot_be_is_refused_at_the_start(items, database, tmp_path):
    with pytest.raises(InputError, match="3 to 35 items"):
        create_app(items, database, sort=36)
    with pytest.raises(InputError, match="suggestions choose pairs"):
        create_app(items, database, sort=12, suggester=lambda answers: [])
    with pytest.raises(InputError, match="suggestions choose pairs"):
        serve(items, database, port=0, open_browser=False, sort=12, classes=3)
    Sorter(create_app(items, database, sort=12, show_names=True), "Ada").sort_all(kind)
    other = tmp_path / "other.csv"
    other.write_text("id,text\n" + "".join(f"x{k},x\n" for k in range(9)))
    with pytest.raises(InputError, match="answers about other items"):
        create_app(other, database, sort=3)
