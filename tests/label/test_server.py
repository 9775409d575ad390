"""The server as a process and a network meet it: kills, slow clients, too many of them, ports."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import uvicorn
from PIL import Image

from forked import Forked, print_line
from label_people import HEADERS
from likewise import cli
from likewise.errors import InputError
from likewise.label import create_app, read_judgements, serve
from likewise.label.connections import Connections
from likewise.label.server import _listen, server_config

ROOT = Path(__file__).parents[2]


IMPATIENT = {"request_seconds": 0.4}
NARROW = {"request_seconds": 600.0, "most_per_address": 10, "most": 30}


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    folder = tmp_path_factory.mktemp("items")
    for k in range(4):
        # Noise, so that encoded it is larger than the buffers of a connection.
        Image.effect_noise((900, 900), 200).save(folder / f"{k}.png")
    return folder


@pytest.fixture
def limits():
    return IMPATIENT


@pytest.fixture
def port(items, tmp_path, limits):
    """A real server in a thread, with short deadlines unless asked otherwise; its port."""
    listener = _listen("127.0.0.1", 0)
    config = server_config(create_app(items, tmp_path / "judgements.db"), Connections(**limits))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(10)
    listener.close()
    assert not thread.is_alive()


def ask(port, method, path, body=None, cookie=""):
    """One request on a connection of its own: (status, headers, JSON or bytes)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {
        **HEADERS,
        "origin": f"http://127.0.0.1:{port}",
        "content-type": "application/json",
        "cookie": cookie,
    }
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    is_json = response.headers["content-type"] == "application/json"
    return response.status, response.headers, json.loads(data) if is_json else data


def join_and_answer(port, name):
    status, headers, state = ask(port, "POST", "/api/join", {"annotator": name})
    assert status == 200
    cookie = headers["set-cookie"].partition(";")[0]
    body = {"annotator": name, "ticket": state["pair"]["ticket"], "answer": "same"}
    status, _, state = ask(port, "POST", "/api/answer", body, cookie)
    assert status == 200
    return state


def is_closed(connection):
    """Wait until the server has closed the connection; False if it has not within 10 s."""
    connection.settimeout(10)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ",
        b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\nx-likewise: 1\r\n"
        b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{",
        # Refused before its body came: what drips in later must not hold the connection either.
        b"POST /api/join HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 100\r\n\r\n{",
    ],
)
def test_a_client_that_sends_slowly_is_dropped_and_others_are_served(port, beginning):
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    for connection in slow:
        connection.sendall(beginning)
    assert join_and_answer(port, "Ada")["mine"] == 1
    for _ in range(300):  # drip on until all are dropped: a byte must not buy more time
        threading.Event().wait(0.05)
        slow = [connection for connection in slow if drip(connection)]
        if not slow:
            break
    assert slow == []


def drip(connection):
    """Send one more byte; False once the server has dropped the connection."""
    try:
        connection.sendall(b"x")
    except OSError:
        return False
    return True


def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(port):
    head = (
        b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\nx-likewise: 1\r\n"
        b"content-type: application/json\r\ncontent-length: 1000000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head)
        connection.settimeout(10)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_client_that_does_not_read_is_dropped(port):
    state = join_and_answer(port, "Ada")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    deaf.connect(("127.0.0.1", port))
    request = f"GET {state['pair']['left']['picture']} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    deaf.sendall(request.encode() * 50)
    # It is dropped while the rest of its answers still waits to be read: less arrives than was due.
    threading.Event().wait(1.5)
    deaf.settimeout(10)
    received = 0
    with contextlib.suppress(ConnectionError):
        while data := deaf.recv(1 << 16):
            received += len(data)
    _, _, picture = ask(port, "GET", state["pair"]["left"]["picture"])
    assert received < 50 * len(picture)
    assert join_and_answer(port, "Bo")["mine"] == 1


@pytest.mark.parametrize("limits", [NARROW])
def test_one_address_holds_only_so_many_connections(port):
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
    assert all(is_closed(connection) for connection in crowd[:20])  # the oldest make room
    for connection in crowd[20:]:
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):  # these ten are still held
            connection.recv(1)
        connection.close()
    assert ask(port, "GET", "/")[0] == 200


