"""The labelling server for the browser: quick in a thread, or as a process that can be killed."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn

from likewise.label import create_app
from likewise.label.server import _listen, server_config

_START = """
import sys
from likewise.label import serve
serve(sys.argv[1], sys.argv[2], port=int(sys.argv[3]), open_browser=False, show_names=True,
      sort=int(sys.argv[4]) or None, announce=lambda url: print(url, flush=True))
"""


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
        port = self.url.rsplit(":", 1)[1].strip("/")
        arguments = [str(self.items), str(self.database), port, str(self.sort)]
        command = [sys.executable, "-c", _START, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.process.communicate()
