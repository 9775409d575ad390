"""The labelling session, between page and store: who is judging, what they see and answered.

No HTTP here: `likewise.label.app` translates. What is held in memory is a copy of the database,
made again from it after any restart.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from likewise.errors import InputError
from likewise.io.json import JsonObject
from likewise.label.items import Items
from likewise.label.pairing import Person, encode, next_pairs
from likewise.label.security import Signer
from likewise.label.statements import ANSWERS, AnswerConflict
from likewise.label.store import Store
from likewise.label.suggesting import BackgroundSuggestions, Suggester

MAX_PEOPLE = 10_000


class LabellingSession:
    """Shows people pairs and takes their answers."""

    def __init__(
        self,
        items: Items,
        store: Store,
        signer: Signer,
        *,
        suggester: Suggester | None = None,
        show_names: bool = False,
    ) -> None:
        self._items, self._store, self._signer = items, store, signer
        self._show_names = show_names
        self._index = {identity: k for k, identity in enumerate(items.ids)}
        # Items go by a keyed hash on the page: a file's name may well tell its class.
        self._keys = [self._item_key(identity) for identity in items.ids]
        self._by_key = {key: k for k, key in enumerate(self._keys)}
        self._people: OrderedDict[str, Person] = OrderedDict()
        self._everyone = store.count()
        self._suggestions = (
            None if suggester is None else BackgroundSuggestions(suggester, store.path, self._index)
        )
        if self._suggestions is not None:
            self._suggestions.notify(self._everyone)

    def close(self) -> None:
        """Let the background thread go."""
        if self._suggestions is not None:
            self._suggestions.stop()

    def find(self, key: str) -> int | None:
        """The number of the item that goes by a key."""
        return self._by_key.get(key)

    async def state(self, annotator: str) -> JsonObject:
        """What the page of that person shows now, as JSON values."""
        person = await self._person(annotator)
        codes = () if self._suggestions is None else self._suggestions.codes
        coming = next_pairs(person, len(self._keys), self._store.key, codes, count=2)
        return {
            "annotator": annotator,
            "mine": len(person.answered),
            "everyone": self._everyone,
            "undo": person.last,
            "pair": self._pair(annotator, *coming[0]) if coming else None,
            "preload": [
                self._url(k) for pair in coming[1:] for k in pair if self._items.are_pictures
            ],
        }

    async def answer(self, annotator: str, ticket: str, answer: str) -> None:
        """Store an answer to the pair of a ticket; returns when it is durable."""
        if answer not in ANSWERS:
            raise InputError(f"an answer is one of {', '.join(ANSWERS)}.")
        asked = self._signer.verify("ticket", ticket)
        if not isinstance(asked, list) or asked[0] != annotator:
            raise InputError("that pair was not asked of you.")
        left, right = self._by_key.get(str(asked[1])), self._by_key.get(str(asked[2]))
        if left is None or right is None:
            raise AnswerConflict("one of these items is no longer there.")
        person = await self._person(annotator)
        ids = self._items.ids
        stored = self._store.record(annotator, ids[left], ids[right], ANSWERS[answer])
        # Shielded: once submitted it will be stored, and must be noted even if the person left.
        code = encode(left, right)
        noted = self._note_answer(person, code, asyncio.wrap_future(stored))
        with self._read_again_on_conflict(annotator):
            await asyncio.shield(noted)

    async def undo(self, annotator: str, judgement: int) -> None:
        """Take back an answer of that person."""
        person = await self._person(annotator)
        undone = self._store.undo(annotator, judgement)
        with self._read_again_on_conflict(annotator):
            await asyncio.shield(self._note_undo(person, asyncio.wrap_future(undone)))

    @contextmanager
    def _read_again_on_conflict(self, annotator: str) -> Iterator[None]:
        """Where the database knows better, ours is an old copy: else the pair is asked for ever."""
        try:
            yield
        except AnswerConflict:
            self._people.pop(annotator, None)
            raise

    async def _note_undo(self, person: Person, undone: asyncio.Future[int]) -> None:
        if person.note_undo(await undone):
            self._everyone -= 1

    async def _note_answer(self, person: Person, code: int, stored: asyncio.Future[int]) -> None:
        judgement = await stored
        if code not in person.answered:
            self._everyone += 1
        person.note_answer(code, judgement)
        if self._suggestions is not None:
            self._suggestions.notify(self._everyone)

    async def _person(self, annotator: str) -> Person:
        if annotator not in self._people:
            history = await asyncio.wrap_future(self._store.history(annotator))
            person = Person(annotator)
            for judgement in history.standing:
                if (code := self._code(judgement.left, judgement.right)) is not None:
                    person.answered[code] = judgement.id
            for judgement in history.undone:
                if (code := self._code(judgement.left, judgement.right)) is not None:
                    person.reopened.append(code)
            self._people.setdefault(annotator, person)
            if len(self._people) > MAX_PEOPLE:
                self._people.popitem(last=False)
        self._people.move_to_end(annotator)
        return self._people[annotator]

    def _code(self, left: str, right: str) -> int | None:
        """The code of a stored pair, None where an item is no longer there."""
        if left not in self._index or right not in self._index:
            return None
        return encode(self._index[left], self._index[right])

    def _pair(self, annotator: str, left: int, right: int) -> JsonObject:
        ticket = self._signer.sign("ticket", [annotator, self._keys[left], self._keys[right]])
        return {"ticket": ticket, "left": self._show(left), "right": self._show(right)}

    def _show(self, index: int) -> JsonObject:
        shown: JsonObject = {}
        if self._show_names:
            shown["name"] = self._items.ids[index]
        if self._items.are_pictures:
            shown["picture"] = self._url(index)
        else:
            shown["cells"] = [list(cell) for cell in self._items.cells(index)]
        return shown

    def _url(self, index: int) -> str:
        return f"/items/{self._keys[index]}"

    def _item_key(self, identity: str) -> str:
        digest = hashlib.blake2b(identity.encode(), digest_size=12, key=self._store.key).digest()
        return base64.urlsafe_b64encode(digest).decode()
