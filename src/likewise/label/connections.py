"""HTTP connections that cannot be held for ever, nor by a few for all.

uvicorn closes idle connections, but waits without end for a client that sends its request, or
reads the answer, a byte at a time. Here a request has a deadline from its first byte to the last
byte of its answer, and where all places are taken, whoever has kept the server waiting the longest
makes room. Both stand around uvicorn's own protocol and application, and know nothing of their
inside: the protocol is told what arrives, the application says when a request is answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_SECONDS = 20.0
MAX_CONNECTIONS = 480  # below the 1,024 open files that a process usually may have
MAX_PER_ADDRESS = 160

Client = tuple[str, int]


class Connections:
    """All connections of one server: at most so many, and so many of one address."""

    def __init__(
        self,
        *,
        request_seconds: float = REQUEST_SECONDS,
        most: int = MAX_CONNECTIONS,
        most_per_address: int = MAX_PER_ADDRESS,
    ) -> None:
        self.request_seconds = request_seconds
        self._most, self._most_per_address = most, most_per_address
        self._open: dict[Client, Connection] = {}  # the oldest first

    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn takes as its option ``http``."""
        connections, http = self, _http_protocol()

        class Watched(Connection):
            def __init__(self, **options: object) -> None:
                super().__init__(connections, http(**options))

        return Watched

    def watch(self, app: ASGIApp) -> ASGIApp:
        """The application, around which each connection is told how far its request has come."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            connection = self._of(scope)
            if connection is None:
                await app(scope, receive, send)
                return

            async def receive_and_note() -> Message:
                message = await receive()
                if not message.get("more_body", False):
                    connection.is_sending = False
                return message

            connection.request_begins(is_whole=scope["method"] != "POST")
            try:
                await app(scope, receive_and_note, send)
            finally:
                connection.request_ends()

        return watched

    def admit(self, connection: Connection) -> bool:
        """Take a connection in, if need be in the place of another; False if there is none."""
        address = connection.client[0]
        same = [other for other in self._open.values() if other.client[0] == address]
        if len(same) >= self._most_per_address and not self._make_room(same):
            return False
        if len(self._open) >= self._most and not self._make_room(self._open.values()):
            return False
        self._open[connection.client] = connection
        return True

    def forget(self, connection: Connection) -> None:
        """A connection has ended."""
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]

    def _make_room(self, among: Iterable[Connection]) -> bool:
        """End one connection: of a half-sent request, else an idle one; never of an answer."""
        others = list(among)
        waiting = [other for other in others if other.is_sending]
        victims = waiting or [other for other in others if not other.is_busy]
        if not victims:
            return False
        held = Counter(other.client[0] for other in victims)
        greediest = max(held.values())  # the oldest of the address that holds the most
        victim = next(other for other in victims if held[other.client[0]] == greediest)
        self.forget(victim)
        victim.end()
        return True

    def _of(self, scope: Scope) -> Connection | None:
        client = scope.get("client") if scope["type"] == "http" else None
        return None if client is None else self._open.get((str(client[0]), int(client[1])))


class Connection(asyncio.Protocol):
    """Hands everything on to uvicorn's protocol, and ends the connection at the deadline.

    ``is_busy`` from the first byte of a request to the last of its answer; ``is_sending`` while
    the request has not come in full.
    """

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self._connections, self._inner = connections, inner
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.client: Client = ("", 0)
        self.is_busy = self.is_sending = True  # whoever connects is expected to ask for something
        self._is_admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.client = (str(peer[0]), int(peer[1]))
        self._is_admitted = self._connections.admit(self)
        if not self._is_admitted:
            transport.abort()
            return
        self._set_deadline()
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_admitted:
            return
        if not self.is_busy:  # the first byte of a request; later ones buy no time
            self.is_busy = self.is_sending = True
            self._set_deadline()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._is_admitted else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._connections.forget(self)
        if self._is_admitted:
            self._inner.connection_lost(exc)

    def request_begins(self, is_whole: bool) -> None:
        """The application sees a request, all of it or its head."""
        self.is_busy, self.is_sending = True, not is_whole
        if self._deadline is None:  # one that was sent ahead, while the last was answered
            self._set_deadline()

    def request_ends(self) -> None:
        """The application has answered."""
        self.is_busy = self.is_sending = False

    def end(self) -> None:
        """Close at once; not politely, which would wait for a client that never reads the rest."""
        if self._transport is not None:
            self._transport.abort()

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._connections.request_seconds, self._check)

    def _check(self) -> None:
        """At the deadline: an idle connection is fine (uvicorn closes it), any other is ended."""
        self._deadline = None
        unread = 0 if self._transport is None else self._transport.get_write_buffer_size()
        if self.is_busy or unread > 0:
            self.end()


def _http_protocol() -> type[asyncio.Protocol]:
    """The protocol that uvicorn itself takes for HTTP in pure Python."""

    async def nothing(scope: Scope, receive: Receive, send: Send) -> None: ...

    config = uvicorn.Config(nothing, http="h11", ws="none", log_config=None)
    config.load()
    return config.http_protocol_class
