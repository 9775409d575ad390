"""What hired people are asked, and what they get at the end.

People for hire come from a platform (Prolific, Mechanical Turk) by an address that says who they
are, answer so many questions, some of them with an answer that is known (*gold*), and go back with
a completion code that proves it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from likewise.errors import InputError
from likewise.io.json import JsonObject
from likewise.label.asking import Questions
from likewise.label.pairing import encode
from likewise.pairs import Pairs
from likewise.pairs.formats.links import read_questions

PARAMETERS = ("annotator", "PROLIFIC_PID", "workerId")
"""Parameters of the address that may say who comes."""
_CODE = re.compile(r"[\w-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Hiring:
    """The terms: how much is asked of each person, which pairs, what is known, and the end."""

    per_person: int | None = None
    """Questions (or screens to sort) of each person, gold ones among them."""
    pairs: str | Path | None = None
    """A file of the pairs to ask; by default any."""
    gold: str | Path | None = None
    """A file of judgements that are known to be right, which are asked among the others."""
    gold_every: int = 10
    """One question in so many is a gold one."""
    parameters: Sequence[str] = PARAMETERS
    """Parameters of the address that may say who comes; the first that is there counts."""
    finish: str | None = None
    """Where people go at the end; {code} and {person} stand for theirs."""
    code: str | None = None
    """One completion code for all; by default each person gets one of their own."""

    def __post_init__(self) -> None:
        if self.per_person is not None and self.per_person < 1:
            raise InputError("each person must be asked at least one question.")
        if self.gold_every < 2:
            raise InputError("gold questions must be fewer than all: every second at most.")
        if self.code is not None and not _CODE.fullmatch(self.code):
            raise InputError("a completion code is 1 to 64 letters, digits, - or _.")
        if self.finish is not None:
            _check_address(self.finish)

    def questions(self, ids: Sequence[str]) -> Questions:
        """What is asked about items of these ids."""
        listed: list[int] | None = None
        if self.pairs is not None:
            left, right = read_questions(self.pairs, ids)
            listed = [encode(int(i), int(j)) for i, j in zip(left, right, strict=True)]
        gold = {} if self.gold is None else _read_gold(self.gold, ids)
        return Questions(self.per_person, listed, gold, self.gold_every)

    def completion(self, annotator: str, secret: bytes) -> JsonObject:
        """What a person is shown at the end: the code, and the address to go to."""
        code = self.code or completion_code(annotator, secret)
        address = (self.finish or "").replace("{code}", quote(code, safe=""))
        return {"code": code, "address": address.replace("{person}", quote(annotator, safe=""))}

    def keep(self, db: sqlite3.Connection) -> None:
        """Note the terms in the database, for the table of approvals."""
        terms = json.dumps({"per_person": self.per_person, "code": self.code}).encode()
        db.execute("INSERT OR REPLACE INTO meta VALUES ('hiring', ?)", (terms,))


def completion_code(annotator: str, secret: bytes) -> str:
    """The code of one person, which nobody else can work out."""
    digest = hashlib.blake2b(f"completion {annotator}".encode(), digest_size=10, key=secret)
    return base64.b32encode(digest.digest()).decode().lower()[:12]


def _read_gold(path: str | Path, ids: Sequence[str]) -> dict[int, bool]:
    known = Pairs.read(path, item_ids=ids).explicit()
    gold: dict[int, bool] = {}
    for left, right, same in zip(known.left, known.right, known.same, strict=True):
        if gold.setdefault(encode(int(left), int(right)), bool(same)) != bool(same):
            raise InputError(
                f"{Path(path).name} says of {ids[left]!r} and {ids[right]!r} both that they are of "
                "one kind and that they are not; a gold question has one answer."
            )
    return gold


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable or not address.isprintable() or " " in address:
        raise InputError(
            f"the finish address must begin with https:// and a host name, but is {address!r}."
        )
