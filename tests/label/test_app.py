"""The application: what people see and what is kept, also over a reload or a new start."""

from __future__ import annotations

import threading

import pytest
from PIL import Image

from label_people import Visitor
from likewise.label import create_app, read_judgements
from likewise.pairs import Pairs


@pytest.fixture
def items(tmp_path):
    folder = tmp_path / "items"
    folder.mkdir()
    for k in range(5):
        Image.new("RGB", (12, 12), (k * 40, 0, 0)).save(folder / f"{k}.png")
    return folder


@pytest.fixture
def database(tmp_path):
    return tmp_path / "judgements.db"


@pytest.fixture
def app(items, database):
    return create_app(items, database, show_names=True)


def test_answers_are_stored_as_shown(app, database):
    ada = Visitor(app, "Ada")
    shown = []
    for answer in ("same", "different", "unsure"):
        shown.append(ada.shown())
        assert ada.answer(answer).status_code == 200
    stored = read_judgements(database)
    assert list(zip(stored["left"], stored["right"], strict=True)) == shown
    assert stored["same"] == [1, 0, None]
    assert stored["annotator"] == ["Ada"] * 3
    assert ada.state["mine"] == 3


def test_everybody_judges_every_pair_once_and_is_thanked(app, database):
    people = [Visitor(app, name) for name in ("Ada", "Bo")]
    for person in people:
        while person.state["pair"] is not None:
            assert person.answer().status_code == 200
    stored = read_judgements(database)
    pairs = {
        (who, frozenset(pair))
        for who, *pair in zip(stored["annotator"], stored["left"], stored["right"], strict=True)
    }
    assert len(pairs) == len(stored["same"]) == 20
    assert people[1].state["everyone"] == 20


def test_a_reload_and_a_new_start_show_the_same_open_pair(app, items, database):
    ada = Visitor(app, "Ada")
    ada.answer()
    before = ada.state["pair"]
    assert ada.client.get("/api/state").json()["pair"] == before
    anew = create_app(items, database, show_names=True)  # as after a SIGKILL: nothing was closed
    later = Visitor(anew)
    later.client.cookies = ada.client.cookies
    state = later.client.get("/api/state").json()
    assert state == ada.state
    later.name, later.state = "Ada", state
    assert later.answer().status_code == 200


def test_undo_shows_the_pair_again_also_after_a_reload(app, items, database):
    ada = Visitor(app, "Ada")
    assert ada.state["undo"] is None
    first = ada.shown()
    ada.answer()
    second = ada.shown()
    ada.answer("different")
    assert ada.undo().status_code == 200
    assert ada.shown() == second
    assert ada.undo().status_code == 200
    assert ada.shown() == first
    assert ada.state["mine"] == ada.state["everyone"] == 0
    assert Visitor(create_app(items, database, show_names=True), "Ada").shown() == first
    ada.answer("unsure")
    assert ada.shown() == second
    assert read_judgements(database)["same"] == [None]


def test_a_retry_is_one_answer_and_a_second_thought_a_conflict(app, database):
    ada = Visitor(app, "Ada")
    ticket = ada.state["pair"]["ticket"]
    ada.answer("same")
    assert ada.answer("same", ticket=ticket).status_code == 200
    assert ada.answer("different", ticket=ticket).status_code == 409
    assert read_judgements(database)["same"] == [1]
    assert ada.state["mine"] == ada.state["everyone"] == 1


def test_undo_is_ones_own_and_needs_a_number(app):
    ada, bo = Visitor(app, "Ada"), Visitor(app, "Bo")
    ada.answer()
    assert bo.undo(judgement=ada.state["undo"]).status_code == 409
    for nonsense in (None, "1", 0, -1, 1.0, True, 2**70):
        assert bo.undo(judgement=nonsense).status_code == 422
    assert ada.undo().json()["mine"] == 0


def test_people_can_change_their_name(app):
    ada = Visitor(app, "Ada")
    ada.answer()
    assert ada.post("/api/leave").json()["annotator"] is None
    assert ada.client.get("/api/state").json()["annotator"] is None
    assert ada.answer().status_code == 401
    assert ada.post("/api/join", annotator="Bo").json()["mine"] == 0
    assert ada.post("/api/join", annotator=" Ada ").json()["mine"] == 1


