"""The guard before the application: every request passes here first, every answer last.

What it refuses never reaches the code that knows about items and answers. Refusals are one JSON
sentence; nothing of the inside is ever shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.label.security import HostCheck, RateLimit, Signer, same_secret

logger = logging.getLogger(__name__)

# A page of another origin cannot send a header of its own making without asking us first.
HEADER = "x-likewise"
SESSION = "session"

SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
}


@dataclass
class Limits:
    """How much of anything one client may take. The defaults are far above what people do."""

    body_bytes: int = 8192
    """The largest request."""
    body_seconds: float = 10.0
    """How long it may take to arrive."""
    requests: RateLimit = field(default_factory=lambda: RateLimit(2000, 4000))
    """All requests of one address."""
    answers: RateLimit = field(default_factory=lambda: RateLimit(50, 300))
    """Answers, and answers taken back, of one person."""
    joins: RateLimit = field(default_factory=lambda: RateLimit(5, 100))
    """Names given at one address."""
    wrong_tokens: RateLimit = field(default_factory=lambda: RateLimit(0.2, 20))
    """Guesses at the token from one address."""


class Refusal(Exception):
    """A request that is refused, with the status and the sentence to answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence

    def response(self) -> Response:
        """The answer to the client."""
        return JSONResponse({"error": self.sentence}, self.status)


class Guard:
    """ASGI middleware: hosts, origins, rates, sizes, the token, and the headers of each answer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        signer: Signer,
        token: str | None,
        hosts: HostCheck,
        limits: Limits,
        cookie: str,
        refused_page: bytes,
    ) -> None:
        self._app, self._signer, self._token = app, signer, token
        self._hosts, self._limits, self._cookie = hosts, limits, cookie
        self._refused_page = refused_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            self._admit(scope)
            body = await self._read_body(scope, receive)
            await self._app(scope, body, send_with_headers)
        except Refusal as refusal:
            response = self._refuse(scope, refusal)
            await response(scope, receive, send_with_headers)
        except Exception:
            logger.exception("a request failed")
            if started:
                raise  # the server closes the connection: half an answer must not look whole
            response = JSONResponse({"error": "the server failed; try again."}, 500)
            await response(scope, receive, send_with_headers)

    def _admit(self, scope: Scope) -> None:
        headers, address = Headers(scope=scope), client_address(scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.allows(hosts[0]):
            raise Refusal(421, "this server does not answer to that host name.")
        if not self._limits.requests.allows(address):
            raise Refusal(429, "too many requests; wait a moment.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refusal(405, "this method is not allowed.")
        self._authenticate(scope, headers, address)
        if scope["method"] == "POST":
            _check_own_page(headers)

    def _authenticate(self, scope: Scope, headers: Headers, address: str) -> None:
        """Believe a session that we signed, or the token; find the session for what comes after."""
        session = self._signer.verify(SESSION, _cookie(headers, self._cookie))
        scope["likewise.session"] = session
        if self._token is None or session is not None:
            return
        given = _token_of(scope, headers)
        if given is not None and same_secret(given, self._token):
            return
        if given is not None and not self._limits.wrong_tokens.allows(address):
            raise Refusal(429, "too many wrong tokens; wait a minute.")
        raise Refusal(401, "this server needs the token of its link; ask whoever started it.")

    async def _read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Take in the whole body, within limits of size and time, and hand it on as one message."""
        if scope["method"] != "POST":
            return receive
        limit = self._limits.body_bytes
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > limit:
            raise Refusal(413, f"a request may hold {limit} bytes at most.")
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request broke off.")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > limit:
                        raise Refusal(413, f"a request may hold {limit} bytes at most.")
        except TimeoutError:
            raise Refusal(408, "the request came too slowly.") from None
        pending: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        return replay

    def _refuse(self, scope: Scope, refusal: Refusal) -> Response:
        response = refusal.response()
        if refusal.status == 401 and scope["path"] == "/":
            response = Response(self._refused_page, 401, media_type="text/html")
        if scope["method"] == "POST":
            response.headers["connection"] = "close"  # the rest of the body is not read
        return response


def client_address(scope: Scope) -> str:
    """The network address of whoever sent the request."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _check_own_page(headers: Headers) -> None:
    """Refuse a post that another site's page may have caused."""
    if headers.get(HEADER) is None:
        raise Refusal(403, f"a post must carry the header {HEADER}.")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "posts from other sites are refused.")
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != headers["host"].lower():
        raise Refusal(403, "posts from other sites are refused.")
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refusal(415, "a post must be JSON.")


def _cookie(headers: Headers, name: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


def _token_of(scope: Scope, headers: Headers) -> str | None:
    """The token that a request shows, in its address or its header."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    try:
        fields = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20)
    except ValueError:
        raise Refusal(400, "that address has too many fields.") from None
    return fields["token"][0] if "token" in fields else None