HALF = b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{"


@pytest.mark.parametrize("limits", [NARROW])
@pytest.mark.parametrize("beginning", [b"", b"GET / HTT", HALF])
def test_half_sent_requests_of_a_few_addresses_hold_nobody_up(port, beginning):
    """As many as there are places, none of them ever finished: people are served at once."""
    crowd = []
    for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
        for _ in range(10):
            source = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            source.sendall(beginning)
            crowd.append(source)
    assert join_and_answer(port, "Ada")["mine"] == 1
    assert join_and_answer(port, "Bo")["mine"] == 1
    for connection in crowd:
        connection.close()


def test_an_answer_under_way_makes_no_room():
    """A newcomer waits its turn rather than cutting off what is being answered."""

    class Stub:
        def __init__(self, port, is_sending, is_busy):
            self.client, self.is_sending, self.is_busy = ("a", port), is_sending, is_busy
            self.ended = False

        def end(self):
            self.ended = True

    connections = Connections(most=2, most_per_address=2)
    answering, idle = Stub(1, False, True), Stub(2, False, False)
    assert connections.admit(answering)
    assert connections.admit(idle)
    sending = Stub(3, True, True)
    assert connections.admit(sending)
    assert idle.ended
    assert connections.admit(Stub(4, False, True))
    assert sending.ended
    assert not connections.admit(Stub(5, True, True))
    assert not answering.ended


def test_nothing_of_uvicorns_inside_is_used():
    """A class of its own that is subclassed, or a private name, changes with its next release."""
    for path in (ROOT / "src" / "likewise" / "label").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "uvicorn.protocols" not in text
        assert not re.search(r"uvicorn\S*\._", text)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS handshake
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"x: " + b"y" * 400_000 + b"\r\n\r\n",
        b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_a_4xx_or_nothing(port, request_bytes):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request_bytes)
        connection.settimeout(10)
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = connection.recv(65536)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert ask(port, "GET", "/")[0] == 200


def test_nothing_tells_what_the_server_is_made_of(port):
    _, headers, _ = ask(port, "GET", "/")
    assert "server" not in headers
    assert "x-powered-by" not in headers


FAULTS = ("lost", "changed", "stored_but_never_acknowledged", "stored_twice", "asked_twice")


