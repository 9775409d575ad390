"""The sorting session: a screen of items that a person sorts into piles, move by move.

Nothing is held in memory: each request reads how the person's screen stands from the database, so
that tabs, a reload and a new start of the server cannot disagree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from likewise.errors import InputError
from likewise.io.json import JsonObject
from likewise.label import sort_statements as statements
from likewise.label.catalogue import Catalogue
from likewise.label.hiring import Hiring
from likewise.label.screens import MAX_SIZE, joined, next_screen
from likewise.label.security import Signer
from likewise.label.session import Action
from likewise.label.sort_statements import Screen, Sorting
from likewise.label.statements import AnswerConflict
from likewise.label.store import Store


class SortingSession:
    """Shows people screens of items and takes their piles."""

    mode = "sort"

    def __init__(
        self,
        catalogue: Catalogue,
        store: Store,
        signer: Signer,
        size: int = MAX_SIZE,
        hire: Hiring | None = None,
    ) -> None:
        if not 3 <= size <= MAX_SIZE:
            raise InputError(f"a screen holds 3 to {MAX_SIZE} items, not {size}.")
        if hire is not None and (hire.pairs is not None or hire.gold is not None):
            raise InputError("listed pairs and gold questions are pairs; leave out the sorting.")
        self._catalogue, self._store, self._signer, self._size = catalogue, store, signer, size
        self._hire = hire

    @property
    def actions(self) -> Mapping[str, Action]:
        """Moving items, finishing a screen, and taking either back."""
        return {"move": self._move, "finish": self._finish, "undo": self._undo}

    def close(self) -> None:
        """There is nothing to let go of."""

    async def state(self, annotator: str, known: object = None) -> JsonObject:
        """How the person's screen stands; its items are left out where the page has them."""
        now = await asyncio.wrap_future(
            self._store.submit(lambda db: statements.sorting(db, annotator))
        )
        screen = self._screen(annotator, now, known)
        finish = None
        if self._hire is not None and screen is None:
            finish = self._hire.completion(annotator, self._store.key)
        return {
            "annotator": annotator,
            "mine": now.finished,
            "everyone": now.everyone,
            "undo": _undoable(now),
            "finish": finish,
            "sort": screen,
        }

    def _screen(self, annotator: str, now: Sorting, known: object) -> JsonObject | None:
        items = self._items(annotator, now)
        if not items:
            return None
        keys = [self._catalogue.keys[k] for k in items]
        ticket = self._signer.sign("sort", [annotator, now.number, *keys])
        piles = {} if now.open is None else now.open.piles
        ids = self._catalogue.items.ids
        shown: JsonObject = {
            "ticket": ticket,
            "after": 0 if now.open is None else now.open.steps,
            "piles": {self._catalogue.keys[k]: piles[ids[k]] for k in items if ids[k] in piles},
        }
        if known != ticket:
            shown["items"] = [
                {"key": self._catalogue.keys[k], **self._catalogue.show(k)} for k in items
            ]
        return shown

    def _items(self, annotator: str, now: Sorting) -> list[int]:
        """The items of the open screen that are still there, or of the next one."""
        index = self._catalogue.index
        if now.open is not None:
            return [index[item] for item in now.open.items if item in index]
        most = None if self._hire is None else self._hire.per_person
        if most is not None and now.number >= most:
            return []
        seen = {index[item] for item in now.seen if item in index}
        piles = [[index[item] for item in pile if item in index] for pile in now.piles]
        return next_screen(
            annotator,
            now.number,
            seen,
            joined(pile for pile in piles if pile),
            len(self._catalogue),
            self._size,
            self._store.key,
        )

    async def _move(self, annotator: str, body: JsonObject) -> None:
        """Put items into a pile, or back; returns when it is durable."""
        number, items = self._asked(annotator, body)
        pile, after, moved = body.get("pile"), _steps(body), body.get("items")
        if pile is not None and (type(pile) is not int or not 0 <= pile < MAX_SIZE):
            raise InputError(f"a pile is a number from 0 to {MAX_SIZE - 1}, or null.")
        if not isinstance(moved, list) or not 0 < len(moved) <= MAX_SIZE:
            raise InputError("a move needs the keys of some items of the screen.")
        ids = self._ids(moved)
        await asyncio.wrap_future(
            self._store.submit(
                lambda db: statements.move(db, annotator, number, items, ids, pile, after),
                writes=True,
            )
        )

    async def _finish(self, annotator: str, body: JsonObject) -> None:
        """End the screen as it stands."""
        number, items = self._asked(annotator, body)
        after = _steps(body)
        await asyncio.wrap_future(
            self._store.submit(
                lambda db: statements.finish(db, annotator, number, items, after), writes=True
            )
        )

    async def _undo(self, annotator: str, body: JsonObject) -> None:
        """Take back the last move, or the end of the screen before."""
        undo = body.get("undo")
        screen, step = (undo.get("screen"), undo.get("step")) if isinstance(undo, dict) else (0, 0)
        if type(screen) is not int or not 0 < screen < 2**63:
            raise InputError("an undo needs the number of the screen.")
        if step is not None and (type(step) is not int or not 0 < step < 2**31):
            raise InputError("an undo needs the number of the move, or null.")
        await asyncio.wrap_future(
            self._store.submit(lambda db: statements.undo(db, annotator, screen, step), writes=True)
        )

    def _asked(self, annotator: str, body: JsonObject) -> tuple[int, list[str]]:
        """The number and the items of the screen that a ticket is for."""
        ticket = body.get("ticket")
        asked = self._signer.verify("sort", ticket) if isinstance(ticket, str) else None
        if not isinstance(asked, list) or asked[0] != annotator or type(asked[1]) is not int:
            raise InputError("that screen was not given to you.")
        return asked[1], self._ids(asked[2:])

    def _ids(self, keys: Sequence[object]) -> list[str]:
        found = [self._catalogue.find(key) for key in keys]
        if None in found:
            raise AnswerConflict("one of these items is no longer there.")
        return [self._catalogue.items.ids[k] for k in found if k is not None]


def _undoable(now: Sorting) -> JsonObject | None:
    """What an undo takes back now: the last move, else the end of the screen before."""
    screen: Screen | None = now.open
    if screen is not None and screen.last is not None:
        return {"screen": screen.id, "step": screen.last}
    return None if now.last_finished is None else {"screen": now.last_finished, "step": None}


def _steps(body: JsonObject) -> int:
    after = body.get("after")
    if type(after) is not int or not 0 <= after < 2**31:
        raise InputError("say after how many moves.")
    return after
