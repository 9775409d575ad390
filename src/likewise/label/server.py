"""`likewise label`: the application behind uvicorn, on loopback unless told otherwise."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette

from likewise.errors import InputError
from likewise.io.lock import exclusive
from likewise.label.app import create_app
from likewise.label.connections import MAX_CONNECTIONS, Connections
from likewise.label.hiring import Hiring
from likewise.label.items import open_items
from likewise.label.refit import ModelSuggester
from likewise.label.security import HostCheck, is_loopback
from likewise.label.suggesting import Suggester

KEEP_ALIVE_SECONDS = 15


def serve(
    items_path: str | Path,
    out: str | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    open_browser: bool = True,
    *,
    token: str | None = None,
    allow_hosts: Sequence[str] = (),
    question: str | None = None,
    show_names: bool = False,
    id_column: str | None = None,
    classes: int | str | None = None,
    suggester: Suggester | None = None,
    sort: int | None = None,
    hire: Hiring | None = None,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Show pairs of items and keep the answers in the database ``out``, until interrupted.

    On a loopback address anybody on this machine may judge. On any other, a token is made (or
    given, so that the link outlives a restart), and only its link lets people in. ``announce`` gets
    the link once the server listens; port 0 takes any free port. ``allow_hosts`` are further names
    that people reach it by. With ``classes`` (a number, or "auto") a model of so many classes is
    fitted again and again in the background, and chooses the pairs; so does a ``suggester`` of
    yours. Else they are random. With ``sort``, people sort so many items a screen into piles;
    ``hire`` says what is asked of people who come from a platform.
    """
    local = is_loopback(host)
    if token is None and not local:
        token = secrets.token_urlsafe(24)
    if token is not None and len(token) < 16:
        raise InputError("the token must have at least 16 characters, or it could be guessed.")
    if sort is not None and (suggester is not None or classes is not None):
        raise InputError("suggestions choose pairs; leave them out where people sort.")
    items = open_items(items_path, id_column)
    if suggester is None and classes is not None:
        suggester = ModelSuggester(items_path, classes, id_column)
        suggester.check()
    in_use = "is in use by another labelling server; judge there, or end that one first."
    with closing(_listen(host, port)) as listener, exclusive(Path(out), in_use):
        app = create_app(
            items,
            out,
            token=token,
            hosts=HostCheck((host, socket.gethostname(), *allow_hosts), any_address=not local),
            question=question,
            show_names=show_names,
            suggester=suggester,
            sort=sort,
            hire=hire,
        )
        url = _link(host, listener.getsockname()[1], token)
        server = uvicorn.Server(server_config(app))
        announce(url)
        if open_browser:
            _open_soon(url)
        with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends; uvicorn has closed the store
            server.run(sockets=[listener])


def server_config(app: Starlette, connections: Connections | None = None) -> uvicorn.Config:
    """uvicorn with limits on connections and their time, and with nothing that it need not tell."""
    connections = connections or Connections()
    return uvicorn.Config(
        connections.watch(app),
        http=connections.protocol(),
        ws="none",
        limit_concurrency=2 * MAX_CONNECTIONS,  # only a second fence: `Connections` makes room
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16_384,
        backlog=256,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # else anybody could claim another address, and its rate limit
        access_log=False,  # it would write tokens, which stand in addresses, to the log
        log_level="error",  # a stranger's nonsense is no news
    )


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"a port is a number from 0 to 65535, not {port}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        # Only where the protocol is said does asyncio switch off Nagle's algorithm, which costs
        # every answer 40 ms.
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{host} is not an address of this machine.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {port} of {host} cannot be used ({error.strerror}); choose another with --port."
        ) from error
    return listener


def _link(host: str, port: int, token: str | None) -> str:
    """The address to open: for a server on all addresses, this machine's own."""
    if host in ("0.0.0.0", "::"):
        host = _own_address()
    shown = f"[{host}]" if ":" in host else host
    query = "" if token is None else f"?token={quote(token)}"
    return f"http://{shown}:{port}/{query}"


def _own_address() -> str:
    """The address by which other machines most probably reach this one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address: only the route is asked
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])


def _open_soon(url: str) -> None:
    timer = threading.Timer(0.5, webbrowser.open, args=(url,))
    timer.daemon = True
    timer.start()
