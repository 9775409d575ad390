"""The labelling server for the browser: quick in a thread, or as a process that can be killed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn

from forked import Forked, print_line
from likewise.label import create_app, serve
from likewise.label.server import _listen, server_config


@contextlib.contextmanager
def in_thread(items: Path, database: Path, **options: Any) -> Iterator[SimpleNamespace]:
    """A server in this process: its ``url``, ``items`` and ``database``."""
    listener = _listen("127.0.0.1", 0)
    app = create_app(items, database, **{"show_names": True, **options})
    server = uvicorn.Server(server_config(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        yield SimpleNamespace(url=url, items=items, database=database)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


class ServerProcess:
    """A server that can be killed and started again on the same port and database."""

    def __init__(self, items: Path, database: Path, sort: int = 0) -> None:
        self.items, self.database, self.sort = items, database, sort
        self.url = "http://127.0.0.1:0/"
        self.start()

    def start(self) -> None:
        options: dict[str, Any] = {
            "port": int(self.url.rsplit(":", 1)[1].strip("/")),
            "open_browser": False,
        }
        options |= {"show_names": True, "sort": self.sort or None, "announce": print_line}
        self.process = Forked(partial(serve, self.items, self.database, **options))
        self.url = self.process.stdout.readline().strip()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.process.communicate()
