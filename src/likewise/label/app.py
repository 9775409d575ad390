"""The web application: one page, its files, the pictures, and some calls that speak JSON."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from likewise.errors import InputError
from likewise.io.json import JsonObject, parse_json_object
from likewise.label.catalogue import Catalogue
from likewise.label.guard import SESSION, Guard, Limits, Refusal, client_address
from likewise.label.hiring import Hiring
from likewise.label.items import Items, looks_of, open_items
from likewise.label.security import HostCheck, Signer, clean_annotator
from likewise.label.session import Action, LabellingSession, Session
from likewise.label.sorting import SortingSession
from likewise.label.statements import AnswerConflict
from likewise.label.store import DatabaseLost, Store
from likewise.label.suggesting import Suggester

logger = logging.getLogger(__name__)

QUESTION = "Are these two of the same kind?"
SORT_QUESTION = "Put what is of the same kind into one pile."
_SESSION_SECONDS = 30 * 24 * 3600
_STATIC = {
    "label.css": "text/css",
    "label.js": "text/javascript",
    "page.js": "text/javascript",
    "pairs.js": "text/javascript",
    "sorting.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
Handler = Callable[[Request], Awaitable[Response]]


def create_app(
    items: Items | str | Path,
    database: str | Path,
    *,
    token: str | None = None,
    hosts: HostCheck | Iterable[str] = (),
    question: str | None = None,
    show_names: bool = False,
    suggester: Suggester | None = None,
    sort: int | None = None,
    hire: Hiring | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """The application that shows pairs of ``items`` and keeps the answers in ``database``.

    With ``sort`` people sort so many items a screen into piles instead of judging pairs. Without a
    ``token`` everybody who can reach it may judge: right for loopback only. ``hosts`` are the
    names, beside localhost and loopback addresses, that requests may call it by. ``show_names``
    puts each item's id under it; off by default, because names tell classes. ``hire`` says what
    is asked of people who come from a platform, and how they end.
    """
    if isinstance(items, str | Path):
        items = open_items(items)
    if sort is not None and suggester is not None:
        raise InputError("suggestions choose pairs; leave them out where people sort.")
    store = Store(database)
    signer = Signer(store.key, token)
    catalogue = Catalogue(items, store.key, show_names)
    try:
        store.keep_items(items.ids, looks_of(items))
        labelling = _session(catalogue, store, signer, suggester, sort, hire)
    except InputError:
        store.close()
        raise
    limits = limits or Limits()
    cookie = f"likewise_{hashlib.sha256(store.key).hexdigest()[:8]}"
    question = question or (QUESTION if sort is None else SORT_QUESTION)
    about: JsonObject = {
        "mode": labelling.mode,
        "question": question,
        "parameters": list((hire or Hiring()).parameters),
    }
    pages = _Pages(labelling, catalogue, signer, limits, cookie, about)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        labelling.close()
        store.close()

    guard = Middleware(
        Guard,
        signer=signer,
        token=token,
        hosts=hosts if isinstance(hosts, HostCheck) else HostCheck(hosts),
        limits=limits,
        cookie=cookie,
        refused_page=_read("templates", "refused.html"),
    )
    return Starlette(routes=pages.routes(), middleware=[guard], lifespan=lifespan)


def _session(
    catalogue: Catalogue,
    store: Store,
    signer: Signer,
    suggester: Suggester | None,
    sort: int | None,
    hire: Hiring | None,
) -> Session:
    """What people do here: judge pairs, or sort."""
    if hire is not None:
        store.submit(hire.keep, writes=True).result()
    if sort is None:
        return LabellingSession(catalogue, store, signer, suggester=suggester, hire=hire)
    return SortingSession(catalogue, store, signer, sort, hire)


class _Pages:
    """The handlers, and what they share."""

    def __init__(
        self,
        labelling: Session,
        catalogue: Catalogue,
        signer: Signer,
        limits: Limits,
        cookie: str,
        about: JsonObject,
    ) -> None:
        self._labelling, self._catalogue, self._signer = labelling, catalogue, signer
        self._limits, self._cookie, self._about = limits, cookie, about
        self._page = _read("templates", "page.html")
        self._decoders = anyio.CapacityLimiter(2)  # pictures must not starve answers

    def routes(self) -> list[Route]:
        """Every address of the server."""
        return [
            Route("/", self.page),
            *(Route(f"/static/{name}", _static(name, kind)) for name, kind in _STATIC.items()),
            Route("/items/{key}", self.picture),
            Route("/api/state", self.state),
            Route("/api/join", self.join, methods=["POST"]),
            Route("/api/leave", self.leave, methods=["POST"]),
            *(
                Route(f"/api/{name}", self._acting(action), methods=["POST"])
                for name, action in self._labelling.actions.items()
            ),
        ]

    async def page(self, request: Request) -> Response:
        """The page itself; it asks for everything else."""
        response = Response(self._page, media_type="text/html")
        if request.scope["likewise.session"] is None:
            # Whoever came with the token (the guard saw it) needs no token from here on.
            self._set_session(request, response, None)
        return response

    async def picture(self, request: Request) -> Response:
        """One item's picture."""
        index = self._catalogue.find(request.path_params["key"])
        if index is None or not self._catalogue.items.are_pictures:
            raise Refusal(404, "there is no such picture.")
        try:
            picture = await anyio.to_thread.run_sync(
                self._catalogue.items.picture, index, limiter=self._decoders
            )
        except InputError:
            raise Refusal(422, "this picture cannot be shown.") from None
        headers = {"cache-control": "private, max-age=3600"}
        return Response(picture.data, media_type=picture.media_type, headers=headers)

    async def state(self, request: Request) -> Response:
        """What the page shows now: the open pair, or that a name is needed."""
        annotator = _session_annotator(request)
        claimed = request.query_params.get("annotator")
        if annotator is None or (claimed is not None and claimed != annotator):
            return JSONResponse({"annotator": None, **self._about})
        return await self._state(annotator)

    async def join(self, request: Request) -> Response:
        """Begin, or go on, as a person; from then on the session says who answers."""
        if not self._limits.joins.allows(client_address(request.scope)):
            raise Refusal(429, "too many people at once; wait a moment.")
        body = await _json_object(request)
        try:
            annotator = clean_annotator(body.get("annotator"))
        except InputError as error:
            raise Refusal(422, str(error)) from None
        response = await self._state(annotator)
        self._set_session(request, response, annotator)
        return response

    async def leave(self, request: Request) -> Response:
        """Forget who is judging in this browser."""
        response = JSONResponse({"annotator": None, **self._about})
        self._set_session(request, response, None)
        return response

    def _acting(self, action: Action) -> Handler:
        """A handler that does what a person asks for, then shows how things stand."""

        async def handler(request: Request) -> Response:
            annotator, body = await self._from_person(request)
            await _stored(action(annotator, body))
            return await self._state(annotator, body.get("ticket"))

        return handler

    async def _state(self, annotator: str, known: object = None) -> Response:
        state = await self._labelling.state(annotator, known)
        return JSONResponse({**state, **self._about})

    async def _from_person(self, request: Request) -> tuple[str, JsonObject]:
        """Who is speaking, by the session alone, and what they say."""
        annotator, body = _session_annotator(request), await _json_object(request)
        if annotator is None:
            raise Refusal(401, "say who you are first.")
        # The page says for whom it believes to speak: another tab may have changed the session.
        if body.get("annotator") != annotator:
            raise Refusal(409, "this browser is judging under another name now.")
        if not self._limits.answers.allows(annotator):
            raise Refusal(429, "too many answers at once; wait a moment.")
        return annotator, body

    def _set_session(self, request: Request, response: Response, annotator: str | None) -> None:
        response.set_cookie(
            self._cookie,
            self._signer.sign(SESSION, {"annotator": annotator}),
            max_age=_SESSION_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )


