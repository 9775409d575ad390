"""The attack list: each is refused with a 4xx and one sentence, and people notice nothing."""

from __future__ import annotations

import base64
import json
import random
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from label_people import HEADERS, TestClient, Visitor
from likewise.errors import InputError
from likewise.label import create_app, read_judgements
from likewise.label.guard import Limits
from likewise.label.security import (
    HostCheck,
    RateLimit,
    Signer,
    clean_annotator,
    is_loopback,
    same_secret,
)

TOKEN = "a-token-of-some-length-0123456789"
SCRIPT = "<img src=x onerror=alert(1)>.png"


@pytest.fixture
def items(tmp_path):
    folder = tmp_path / "items"
    folder.mkdir()
    for name in ("a.png", "b.png", "c.png", SCRIPT):
        Image.new("RGB", (12, 12)).save(folder / name)
    (tmp_path / "secret.txt").write_text("top secret")
    return folder


@pytest.fixture
def database(tmp_path):
    return tmp_path / "judgements.db"


@pytest.fixture
def app(items, database):
    return create_app(items, database, show_names=True)


@pytest.fixture
def guarded(items, database):
    return create_app(items, database, token=TOKEN)


def check_refused(response, status):
    """A refusal is one JSON sentence, with every security header and nothing of the inside."""
    assert response.status_code == status
    assert "Traceback" not in response.text
    assert "/" not in response.json()["error"]
    assert response.headers["x-content-type-options"] == "nosniff"


# -- paths ---------------------------------------------------------------------------------------

PATHS = [
    "/items/../secret.txt",
    "/items/..%2fsecret.txt",
    "/items/%2e%2e/%2e%2e/secret.txt",
    "/items/....//secret.txt",
    "/items/%00",
    "/items/a.png",
    "/items/" + "A" * 5000,
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/store.py",
    "/static/",
    "/templates/page.html",
    "//etc/passwd",
    "/etc/passwd",
    "/docs",
    "/openapi.json",
    "/judgements.db",
    "/.git/config",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_anywhere(app, path):
    client = TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)
    request = client.build_request("GET", "/")
    request.url = request.url.copy_with(raw_path=path.encode())
    response = client.send(request)
    assert response.status_code == 404
    assert "secret" not in response.text.replace("secret.txt", "")
    assert "content-security-policy" in response.headers


