"""Whether there is a browser at all; where there is none, the other tests here are left out."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

import pytest
from console import unexpected

pytestmark = pytest.mark.browser


def test_there_is_a_browser(chromium):
    assert chromium.version


@pytest.fixture
def resetting():
    """A server that serves one empty page and resets every later connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            first, _ = listener.accept()
            first.recv(65536)
            page = b"<!doctype html><link rel=icon href=data:,><title>x</title>"
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n"
            first.sendall(head + b"content-length: %d\r\n\r\n" % len(page) + page)
            first.close()
            while True:
                connection, _ = listener.accept()
                linger = struct.pack("ii", 1, 0)  # close is a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


@pytest.mark.parametrize("time", range(5))
@pytest.mark.parametrize("wait_ms", [0, 30, 200])
def test_a_reset_connection_may_be_reported_when_it_likes(resetting, open_page, time, wait_ms):
    """What is expected is expected until the page is closed, also after the test's last line."""
    open_page.expect(r"Failed to load resource: net::ERR_")
    page = open_page(resetting)
    page.evaluate("() => { fetch('/later').catch(() => {}); }")
    page.wait_for_timeout(wait_ms)


def test_nothing_else_is_let_pass():
    reset = "Failed to load resource: net::ERR_CONNECTION_RESET"
    assert unexpected([reset, "TypeError: x"], [r"net::ERR_"]) == ["TypeError: x"]
    assert unexpected([reset], []) == [reset]
