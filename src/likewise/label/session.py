"""The labelling session, between page and store: who is judging, what they see and answered.

No HTTP here: `likewise.label.app` translates. What is held in memory is a copy of the database,
made again from it after any restart. `Session` is what the page of pairs and the page of sorts
(`likewise.label.sorting`) have in common.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from likewise.errors import InputError
from likewise.io.json import JsonObject
from likewise.label.catalogue import Catalogue
from likewise.label.hiring import Hiring
from likewise.label.pairing import Person, encode, next_pairs
from likewise.label.security import Signer
from likewise.label.statements import ANSWERS, AnswerConflict, counts
from likewise.label.store import Store
from likewise.label.suggesting import BackgroundSuggestions, Suggester

MAX_PEOPLE = 10_000
Action = Callable[[str, JsonObject], Awaitable[None]]


class Session(Protocol):
    """What a page needs: what to show a person, and what a person may do."""

    mode: str
    """What people do: "pairs" or "sort"."""

    @property
    def actions(self) -> Mapping[str, Action]:
        """What may be done, by name: a person and what the page sent; done when it is durable."""

    async def state(self, annotator: str, known: object = None) -> JsonObject:
        """What the page of that person shows now; a page may say which ticket it holds."""

    def close(self) -> None:
        """Let go of what was begun."""


class LabellingSession:
    """Shows people pairs and takes their answers."""

    mode = "pairs"

    def __init__(
        self,
        catalogue: Catalogue,
        store: Store,
        signer: Signer,
        *,
        suggester: Suggester | None = None,
        hire: Hiring | None = None,
    ) -> None:
        self._catalogue, self._store, self._signer = catalogue, store, signer
        self._hire = hire
        self._questions = (hire or Hiring()).questions(catalogue.items.ids)
        if (listed := self._questions.listed) is not None:
            for left, right, answers in store.submit(counts).result():
                if (code := self._code(left, right)) is not None:
                    listed.note(code, answers)
        self._people: OrderedDict[str, Person] = OrderedDict()
        self._everyone = store.count()
        self._suggestions = (
            None
            if suggester is None
            else BackgroundSuggestions(suggester, store.path, catalogue.index)
        )
        if self._suggestions is not None:
            self._suggestions.notify(self._everyone)

    @property
    def actions(self) -> Mapping[str, Action]:
        """Answering, and taking an answer back."""
        return {"answer": self._answer, "undo": self._undo}

    def close(self) -> None:
        """Let the background thread go."""
        if self._suggestions is not None:
            self._suggestions.stop()

    async def state(self, annotator: str, known: object = None) -> JsonObject:
        """What the page of that person shows now, as JSON values."""
        person = await self._person(annotator)
        codes = () if self._suggestions is None else self._suggestions.codes
        coming = next_pairs(
            person, len(self._catalogue), self._store.key, codes, count=2, questions=self._questions
        )
        finish = None
        if self._hire is not None and not coming:
            finish = self._hire.completion(annotator, self._store.key)
        return {
            "annotator": annotator,
            "mine": len(person.answered),
            "everyone": self._everyone,
            "undo": person.last,
            "finish": finish,
            "pair": self._pair(annotator, *coming[0]) if coming else None,
            "preload": [
                self._catalogue.url(k)
                for pair in coming[1:]
                for k in pair
                if self._catalogue.items.are_pictures
            ],
        }

    async def _answer(self, annotator: str, body: JsonObject) -> None:
        """Store an answer to the pair of a ticket; returns when it is durable."""
        ticket, answer = body.get("ticket"), body.get("answer")
        if not isinstance(ticket, str) or not isinstance(answer, str):
            raise InputError("an answer needs a ticket and an answer.")
        if answer not in ANSWERS:
            raise InputError(f"an answer is one of {', '.join(ANSWERS)}.")
        asked = self._signer.verify("ticket", ticket)
        if not isinstance(asked, list) or asked[0] != annotator:
            raise InputError("that pair was not asked of you.")
        left, right = self._catalogue.find(asked[1]), self._catalogue.find(asked[2])
        if left is None or right is None:
            raise AnswerConflict("one of these items is no longer there.")
        person = await self._person(annotator)
        ids = self._catalogue.items.ids
        code = encode(left, right)
        expected = self._questions.gold.get(code)
        stored = self._store.record(annotator, ids[left], ids[right], ANSWERS[answer], expected)
        # Shielded: once submitted it will be stored, and must be noted even if the person left.
        noted = self._note_answer(person, code, asyncio.wrap_future(stored))
        with self._read_again_on_conflict(annotator):
            await asyncio.shield(noted)

    async def _undo(self, annotator: str, body: JsonObject) -> None:
        """Take back an answer of that person."""
        judgement = body.get("judgement")
        if type(judgement) is not int or not 0 < judgement < 2**63:
            raise InputError("an undo needs the number of the judgement.")
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
        if (code := person.note_undo(await undone)) is not None:
            self._everyone -= 1
            self._note_count(code, -1)

    async def _note_answer(self, person: Person, code: int, stored: asyncio.Future[int]) -> None:
        judgement = await stored
        if code not in person.answered:
            self._everyone += 1
            self._note_count(code, 1)
        person.note_answer(code, judgement)
        if self._suggestions is not None:
            self._suggestions.notify(self._everyone)

    def _note_count(self, code: int, answers: int) -> None:
        if self._questions.listed is not None:
            self._questions.listed.note(code, answers)

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
        index = self._catalogue.index
        if left not in index or right not in index:
            return None
        return encode(index[left], index[right])

    def _pair(self, annotator: str, left: int, right: int) -> JsonObject:
        keys, show = self._catalogue.keys, self._catalogue.show
        ticket = self._signer.sign("ticket", [annotator, keys[left], keys[right]])
        return {"ticket": ticket, "left": show(left), "right": show(right)}