# -- other sites ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example", "x-likewise": "1"}, 403),
        ({"origin": "null", "x-likewise": "1"}, 403),
        ({"origin": "http://127.0.0.1:9999", "x-likewise": "1"}, 403),
        ({"origin": "http://127.0.0.1.evil.example:8000", "x-likewise": "1"}, 403),
        ({"origin": "http://[", "x-likewise": "1"}, 403),
        ({"sec-fetch-site": "cross-site", "x-likewise": "1"}, 403),
        ({"sec-fetch-site": "same-site", "x-likewise": "1"}, 403),
        ({"origin": "http://127.0.0.1:8000"}, 403),
        ({}, 403),
        ({"x-likewise": "1", "content-type": "text/plain"}, 415),
        ({"x-likewise": "1", "content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_post_that_another_site_may_have_caused_is_refused(app, database, headers, status):
    ada = Visitor(app, "Ada")
    body = {"annotator": "Ada", "ticket": ada.state["pair"]["ticket"], "answer": "same"}
    headers = {"content-type": "application/json", **headers}
    response = ada.client.post("/api/answer", content=json.dumps(body), headers=headers)
    check_refused(response, status)
    assert read_judgements(database)["same"] == []
    assert ada.answer().status_code == 200


def test_the_session_is_out_of_reach_of_scripts_and_other_sites(app):
    cookie = Visitor(app, "Ada").page.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.nip.example", ""])
def test_a_host_name_that_is_not_ours_is_refused(app, host):
    ada = Visitor(app, "Ada")
    check_refused(ada.client.get("/api/state", headers={"host": host}), 421)
    for ours in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert ada.client.get("/api/state", headers={"host": ours}).status_code == 200


def test_addresses_are_hosts_only_where_other_machines_are_served():
    assert not HostCheck().allows("192.168.1.5:8000")
    assert HostCheck(any_address=True).allows("192.168.1.5:8000")
    assert not HostCheck(any_address=True).allows("evil.example")
    assert HostCheck(["Label.Example"], any_address=True).allows("label.example:80")
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")


def test_nothing_changes_by_get_and_other_methods_are_refused(app):
    ada = Visitor(app, "Ada")
    for path in ("/api/answer", "/api/join", "/api/undo", "/api/leave"):
        assert ada.client.get(path).status_code == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        check_refused(ada.client.request(method, "/api/answer"), 405)


# -- forged people and pairs ---------------------------------------------------------------------


def forged_session(name):
    """A session cookie as ours, signed with another key."""
    return Signer(b"another key", None).sign("session", {"annotator": name})


def test_a_forged_annotator_is_refused(app, database):
    ada, mallory = Visitor(app, "Ada"), Visitor(app, "Mallory")
    check_refused(mallory.answer(annotator="Ada"), 409)
    check_refused(mallory.answer(annotator=None), 409)
    check_refused(mallory.answer(annotator=["Mallory"]), 409)
    ticket = ada.state["pair"]["ticket"]  # asked of Ada, answered by Mallory
    check_refused(mallory.answer(ticket=ticket), 422)
    assert read_judgements(database)["same"] == []
    assert ada.answer().status_code == 200


def test_a_changed_or_invented_session_is_nobodys(app, database):
    ada = Visitor(app, "Ada")
    name, value = next(iter(ada.client.cookies.items()))
    body, _, mac = value.rpartition(".")
    other = base64.urlsafe_b64encode(b'{"annotator": "Bo"}').decode().rstrip("=")
    ticket = ada.state["pair"]["ticket"]
    for forged in (f"{other}.{mac}", f"{body}.", body, "", ".", "é", forged_session("Ada"), ticket):
        ada.client.cookies.clear()
        headers = {**HEADERS, "cookie": f"{name}={forged}".encode("latin-1")}
        request = {"annotator": "Bo", "ticket": ticket, "answer": "same"}
        response = ada.client.post("/api/answer", json=request, headers=headers)
        check_refused(response, 401)
    assert read_judgements(database)["same"] == []


def test_only_pairs_that_were_asked_can_be_answered(app, database):
    ada = Visitor(app, "Ada")
    ticket = ada.state["pair"]["ticket"]
    body, _, mac = ticket.rpartition(".")
    session = next(iter(ada.client.cookies.values()))
    swapped = ticket[:-1] + ("A" if ticket[-1] != "A" else "B")
    for forged in ("", "x", ticket[1:], swapped, f"{body}A.{mac}", session, "\ud800.\ud800"):
        body_text = json.dumps({"annotator": "Ada", "ticket": forged, "answer": "same"})
        headers = {**HEADERS, "content-type": "application/json"}
        expected = 400 if "\ud800" in forged else 422  # half a character is no JSON of anybody's
        response = ada.client.post("/api/answer", content=body_text, headers=headers)
        check_refused(response, expected)
    for nonsense in (None, 1, [], {"a": 1}):
        check_refused(ada.answer(ticket=nonsense), 422)
    for answer in ("yes", "SAME", "", None, 1, True, ["same"]):
        check_refused(ada.answer(answer), 422)
    assert read_judgements(database)["same"] == []


BAD_NAMES = [
    "",
    "   ",
    "x" * 65,
    "x" * 5000,
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@cmd",
    "a\x00b",
    "a\x1b[31m",
    "a\u202eb",
    "a\u200bb",
    "Robert'); DROP TABLE judgements;--",
    "😀",
    None,
    5,
    ["Ada"],
    {"name": "Ada"},
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_are_bounded_and_plain(app, name):
    check_refused(Visitor(app).post("/api/join", annotator=name), 422)


@pytest.mark.parametrize(
    ("name", "stored"),
    [("Ada", "Ada"), ("  Ana  María ", "Ana María"), ("李雷", "李雷"), ("O'Neil-2", "O'Neil-2")],
)
def test_ordinary_names_are_fine(name, stored):
    assert clean_annotator(name) == stored


@given(st.text())
def test_every_text_is_a_name_or_one_sentence(text):
    try:
        name = clean_annotator(text)
    except InputError:
        return
    assert 0 < len(name) <= 64
    assert clean_annotator(name) == name


# -- sizes and shapes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * 10_000, 413),
        (b'{"annotator": "' + b"A" * 9000 + b'"}', 413),
        (b"", 400),
        (b"not json", 400),
        (b"[1, 2]", 400),
        (b'"text"', 400),
        (b"null", 400),
        (b"[" * 8000, 400),
        (b'{"a":' * 1500, 400),
        (b"\xff\xfe\x00", 400),
        (b"9" * 8000, 400),
        (b'{"annotator": "\\ud800"}', 400),
    ],
)
def test_bodies_are_small_json_objects(app, body, status):
    headers = {**HEADERS, "content-type": "application/json"}
    check_refused(Visitor(app).client.post("/api/join", content=body, headers=headers), status)


def test_a_body_that_hides_its_size_is_cut_off(app):
    sent = []

    def endless():
        for _ in range(10_000):
            sent.append(1)
            yield b"x" * 1000

    headers = {**HEADERS, "content-type": "application/json"}
    response = Visitor(app).client.post("/api/join", content=endless(), headers=headers)
    check_refused(response, 413)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(path=st.sampled_from(["join", "answer", "undo", "leave"]), body=st.binary(max_size=200))
def test_bytes_of_any_kind_never_break_it(app, path, body):
    visitor = Visitor(app, "Ada")
    headers = {**HEADERS, "content-type": "application/json"}
    response = visitor.client.post(f"/api/{path}", content=body, headers=headers)
    assert response.status_code in (200, 400, 409, 422)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(
    path=st.sampled_from(["join", "answer", "undo"]),
    fields=st.dictionaries(st.sampled_from(["annotator", "ticket", "answer", "judgement"]), JSON),
)
def test_json_of_any_kind_never_breaks_it(app, path, fields):
    visitor = Visitor(app, "Ada")
    headers = {**HEADERS, "content-type": "application/json"}
    body = json.dumps({"annotator": "Ada", **fields})
    response = visitor.client.post(f"/api/{path}", content=body, headers=headers)
    assert response.status_code in (200, 400, 409, 413, 422)


# -- rates ---------------------------------------------------------------------------------------


def test_a_flood_of_answers_is_slowed_and_others_go_on(items, database):
    limits = Limits(answers=RateLimit(1, 3, clock=lambda: 0.0))
    app = create_app(items, database, limits=limits)
    ada, bo = Visitor(app, "Ada"), Visitor(app, "Bo")
    statuses = [ada.answer().status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert bo.answer().status_code == 200
    assert len(read_judgements(database)["same"]) == 4


def test_a_flood_of_names_or_requests_is_slowed(items, database):
    clock = lambda: 0.0  # noqa: E731
    limits = Limits(joins=RateLimit(1, 2, clock=clock), requests=RateLimit(1, 8, clock=clock))
    app = create_app(items, database, limits=limits)
    visitor = Visitor(app)
    assert [visitor.post("/api/join", annotator=f"p{k}").status_code for k in range(3)] == [
        200,
        200,
        429,
    ]
    assert [visitor.client.get("/").status_code for _ in range(6)][-1] == 429


def test_a_reserve_fills_again_and_keys_are_forgotten():
    now = [0.0]
    limit = RateLimit(2, 2, max_keys=2, clock=lambda: now[0])
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    now[0] = 1000
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]  # no more than the burst
    limit.allows("b")
    limit.allows("c")
    assert len(limit._buckets) == 2


# -- the token -----------------------------------------------------------------------------------


def test_without_the_token_nothing_is_served(guarded, database):
    client = TestClient(guarded, base_url="http://127.0.0.1:8000")
    page = client.get("/")
    assert page.status_code == 401
    assert "own link" in page.text
    assert "set-cookie" not in page.headers
    for path in ("/api/state", "/static/label.js", "/items/x"):
        check_refused(client.get(path), 401)
    response = client.post("/api/join", json={"annotator": "Ada"}, headers=HEADERS)
    check_refused(response, 401)
    assert read_judgements(database)["same"] == []


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "\ud800"])
def test_a_wrong_token_is_refused(guarded, wrong):
    client = TestClient(guarded, base_url="http://127.0.0.1:8000")
    query = wrong.encode("utf-8", "replace").decode()
    assert client.get("/", params={"token": query}).status_code == 401
    assert not same_secret(wrong, TOKEN)


