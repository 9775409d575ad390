"""HTTP connections that cannot be held for ever.

uvicorn closes idle connections, but waits without end for a client that sends its request, or
reads the answer, a byte at a time. Here a request has a deadline from its first byte to the last
byte of its answer, and one address can hold only so many connections.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0
MAX_CONNECTIONS = 480  # below the 1,024 open files that a process usually may have
MAX_PER_ADDRESS = 160


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with a deadline for each request and a limit for each address."""

    request_seconds = REQUEST_SECONDS
    max_per_address = MAX_PER_ADDRESS
    _deadline: asyncio.TimerHandle | None = None
    _waiting_for_client = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        clients = (getattr(other, "client", None) for other in self.connections)
        held = sum(client is not None and client[0] == address for client in clients)
        if held > self.max_per_address:
            transport.abort()
            return
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        if not self._waiting_for_client:  # the first byte of a request; later ones buy no time
            self._waiting_for_client = True
            self._set_deadline()
        super().data_received(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which may begin with a request that was sent ahead
        self._waiting_for_client = not self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.request_seconds, self._check)

    def _check(self) -> None:
        """At the deadline: an idle connection is fine (uvicorn closes it), any other is ended."""
        # Not close(), which would wait for a client that never reads the rest of its answer.
        if self._waiting_for_client or self.transport.get_write_buffer_size() > 0:
            self.transport.abort()
