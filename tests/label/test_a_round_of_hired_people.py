"""A round of hired people, end to end on loopback: the real commands, the real server, and http."""

from __future__ import annotations

import contextlib
import csv
import http.client
import io
import json
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from forked import Forked
from likewise.cli import main, run
from short_fits import cut_short

TOKEN = "a token of our own"
PEOPLE, QUESTIONS, GOLD = 6, 40, 10
ITEMS, KINDS = 36, 3


def likewise(*arguments: object) -> str:
    """Run a command of ours in this process, which must succeed; its output."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        assert run([str(argument) for argument in arguments]) == 0
    return stream.getvalue()


class Worker:
    """A hired person's browser: comes by the platform's address, and does what the page does."""

    def __init__(self, host: str, query: str) -> None:
        self.host, self.cookie = host, ""
        status, _ = self.ask("GET", f"/?{query}")
        assert status == 200
        parameters = self.ask("GET", "/api/state")[1]["parameters"]
        given = parse_qs(query)
        self.name = next(given[name][0] for name in parameters if name in given)
        self.state = self.ask("POST", "/api/join", {"annotator": self.name})[1]

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.host, timeout=30)
        headers = {"x-likewise": "1", "content-type": "application/json", "cookie": self.cookie}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if (cookie := response.headers["set-cookie"]) is not None:
            self.cookie = cookie.partition(";")[0]
        is_json = response.headers["content-type"] == "application/json"
        return response.status, json.loads(data) if is_json else data

    def work(self, error: float) -> dict[str, str]:
        """Answer everything that is asked, wrongly at times; what the end shows."""
        rng = random.Random(self.name)
        while (pair := self.state["pair"]) is not None:
            left, right = (dict(pair[side]["cells"])["kind"] for side in ("left", "right"))
            is_same = (left == right) != (rng.random() < error)
            answer = "same" if is_same else "different"
            body = {"annotator": self.name, "ticket": pair["ticket"], "answer": answer}
            status, self.state = self.ask("POST", "/api/answer", body)
            assert status == 200
        return self.state["finish"]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Items with features that tell the kinds, gold answers about some, and pairs to ask."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kinds = np.arange(ITEMS) % KINDS
    means = 4 * np.eye(KINDS)[kinds]
    features = np.hstack([means, means]) + rng.normal(size=(ITEMS, 2 * KINDS))
    names = [f"item {k:02d}" for k in range(ITEMS)]
    with (tmp_path / "shown.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["id", "kind"], *([n, f"kind {z}"] for n, z in zip(names, kinds, strict=True))]
        )
    with (tmp_path / "features.csv").open("w", newline="") as file:
        head = ["id", *(f"x{k}" for k in range(2 * KINDS))]
        csv.writer(file).writerows(
            [head, *([n, *x] for n, x in zip(names, features.round(3), strict=True))]
        )
    pairs = [(i, j) for i in range(ITEMS) for j in range(i)]
    rng.shuffle(pairs)
    gold, asked = pairs[:GOLD], pairs[GOLD:130]
    (tmp_path / "gold.csv").write_text(
        "left,right,same\n"
        + "".join(f"{names[i]},{names[j]},{int(kinds[i] == kinds[j])}\n" for i, j in gold)
    )
    (tmp_path / "ask.csv").write_text(
        "left,right\n" + "".join(f"{names[i]},{names[j]}\n" for i, j in asked)
    )
    return tmp_path


@pytest.fixture
def host(study):
    """`likewise label` as somebody who hires would start it."""
    options = ("--out", "round.db", "--port", 0, "--no-browser", "--token", TOKEN)
    options += ("--per-person", QUESTIONS, "--pairs", "ask.csv", "--gold", "gold.csv")
    options += ("--gold-every", 8, "--finish", "https://platform.example/end?cc={code}")
    server = Forked(main, ["label", "shown.csv", *map(str, options)], folder=study)
    link = urlsplit(server.stderr.readline().split()[-1])
    assert parse_qs(link.query) == {"token": [TOKEN]}
    yield link.netloc
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=30)


def test_a_round_of_hired_people(study, host, monkeypatch):
    token = f"token={TOKEN.replace(' ', '%20')}"
    addresses = [f"{token}&PROLIFIC_PID=5f{k:022x}&STUDY_ID=s" for k in range(PEOPLE - 1)]
    addresses += [f"{token}&workerId=A1CARELESS&assignmentId=3X"]
    # Nobody knows which questions are gold: who erred in one of twenty would have two of five wrong
    # in every ninth run of this test.
    errors = [0.005] * (PEOPLE - 1) + [0.5]
    with ThreadPoolExecutor(PEOPLE) as pool:
        ends = list(
            pool.map(lambda a: Worker(host, a[0]).work(a[1]), zip(addresses, errors, strict=True))
        )
    assert len({end["code"] for end in ends}) == PEOPLE
    assert all(end["address"].endswith(f"?cc={end['code']}") for end in ends)

    likewise("label", "shown.csv", "--out", "round.db", "--approvals", "pay.csv")
    with (study / "pay.csv").open(newline="") as file:
        pay = {row["person"]: row for row in csv.DictReader(file)}
    assert sorted(row["code"] for row in pay.values()) == sorted(end["code"] for end in ends)
    for row in pay.values():
        assert int(row["answers"]) == QUESTIONS
        assert int(row["gold_asked"]) == QUESTIONS // 8
    assert pay["A1CARELESS"]["suggestion"] == "look"
    careful = [row for name, row in pay.items() if name != "A1CARELESS"]
    assert all(int(row["gold_right"]) >= 4 for row in careful)

    likewise("label", "shown.csv", "--out", "round.db", "--export", "answers.csv")
    with (study / "answers.csv").open(newline="") as file:
        answers = list(csv.DictReader(file))
    assert len(answers) == PEOPLE * (QUESTIONS - QUESTIONS // 8)  # the gold ones are not there
    with (study / "gold.csv").open() as file:
        gold = {frozenset((row["left"], row["right"])) for row in csv.DictReader(file)}
    assert not {frozenset((row["left"], row["right"])) for row in answers} & gold

    described = json.loads(likewise("describe", "answers.csv", "--json"))
    assert described["annotators"] == PEOPLE
    assert described["agreement"]["pairs"] > 50
    assert 0.2 < described["agreement"]["alpha"] < 1

    cut_short(monkeypatch, epochs=20)
    options = ("--classes", KINDS, "--out", "run", "--json")
    likewise("fit", "features.csv", "round.db", *options)
    truth = "item,label\n" + "".join(f"item {k:02d},{k % KINDS}\n" for k in range(ITEMS))
    (study / "truth.csv").write_text(truth)
    scored = likewise("evaluate", "run", "features.csv", "truth.csv", "--json")
    assert json.loads(scored)["accuracy"] > 0.9


def test_an_address_does_not_change_under_whose_name_a_person_works(study, host):
    token = f"token={TOKEN.replace(' ', '%20')}"
    ada = Worker(host, f"{token}&PROLIFIC_PID=ada")
    status, state = ada.ask("GET", "/api/state")
    assert (status, state["annotator"]) == (200, "ada")
    ada.ask("GET", "/?PROLIFIC_PID=bo")  # a second link, in the same browser
    assert ada.ask("GET", "/api/state")[1]["annotator"] == "ada"
    body = {"annotator": "bo", "ticket": state["pair"]["ticket"], "answer": "same"}
    assert ada.ask("POST", "/api/answer", body)[0] == 409