def test_the_link_with_the_token_lets_people_in_for_good(guarded):
    ada = Visitor(guarded, "Ada", token=TOKEN)
    assert ada.page.status_code == 200
    assert TOKEN not in ada.page.headers["set-cookie"]
    assert ada.answer().status_code == 200
    assert ada.client.get("/").status_code == 200
    assert ada.client.get(ada.state["pair"]["left"]["picture"]).status_code == 200


def test_programs_may_send_the_token_as_a_header(guarded):
    client = TestClient(guarded, base_url="http://127.0.0.1:8000")
    good = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/state", headers=good).status_code == 200
    assert client.get("/api/state", headers={"authorization": "Bearer x"}).status_code == 401


def test_a_new_token_ends_old_sessions(items, database, guarded):
    ada = Visitor(guarded, "Ada", token=TOKEN)
    anew = create_app(items, database, token="another-token-0123456789")
    client = TestClient(anew, base_url="http://127.0.0.1:8000", cookies=ada.client.cookies)
    check_refused(client.get("/api/state"), 401)


def test_guessing_tokens_is_slowed_but_not_for_those_who_are_in(items, database):
    limits = Limits(wrong_tokens=RateLimit(1, 3, clock=lambda: 0.0))
    app = create_app(items, database, token=TOKEN, limits=limits)
    ada = Visitor(app, "Ada", token=TOKEN)
    thief = TestClient(app, base_url="http://127.0.0.1:8000")
    guesses = [thief.get("/", params={"token": f"guess{k}"}).status_code for k in range(5)]
    assert guesses == [401, 401, 401, 429, 429]
    assert ada.answer().status_code == 200
    assert Visitor(app, "Bo", token=TOKEN).answer().status_code == 200