async def _stored(work: Awaitable[None]) -> None:
    """Wait for the store, and turn what went wrong into one sentence."""
    try:
        await work
    except AnswerConflict as error:
        raise Refusal(409, str(error)) from None
    except InputError as error:
        raise Refusal(422, str(error)) from None
    except DatabaseLost as error:
        logger.error("%s", error)
        raise Refusal(503, "the database is gone; tell whoever started this page.") from None
    except sqlite3.Error as error:
        logger.error("an answer could not be stored: %s", error)
        raise Refusal(503, "the answer could not be stored; is the disk full?") from None


async def _json_object(request: Request) -> JsonObject:
    try:
        return parse_json_object(await request.body(), "the request")
    except InputError:
        raise Refusal(400, "the request must be a JSON object.") from None


def _session_annotator(request: Request) -> str | None:
    session = request.scope["likewise.session"]
    return None if session is None else session["annotator"]


def _static(name: str, media_type: str) -> Handler:
    """A handler for one of our own files: the names are fixed, no request chooses a path."""
    content = _read("static", name)

    async def handler(_: Request) -> Response:
        headers = {"cache-control": "no-cache"}
        return Response(content, media_type=media_type, headers=headers)

    return handler


def _read(*parts: str) -> bytes:
    return files("likewise.label").joinpath(*parts).read_bytes()
