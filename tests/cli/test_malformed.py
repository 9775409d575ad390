"""Malformed inputs end in one sentence: exit status 2, or a 4xx; no traceback, no hang, no bomb.

Memory: while a case runs, the process may take `MEMORY` more than it had; past it, the system
refuses, and the case fails.
"""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from label_people import TestClient, Visitor
from likewise import SimilarityClassifier, cli
from likewise.label import create_app
from likewise.pairs import Pairs
from likewise.runs import write_run
from malformed import commands, damage, items, judgements, labels, models, options
from malformed.case import Bench, Case
from malformed.requests import Request, requests

PARTS = (judgements, items, labels, models, damage, commands, options)
CASES = [case for part in PARTS for case in part.cases()]
REQUESTS = list(requests())
MEMORY = 2 * 2**30
SECONDS = 30
MANIFEST = Path(__file__).parents[1] / "malformed" / "manifest.txt"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A fitted run of 64 features and ten classes, its items and its judgements."""
    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 10
    array = (rng.normal(size=(200, 64)) + 3 * np.eye(10, 64)[labels]).astype(np.float32)
    np.save(folder / "items.npy", array)
    pairs = Pairs.from_labels(labels, per_item=20, random_state=0)
    pairs.write(folder / "pairs.csv")
    classifier = SimilarityClassifier(
        10, method="mcl", recipe={"epochs": 2}, random_state=0, verbose=False
    )
    classifier.fit(array, pairs)
    write_run(folder / "run", classifier, array, pairs, config={"command": "fit"})
    return Bench(folder, folder / "run", folder / "items.npy", folder / "pairs.csv")


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Little more memory than now, and no more than a minute."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"not done after {SECONDS} s")

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    old = signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_sentence_and_status_2(
    case: Case, good: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path, good.run, good.items, good.pairs)
    line = [str(part) for part in case.make(bench)]
    there = set(tmp_path.rglob("*"))
    with bounded():
        status = cli.run(line)
    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    assert told.err.startswith("likewise: ")
    assert told.err.count("\n") == 1
    assert len(told.err) < 1000
    assert "LIKEWISE_DEBUG" not in told.err
    assert not (tmp_path / "exploded").exists()
    # Nothing half-written: at most a database of answers that was opened.
    assert {path.suffix for path in set(tmp_path.rglob("*")) - there} <= {".db"}


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.name)
def test_one_sentence_and_a_4xx(request_: Request, visitor: Visitor) -> None:
    ticket = visitor.state["pair"]["ticket"].encode()
    client = visitor.client
    request = client.build_request(
        request_.method, "/", content=request_.body.replace(b"{ticket}", ticket)
    )
    request.headers.update(request_.headers)
    request.url = request.url.copy_with(raw_path=request_.path.encode())
    with bounded():
        response = client.send(request)
    assert 400 <= response.status_code < 500
    assert "Traceback" not in response.text
    assert len(response.text) < 1000
    if request_.method == "POST":
        assert response.json()["error"].endswith(".")


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("label")
    for name in ("a.png", "b.png", "c.png"):
        Image.new("RGB", (8, 8)).save(folder / name)
    app = create_app(folder, folder / "judgements.db")
    with TestClient(app, base_url="http://127.0.0.1:8000"):
        yield Visitor(app, "Ada")


def test_the_manifest_lists_every_case_once() -> None:
    names = [case.name for case in CASES] + [request.name for request in REQUESTS]
    assert len(names) == len(set(names))
    assert len(names) >= 1000
    assert MANIFEST.read_text(encoding="utf-8").splitlines() == names, (
        "the cases changed: write their names into tests/malformed/manifest.txt"
    )
    told = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    assert f"**{len(names)} malformed inputs**" in told
    assert f"{len(CASES)} for readers," in told
    assert f"{len(REQUESTS)} requests" in told