# -- what is sent --------------------------------------------------------------------------------


def test_a_script_in_an_items_name_stays_text(app):
    """It travels as JSON, never as markup; that the page shows it as text, a browser test says."""
    ada, seen = Visitor(app, "Ada"), set()
    while ada.state["pair"] is not None:
        seen.update(ada.shown())
        response = ada.answer()
        assert response.headers["content-type"] == "application/json"
    assert SCRIPT in seen
    assert "onerror" not in ada.client.get("/").text


def test_every_answer_carries_the_security_headers(app):
    ada = Visitor(app, "Ada")
    picture = ada.state["pair"]["left"]["picture"]
    for path in ("/", "/api/state", "/static/label.js", "/static/label.css", picture, "/none"):
        headers = ada.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "cache-control" in headers
    assert ada.client.get("/").headers["cache-control"] == "no-store"


def test_the_page_has_no_inline_code(app):
    text = Visitor(app).page.text
    assert "<script>" not in text
    assert "style=" not in text
    assert " on" not in "".join(part.partition(">")[0] for part in text.split("<button")[1:])


def test_a_failure_inside_shows_nothing_of_the_inside(app, monkeypatch):
    ada = Visitor(app, "Ada")

    def broken(*_, **__):
        raise RuntimeError("at /home/ada/secret.py")

    monkeypatch.setattr("likewise.label.session.next_pairs", broken)
    response = ada.client.get("/api/state")
    check_refused(response, 500)
    assert "secret" not in response.text


def test_sql_in_a_name_is_text(items, database):
    (items / "x'); DROP TABLE judgements;--.png").write_bytes(b"")
    ada = Visitor(create_app(items, database), "Ada")
    while ada.state["pair"] is not None:
        assert ada.answer().status_code == 200
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM judgements").fetchone()[0] == 10


def test_people_go_on_through_a_storm_of_bad_requests(app, database):
    """Legitimate users are unaffected: their answers, between attacks, are all stored."""
    ada, rng = Visitor(app, "Ada"), random.Random(0)
    attacker = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    while ada.state["pair"] is not None:
        for _ in range(20):
            path = rng.choice(["/api/answer", "/api/join", "/api/undo", "/items/../x", "/none"])
            headers = {**HEADERS, "origin": rng.choice(["http://evil.example", HEADERS["origin"]])}
            response = attacker.post(path, content=rng.randbytes(50), headers=headers)
            assert 400 <= response.status_code < 500
        assert ada.answer().status_code == 200
    assert len(read_judgements(database)["same"]) == 6
