"""Is a model that a person names here, or within reach?"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest

from likewise.errors import InputError
from likewise.io.hub import HubModel, fetch, hub_cache, locate

COMMIT = "0123456789abcdef"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without models, and nothing behind it."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: name == "sentence_transformers")
    return tmp_path / "hf" / "hub"


def store(home: Path, folder: str, commit: str, ref: str | None = None) -> Path:
    inside = home / folder / "snapshots" / commit / "inner"
    inside.mkdir(parents=True)
    (inside / "model.safetensors").write_bytes(b"")
    if ref is not None:
        (home / folder / "refs").mkdir(exist_ok=True)
        (home / folder / "refs" / ref).write_text(f"{commit}\n")
    return inside.parent


class Hub(BaseHTTPRequestHandler):
    """Knows one model, and forbids another."""

    asked: list[str]

    def do_HEAD(self) -> None:  # the name that the library asks for
        self.asked.append(self.path)
        known = {"/api/models/a/known": 200, "/api/models/a/gated": 401, "/api/models/a/ill": 500}
        self.send_response(known.get(self.path, 404))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing to the terminal."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a hub that answers is asked for."""
    handler = type("Asked", (Hub,), {"asked": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield handler.asked
        server.shutdown()


def test_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("m.onnx", "m.PT2"):
        with pytest.raises(InputError, match=rf"there is no file .*{name} to embed with"):
            locate(str(tmp_path / name))
        (tmp_path / name).write_bytes(b"")
        assert locate(str(tmp_path / name)) == tmp_path / name
    assert locate(str(tmp_path)) == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate("~/m.onnx") == tmp_path / "m.onnx"
    for wrong in ("a/b/c", "a b", "/none"):
        with pytest.raises(InputError, match=rf"no model {wrong}: give an \.onnx or \.pt2"):
            locate(wrong)


def test_the_library_is_asked_for_where_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: None)
    for model in (str(tmp_path), "tiny"):
        with pytest.raises(InputError, match=r"sentence-transformers: pip install 'likewise\[em"):
            locate(model)


def test_the_cache_is_where_the_variables_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub_cache() == tmp_path / "hf" / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert hub_cache() == tmp_path / "cache"
    monkeypatch.setenv("HF_HUB_CACHE", "")
    monkeypatch.setenv("HF_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hub_cache() == tmp_path / ".cache" / "huggingface" / "hub"


def test_a_model_in_the_cache(home: Path) -> None:
    usual = store(home, "models--sentence-transformers--tiny", COMMIT, "main")
    other = store(home, "models--a--b", COMMIT, "v2")
    assert locate("tiny") == HubModel("sentence-transformers/tiny", None)
    assert HubModel("sentence-transformers/tiny").cached == usual
    for revision in ("v2", COMMIT):
        assert locate("a/b", revision) == HubModel("a/b", revision)
        assert HubModel("a/b", revision).cached == fetch(HubModel("a/b", revision)) == other
    assert HubModel("a/b").cached is None  # no "main", and none asked for
    assert HubModel("a/b", "v3").cached is None
    (other / "inner" / "model.safetensors").unlink()
    assert HubModel("a/b", "v2").cached is None


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"a/b is not on this machine and 127\.0\.0\.1 cannot be"):
        locate("a/b")
    for said in ("1", "true", "Yes", "ON"):
        monkeypatch.setenv("HF_HUB_OFFLINE", said)
        with pytest.raises(InputError, match="a/b is not on this machine, and HF_HUB_OFFLINE"):
            locate("a/b")


def test_the_hub_is_asked_for_the_model(asked: list[str]) -> None:
    assert locate("a/known", "v1") == HubModel("a/known", "v1")
    assert locate("a/ill") == HubModel("a/ill")
    for name in ("a/none", "a/gated"):
        with pytest.raises(InputError, match=rf"no model {name} at 127\.0\.0\.1; check its name"):
            locate(name)
    every = ["a/known", "a/ill", "a/none", "a/gated"]
    assert asked == [f"/api/models/{name}" for name in every]


def test_only_data_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    class HubError(Exception):
        """Of the library."""

    def snapshot_download(name: str, **options: object) -> str:
        given.append((name, options))
        if name == "a/none":
            raise HubError("\n404 not found\nat https://...")
        return str(tmp_path)

    library = types.ModuleType("huggingface_hub")
    library.snapshot_download = snapshot_download
    errors = types.ModuleType("huggingface_hub.errors")
    errors.HfHubHTTPError = errors.HFValidationError = HubError
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)
    assert fetch(HubModel("a/b", "v1")) == tmp_path
    (name, options), *_ = given
    assert (name, options["revision"]) == ("a/b", "v1")
    data = ["*.json", "*.txt", "*.model", "*.safetensors"]
    assert options["allow_patterns"] == [*data, *(f"*/{pattern}" for pattern in data)]
    words = r"the hub gave no model a/none of revision v1 \(404 not found\); check its name"
    with pytest.raises(InputError, match=words):
        fetch(HubModel("a/none", "v1"))
    with pytest.raises(InputError, match=r"no model a/none \(404 not found\)"):
        fetch(HubModel("a/none"))


@pytest.mark.parametrize(
    ("endpoint", "place"),
    [
        ("http://hub.example", ("hub.example", 80)),
        ("https://hub.example", ("hub.example", 443)),
        ("https://hub.example:8443", ("hub.example", 8443)),
        ("", ("huggingface.co", 443)),
        ("nonsense", ("", 443)),
    ],
)
def test_where_the_hub_is(
    endpoint: str, place: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def connect(address: tuple[str, int], timeout: float) -> None:
        tried.append((address, timeout))
        raise OSError

    monkeypatch.setattr("likewise.io.hub.PATIENCE", 0.05)
    monkeypatch.setattr("likewise.io.hub.socket.create_connection", connect)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(InputError, match=f"and {place[0]} cannot be reached; connect to"):
        locate("a/b")
    assert tried == [(place, 0.05)]


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_behind_a_proxy_nothing_is_tried_before(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("likewise.io.hub.socket.create_connection", pytest.fail)

    def answer(request: object, timeout: float) -> object:
        asked.append((request.full_url, request.method, timeout))
        raise OSError

    monkeypatch.setattr("likewise.io.hub.urlopen", answer)
    monkeypatch.setenv(name, "http://proxy")
    assert locate("a/b") == HubModel("a/b")
    assert asked == [("http://127.0.0.1:1/api/models/a/b", "HEAD", 3.0)]


def test_no_name_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no model without a name: give an"):
        locate("")


def test_who_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither here nor at the end of the program, which waits for threads that are no daemons."""
    done, threads = Event(), []

    def hang(*_: object, timeout: float) -> None:
        threads.append(current_thread())
        done.wait(20)
        raise OSError

    monkeypatch.setattr("likewise.io.hub.PATIENCE", 0.05)
    monkeypatch.setattr("likewise.io.hub.ANSWER", 0.05)
    monkeypatch.setattr("likewise.io.hub.socket.create_connection", hang)
    monkeypatch.setattr("likewise.io.hub.urlopen", hang)
    with pytest.raises(InputError, match="cannot be reached"):
        locate("a/b")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    assert locate("a/b") == HubModel("a/b")
    assert [thread.daemon for thread in threads] == [True, True]
    assert all(thread.is_alive() for thread in threads)
    done.set()