def test_pictures_are_fetched_by_key_and_announced_ahead(app):
    ada = Visitor(app, "Ada")
    announced = set(ada.state["preload"])
    response = ada.client.get(ada.state["pair"]["left"]["picture"])
    assert response.status_code == 200
    assert response.headers["content-type"] == "image/png"
    ada.answer()
    assert {ada.state["pair"][side]["picture"] for side in ("left", "right")} == announced


def test_names_that_may_tell_the_class_are_not_sent(items, database):
    ada = Visitor(create_app(items, database), "Ada")
    response = ada.answer()
    assert "name" not in response.json()["pair"]["left"]
    assert ".png" not in response.text


def test_rows_of_a_table_are_sent_as_text(tmp_path, database):
    table = tmp_path / "t.csv"
    table.write_text("id,title\nx,Lamp\ny,<b>Table</b>\n")
    ada = Visitor(create_app(table, database, question="Same product?"), "Ada")
    pair = ada.state["pair"]
    assert sorted(pair[side]["cells"] for side in ("left", "right")) == [
        [["title", "<b>Table</b>"]],
        [["title", "Lamp"]],
    ]
    assert ada.state["question"] == "Same product?"
    assert ada.client.get("/items/0").status_code == 404


def test_a_picture_that_cannot_be_read_does_not_stop_the_work(items, database):
    for path in items.iterdir():
        path.write_bytes(b"no longer a picture")
    ada = Visitor(create_app(items, database), "Ada")
    response = ada.client.get(ada.state["pair"]["left"]["picture"])
    assert response.status_code == 422
    assert ada.answer("unsure").status_code == 200


def test_items_that_went_away_are_a_conflict_and_their_answers_stay(items, database):
    ada = Visitor(create_app(items, database, show_names=True), "Ada")
    ada.answer()
    gone = ada.shown()[0]
    (items / gone).unlink()
    anew = Visitor(create_app(items, database, show_names=True), "Ada")
    assert anew.answer(ticket=ada.state["pair"]["ticket"]).status_code == 409
    assert gone not in anew.shown()
    assert len(read_judgements(database)["same"]) == 1


def test_a_full_disk_is_said_and_nothing_is_acknowledged(app, database, monkeypatch):
    import sqlite3

    from likewise.label import statements

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    ada = Visitor(app, "Ada")
    with monkeypatch.context() as patch:
        patch.setattr(statements, "record", full)
        response = ada.answer()
    assert response.status_code == 503
    assert "disk" in response.json()["error"]
    assert ada.state["mine"] == 0
    assert ada.answer().status_code == 200


def test_a_suggester_at_work_delays_nobody(items, database):
    everybody_answered, waited_for = threading.Event(), []

    def suggester(judgements):
        waited_for.append(everybody_answered.wait(60))
        return []

    app = create_app(items, database, suggester=suggester)
    for person in [Visitor(app, f"p{k}") for k in range(8)]:
        for _ in range(8):
            assert person.answer().status_code == 200
    everybody_answered.set()
    while not waited_for:
        everybody_answered.wait(0.01)
    assert all(waited_for)  # every fit was still at work when the last answer had come


def test_suggested_pairs_are_asked(items, database):
    suggested = threading.Event()

    def suggester(judgements):
        suggested.set()
        return [("0.png", "1.png")]

    app = create_app(items, database, suggester=suggester, show_names=True)
    for k in range(5):
        person = Visitor(app, f"p{k}")
        while person.state["pair"] is not None:
            person.answer()
    assert suggested.wait(30)
    firsts = [frozenset(Visitor(app, f"q{k}").shown()) for k in range(40)]
    assert firsts.count(frozenset({"0.png", "1.png"})) > 20  # by chance it would be 4


def test_the_library_reads_the_database_directly(app, items, database):
    ada = Visitor(app, "Ada")
    for answer in ("same", "different", "unsure", "same"):
        ada.answer(answer)
    pairs = Pairs.read(database, item_ids=sorted(path.name for path in items.iterdir()))
    assert len(pairs) == 3
    assert pairs.dropped == 1
    assert list(pairs.annotator_names) == ["Ada"]


def test_closing_the_application_closes_the_store(app, database):
    from label_people import TestClient

    with TestClient(app, base_url="http://127.0.0.1:8000"):
        pass
    assert not database.with_name("judgements.db-wal").exists()
