"""People for hire: so many questions, gold ones among them, a code at the end, a table to pay."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import Counter

import pytest

from label_people import Sorter, Visitor
from likewise.errors import InputError
from likewise.label import create_app, read_judgements
from likewise.label.approvals import approvals, write_approvals
from likewise.label.asking import Listed, Questions
from likewise.label.hiring import Hiring
from likewise.pairs import Pairs


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,text\n" + "".join(f"{k % 3}-{k:02d},text {k}\n" for k in range(30)))
    return path


@pytest.fixture
def database(tmp_path):
    return tmp_path / "judgements.db"


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text(
        "left,right,same\n"
        + "".join(f"0-{3 * k:02d},1-{3 * k + 1:02d},0\n" for k in range(4))
        + "0-00,0-03,1\n1-01,1-04,1\n"
    )
    return path


def truth(pair):
    return "same" if pair[0][0] == pair[1][0] else "different"


def judge(person, count=10**6, answer=truth):
    """Answer up to so many pairs; returns them in order."""
    asked = []
    while person.state["pair"] is not None and len(asked) < count:
        pair = person.shown()
        asked.append(frozenset(pair))
        assert person.answer(answer(pair)).status_code == 200
    return asked


def table(database, name):
    with sqlite3.connect(database) as connection:
        rows = connection.execute(f"SELECT * FROM {name} ORDER BY id").fetchall()
    connection.close()
    return rows


def gold_pairs(path):
    with path.open() as file:
        return {frozenset((row["left"], row["right"])) for row in csv.DictReader(file)}


def test_each_person_gets_so_many_questions_with_gold_among_them(items, database, gold):
    hire = Hiring(per_person=20, gold=gold, gold_every=5)
    app = create_app(items, database, show_names=True, hire=hire)
    known, places = gold_pairs(gold), set()
    for k in range(8):
        asked = judge(Visitor(app, f"p{k}"))
        assert len(asked) == len(set(asked)) == 20
        due = [n for n, pair in enumerate(asked) if pair in known]
        assert {n // 5 for n in due} == {0, 1, 2, 3}
        places.add(tuple(due))
    assert len(places) > 1  # nobody can foresee where
    assert len(table(database, "gold")) + len(table(database, "judgements")) == 160
    stored = read_judgements(database)
    pairs = {frozenset(p) for p in zip(stored["left"], stored["right"], strict=True)}
    assert not pairs & known  # never mixed into what is learned from
    assert len(read_judgements(database, gold=True)["same"]) == 160
    assert len(Pairs.read(database)) == len(table(database, "judgements"))


def test_the_page_does_not_tell_which_question_is_gold(items, database, gold):
    app = create_app(items, database, hire=Hiring(per_person=12, gold=gold, gold_every=2))
    ada, shapes, undo = Visitor(app, "Ada"), set(), []
    while ada.state["pair"] is not None:
        shapes.add((tuple(sorted(ada.state)), tuple(sorted(ada.state["pair"]))))
        ada.answer()
        undo.append(ada.state["undo"])
    assert len(shapes) == 1
    assert undo == list(range(1, 13))  # one sequence of numbers


def test_an_answer_to_a_gold_question_is_undone_retried_and_resumed_like_any(items, database, gold):
    hire = Hiring(per_person=6, gold=gold, gold_every=2)
    ada = Visitor(create_app(items, database, show_names=True, hire=hire), "Ada")
    judge(ada)
    asked = []
    for _ in range(6):
        assert ada.undo().status_code == 200
        asked.append(frozenset(ada.shown()))
    assert table(database, "gold") == table(database, "judgements") == []
    again = Visitor(create_app(items, database, show_names=True, hire=hire), "Ada")
    assert judge(again) == asked[::-1]
    assert len(table(database, "gold")) == 3
    assert again.state["finish"]["code"]


def test_the_end_shows_a_code_and_where_to_go(items, database):
    hire = Hiring(per_person=2, finish="https://platform.example/done?cc={code}&who={person}")
    app = create_app(items, database, show_names=True, hire=hire)
    ada, bo = Visitor(app, "Ada L"), Visitor(app, "Bo")
    assert ada.state["finish"] is None
    judge(ada)
    judge(bo)
    code = ada.state["finish"]["code"]
    assert len(code) == 12
    assert code != bo.state["finish"]["code"]  # each has one of their own
    address = ada.state["finish"]["address"]
    assert address == f"https://platform.example/done?cc={code}&who=Ada%20L"
    ada.undo()
    assert ada.state["finish"] is None
    fixed = Hiring(per_person=2, code="C1ABC2")
    other = Visitor(create_app(items, database, hire=fixed), "Cy")
    for _ in range(2):
        other.answer()
    assert other.state["finish"] == {"code": "C1ABC2", "address": ""}


def test_listed_pairs_are_asked_and_no_others_each_as_often_as_the_rest(items, database, tmp_path):
    listed = [(f"{k % 3}-{k:02d}", f"{(k + 7) % 3}-{k + 7:02d}") for k in range(20)]
    path = tmp_path / "ask.csv"
    path.write_text("judgement,left,right,why\n" + "".join(f"1,{a},{b},x\n" for a, b in listed))
    hire = Hiring(per_person=8, pairs=path)
    app = create_app(items, database, show_names=True, hire=hire)
    people = [Visitor(app, f"p{k}") for k in range(5)]
    for _ in range(8):
        for person in people:
            judge(person, 1)
    stored = read_judgements(database)
    asked = Counter(frozenset(p) for p in zip(stored["left"], stored["right"], strict=True))
    assert set(asked) == {frozenset(pair) for pair in listed}
    assert set(asked.values()) == {2}  # 40 answers over 20 pairs
    # after a new start the counts are read back
    last = Visitor(create_app(items, database, show_names=True, hire=Hiring(pairs=path)), "last")
    judge(last)
    assert last.state["mine"] == 20


def test_a_listed_pair_that_somebody_looks_at_is_not_given_to_the_next():
    listed = Listed([5, 9])
    assert {listed.choose(name, [], hold=True) for name in ("a", "b")} == {5, 9}
    first = listed.choose("a", [], hold=True)
    assert listed.choose("a", [], hold=True) == first  # a reload
    listed.note(first, 1)
    assert listed.choose("a", [first], hold=True) != first
    assert listed.choose("a", [5, 9], hold=True) is None


def test_gold_questions_run_out_without_harm():
    questions = Questions(gold={7: True}, gold_every=2)
    due = [questions.next_gold("Ada", n, b"k", lambda code: True) for n in range(20)]
    assert due.count(7) == 10
    assert not any(questions.next_gold("Ada", n, b"k", lambda code: False) for n in range(20))


def test_who_comes_may_be_said_by_parameters_of_ones_own(items, database):
    app = create_app(items, database, hire=Hiring(parameters=("participant",)))
    assert Visitor(app).client.get("/api/state").json()["parameters"] == ["participant"]
    plain = create_app(items, database)
    names = Visitor(plain).client.get("/api/state").json()["parameters"]
    assert names == ["annotator", "PROLIFIC_PID", "workerId"]


def test_so_many_screens_of_a_person(items, database):
    app = create_app(items, database, sort=6, show_names=True, hire=Hiring(per_person=2))
    ada = Sorter(app, "Ada")
    for _ in range(2):
        assert ada.state["finish"] is None
        ada.sort_all(lambda name: int(name[0]))
    assert ada.state["sort"] is None
    assert ada.state["finish"]["code"]
    assert approvals(database)["screens"] == [2]
    assert approvals(database)["code"] == [ada.state["finish"]["code"]]


def test_the_table_for_paying(items, database, gold, tmp_path):
    hire = Hiring(per_person=30, gold=gold, gold_every=5)
    app = create_app(items, database, show_names=True, hire=hire)
    judge(good := Visitor(app, "good"))
    judge(Visitor(app, "always"), answer=lambda pair: "same")
    judge(Visitor(app, "left early"), 7)
    with sqlite3.connect(database) as connection:  # they took their time
        for name in ("judgements", "gold"):
            connection.execute(
                f"UPDATE {name} SET at = strftime('%Y-%m-%dT%H:%M:%S', '2026-01-01', "
                "(3 * id) || ' seconds') WHERE annotator <> 'left early'"
            )
    connection.close()
    assert write_approvals(database, tmp_path / "pay.csv") == 3
    with (tmp_path / "pay.csv").open(newline="") as file:
        rows = {row["person"]: row for row in csv.DictReader(file)}
    assert rows["good"]["suggestion"] == "approve"
    assert (rows["good"]["gold_right"], rows["good"]["gold_asked"]) == ("6", "6")
    assert float(rows["good"]["median_seconds"]) == 3
    assert rows["good"]["code"] == good.state["finish"]["code"]
    assert rows["always"]["suggestion"] == "look"
    assert rows["always"]["why"] == '2 of 6 gold questions right; every answer is "same"'
    assert rows["left early"]["suggestion"] == "unfinished"
    assert rows["left early"]["why"] == "7 of 30 done"
    assert rows["left early"]["code"] == ""
    assert [rows[name]["answers"] for name in rows] == ["30", "30", "7"]


def test_who_answers_within_the_blink_of_an_eye_is_looked_at(items, database):
    app = create_app(items, database, show_names=True, hire=Hiring(per_person=5))
    judge(Visitor(app, "Ada"))
    found = approvals(database)
    assert found["suggestion"] == ["look"]
    assert "half of it within 0." in found["why"][0]


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"per_person": 0}, "at least one question"),
        ({"gold_every": 1}, "every second at most"),
        ({"code": "a b"}, "completion code is"),
        ({"finish": "javascript:alert(1)"}, "must begin with https"),
        ({"finish": "https://"}, "must begin with https"),
        ({"finish": "https://x.org/ a"}, "must begin with https"),
        ({"finish": "https://[x"}, "must begin with https"),
    ],
)
def test_terms_that_cannot_be_are_refused(terms, message):
    with pytest.raises(InputError, match=message):
        Hiring(**terms)


def test_files_that_cannot_be_asked_are_refused(items, database, gold, tmp_path):
    path = tmp_path / "file.csv"

    def refused(text, message, **terms):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            create_app(items, database, hire=Hiring(**terms))

    refused("left,right\n0-00,nobody\n", "nobody", pairs=path)
    refused("left,right\n0-00,0-00\n", "line 2: item '0-00' is compared with itself", pairs=path)
    refused("left,right\n", "no pair", pairs=path)
    refused("a,b,c\n1,2,3\n", "two columns", pairs=path)
    refused("left,right,same\n0-00,nobody,1\n", "nobody", gold=path)
    refused("left,right,same\n0-00,0-03,1\n0-03,0-00,0\n", "a gold question has one", gold=path)
    with pytest.raises(InputError, match="leave out the sorting"):
        create_app(items, database, sort=5, hire=Hiring(gold=gold))
    create_app(items, database)
    with pytest.raises(InputError, match="nobody has answered"):
        approvals(database)


def test_the_terms_are_kept_with_the_answers(items, database):
    create_app(items, database, hire=Hiring(per_person=7, code="X"))
    with sqlite3.connect(database) as connection:
        (kept,) = connection.execute("SELECT value FROM meta WHERE key = 'hiring'").fetchone()
    connection.close()
    assert json.loads(kept) == {"per_person": 7, "code": "X"}
