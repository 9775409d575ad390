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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        others = (getattr(other, "client", None) for other in self.connections)
        if sum(client is not None and client[0] == address for client in others) > (
            self.max_per_address
        ):
            transport.abort()
            return
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._start_deadline()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._stop_deadline()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        # Not close(), which would wait for a client that never reads the rest of its answer.
        self.transport.abort()

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.request_seconds, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