@pytest.mark.parametrize("how", [{"classes": 3}, {"kills": 2}], ids=["fitting", "killed"])
def test_a_crowd_loses_nothing_even_when_the_server_is_killed(tmp_path, monkeypatch, how):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    label_load = pytest.importorskip("label_load")

    class ForkedServer(label_load.Server):
        def start(self):
            classes, sort = self.options
            options = {"port": self.port, "open_browser": False, "show_names": True}
            options |= {"classes": classes or None, "sort": sort or None, "announce": print_line}
            self.process = Forked(partial(serve, self.items, self.database, **options))
            self.port = int(self.process.stdout.readline().rsplit(":", 1)[1].strip("/\n"))

    monkeypatch.setattr(label_load, "Server", ForkedServer)
    label_load.make_pictures(tmp_path / "items", 30)
    # In a thread of its own: a browser test in this process leaves an event loop behind.
    with ThreadPoolExecutor(1) as apart:
        figures = apart.submit(label_load.measure, tmp_path, 6, 15, 30, **how).result()
    assert figures["acknowledged"] == 90
    assert {fault: figures[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert (figures["retries"] > 0) == ("kills" in how)  # the kills were felt


@pytest.mark.slow
def test_the_figures_of_a_crowd_are_written(tmp_path):
    out = tmp_path / "figures.json"
    command = [sys.executable, ROOT / "benchmarks" / "label_load.py", "--out", out, "--people", 6]
    command += ["--answers", 25, "--items", 30, "--kills", 2]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    figures = json.loads(out.read_text())
    for run in ("steady", "fitting", "killed"):
        assert figures[run]["acknowledged"] == 150
        assert all(figures[run][fault] == 0 for fault in FAULTS)


@contextlib.contextmanager
def process(items, database, host):
    server = Forked(partial(serve, announce=print_line), items, database, host, 0, False)
    try:
        yield server, server.stdout.readline().strip()
    finally:
        if server.poll() is None:
            server.kill()
        server.communicate()


def test_it_ends_quietly_when_interrupted(items, tmp_path):
    with process(items, tmp_path / "judgements.db", "127.0.0.1") as (server, url):
        assert url.startswith("http://127.0.0.1:")
        assert "token" not in url
        join_and_answer(int(url.rsplit(":", 1)[1].strip("/")), "Ada")
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=20)
    assert server.returncode == 0
    assert errors == ""
    assert read_judgements(tmp_path / "judgements.db")["same"] == [1]


def test_other_machines_need_a_token_made_at_the_start(items, tmp_path):
    with process(items, tmp_path / "judgements.db", "0.0.0.0") as (_, url):
        address, _, token = url.partition("/?token=")
        assert len(token) >= 32
        port = int(address.rsplit(":", 1)[1])
        assert ask(port, "GET", "/")[0] == 401
        assert ask(port, "GET", "/?token=wrong")[0] == 401
        assert ask(port, "GET", f"/?token={token}")[0] == 200
    with process(items, tmp_path / "judgements.db", "0.0.0.0") as (_, again):
        assert again.partition("/?token=")[2] != token


def test_the_command_says_where_and_ends_with_status_0(items, tmp_path):
    options = ["label", str(items), "--out", str(tmp_path / "j.db"), "--port", "0", "--no-browser"]
    server = Forked(cli.main, options)
    try:
        said = server.stderr.readline()
        port = int(said.split("http://127.0.0.1:")[1].strip().strip("/"))
        assert join_and_answer(port, "Ada")["mine"] == 1
        server.send_signal(signal.SIGINT)
        out, errors = server.communicate(timeout=30)
    finally:
        server.kill()
    assert server.returncode == 0
    assert out == ""
    assert "Traceback" not in errors
    program = [sys.executable, "-m", "likewise"]  # once as a shell starts it
    mistake = subprocess.run([*program, "label", "nowhere"], capture_output=True, text=True)
    assert mistake.returncode == 2
    assert len(mistake.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("by_option", [True, False])
def test_a_token_of_ones_own_outlives_a_restart_and_traffic_is_said_to_be_clear(
    items, tmp_path, by_option
):
    token = "a-token-of-our-own-0123"
    options = [
        "label",
        str(items),
        "--out",
        str(tmp_path / "j.db"),
        "--port",
        "0",
        "--no-browser",
        "--host",
        "0.0.0.0",
    ]
    options += ["--token", token] if by_option else []
    environment = {} if by_option else {"LIKEWISE_TOKEN": token}
    cookie = None
    for _ in range(2):
        server = Forked(cli.main, options, environment=environment)
        try:
            warning, said = server.stderr.readline(), server.stderr.readline()
            assert "in the clear (http)" in warning
            assert "https" in warning
            assert said.strip().endswith(f"/?token={token}")
            port = int(said.partition("/?token=")[0].rsplit(":", 1)[1])
            if cookie is None:
                status, headers, _ = ask(port, "GET", f"/?token={token}")
                cookie = headers["set-cookie"].partition(";")[0]
                assert status == 200
            else:
                assert ask(port, "GET", "/", cookie=cookie)[0] == 200  # nobody is locked out
                assert ask(port, "GET", "/")[0] == 401
        finally:
            server.kill()
            server.communicate()


def test_on_loopback_nothing_is_said_of_the_network(items, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("likewise.label.server.serve", lambda *_, **__: None)
    assert cli.run(["label", str(items), "--out", str(tmp_path / "j.db")]) == 0
    assert "clear" not in capsys.readouterr().err


def test_mistakes_get_one_sentence(items, tmp_path):
    database = tmp_path / "judgements.db"
    taken = socket.create_server(("127.0.0.1", 0))
    with taken, pytest.raises(InputError, match="choose another with --port"):
        serve(items, database, port=taken.getsockname()[1], open_browser=False)
    with pytest.raises(InputError, match="0 to 65535"):
        serve(items, database, port=70_000, open_browser=False)
    with pytest.raises(InputError, match="not an address"):
        serve(items, database, host="no such host", port=0, open_browser=False)
    with pytest.raises(InputError, match="at least 16"):
        serve(items, database, port=0, token="short", open_browser=False)
    with pytest.raises(InputError, match="no file or folder"):
        serve(tmp_path / "none", database, port=0, open_browser=False)
    assert not database.exists()
