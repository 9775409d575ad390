"""A room full of people who do what people do: is anything lost, or asked twice?

Thirty people judge at once, and then sort at once. They take back, skip, reload, and have the page
open in two tabs; the server is killed (SIGKILL) twice and started anew, and the database is copied
meanwhile, as ``cp`` does it and as ``likewise label --export copy.db`` does. What was acknowledged
is then compared with what is stored, and every copy with what had been acknowledged before it.

    python benchmarks/label_round.py --out results/label_round.json --docs docs/sorting.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from label_load import ANSWERS, Person, Server, keep, machine, make_pictures
from likewise.label import export_judgements, read_judgements
from likewise.label.store import BUSY_SECONDS, IDLE_SECONDS

SCREEN = 35
# Whatever was acknowledged so long before a plain copy is in it: the store moves answers to the
# file as soon as it is idle, and now and then however busy it is.
BEHIND_S = BUSY_SECONDS + IDLE_SECONDS + 1.0
COPY_EVERY_S = 1.5


class Conflict(Exception):
    """The server says that somebody else, another tab, was first."""


@dataclass
class Tabs(Person):
    """A person who also takes back, skips, reloads and has a second tab."""

    undone: int = 0
    reloads: int = 0
    conflicts: int = 0
    reasked: int = 0
    times: dict[Any, float] = field(default_factory=dict)

    async def insist(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask until there is an answer; all come from one address, and may have to wait."""
        while True:
            try:
                return await super().insist(method, path, body)
            except RuntimeError as error:
                if " 429 " not in str(error):
                    raise
                self.streams = None  # a refused post closes the connection
                await asyncio.sleep(0.5)

    async def try_(self, path: str, body: dict[str, Any]) -> Any:
        """Ask until there is an answer; a refusal because of another tab is a `Conflict`."""
        try:
            return await self.insist("POST", path, {"annotator": self.name, **body})
        except RuntimeError as error:
            if " 409 " not in str(error):
                raise
            self.streams = None  # a refused post closes the connection
            raise Conflict from None

    async def reload(self, part: str) -> Any:
        """The page anew; it must show what it showed."""
        self.reloads += 1
        state = await self.insist("GET", "/api/state")
        assert state["annotator"] == self.name, part
        return state


async def judge(person: Tabs, answers: int) -> None:
    """Give so many answers that stand, with what else people do in between."""
    rng = random.Random(person.name)
    state = await person.insist("POST", "/api/join", {"annotator": person.name})
    last: list[frozenset[str]] = []
    while len(person.acknowledged) < answers:
        pair = state["pair"]
        names = frozenset((pair["left"]["name"], pair["right"]["name"]))
        person.reasked += names in person.acknowledged
        answer = rng.choice(list(ANSWERS))  # "unsure" is how a pair is skipped
        sent = {"ticket": pair["ticket"], "answer": answer}
        state = await person.try_("/api/answer", sent)
        person.acknowledged[names] = ANSWERS[answer]
        person.times[names] = time.monotonic()
        last.append(names)
        what = rng.random()
        if what < 0.1 and state["undo"] is not None:
            state = await person.try_("/api/undo", {"judgement": state["undo"]})
            person.undone += 1
            del person.acknowledged[taken := last.pop()]
            again = frozenset((state["pair"]["left"]["name"], state["pair"]["right"]["name"]))
            assert again == taken, "what was taken back comes again"
        elif what < 0.2:
            before, state = state, await person.reload("judge")
            assert state["pair"] == before["pair"]
        elif what < 0.3:  # the other tab still shows the pair, and answers it otherwise
            other = next(word for word in ANSWERS if word != answer)
            try:
                await person.try_("/api/answer", {**sent, "answer": other})
                raise AssertionError("one pair was answered twice")
            except Conflict:
                person.conflicts += 1
            state = await person.insist("POST", "/api/join", {"annotator": person.name})


async def sort(person: Tabs, screens: int) -> None:
    """Sort so many screens, with what else people do in between."""
    rng = random.Random(person.name)
    state = await person.insist("POST", "/api/join", {"annotator": person.name})
    for _ in range(screens):
        names = {item["key"]: item["name"] for item in state["sort"]["items"]}
        person.reasked += frozenset(names.values()) in person.asked
        person.asked.append(frozenset(names.values()))
        piles: dict[str, int] = {}
        for key in names:
            state = await _move(person, rng, state, key, piles)
            if rng.random() < 0.05:
                before, state = state["sort"]["piles"], await person.reload("sort")
                assert state["sort"]["piles"] == before
        sheet = state["sort"]
        assert sheet["piles"] == piles, "the piles as this person made them"
        end = {"ticket": sheet["ticket"], "after": sheet["after"]}
        state = await person.try_("/api/finish", end)
        if rng.random() < 0.2:  # and once more, from a page that did not hear of it
            state = await person.try_("/api/undo", {"undo": state["undo"]})
            person.undone += 1
            state = await person.try_("/api/finish", end)
        done = {names[key]: pile for key, pile in piles.items()}
        person.acknowledged[person.asked[-1]] = done  # type: ignore[assignment]
        person.times[person.asked[-1]] = time.monotonic()


async def _move(
    person: Tabs, rng: random.Random, state: Any, key: str, piles: dict[str, int]
) -> Any:
    """One item into a pile, perhaps taken back again; one in ten is left out."""
    if rng.random() < 0.1:
        return state
    sheet, pile = state["sort"], rng.randrange(5)
    sent = {"ticket": sheet["ticket"], "after": sheet["after"], "items": [key], "pile": pile}
    state = await person.try_("/api/move", sent)
    what = rng.random()
    if what < 0.1:
        undo = {"undo": state["undo"], "ticket": sheet["ticket"]}
        state = await person.try_("/api/undo", undo)
        person.undone += 1
        return state
    piles[key] = pile
    if what < 0.2:  # the other tab is a move behind
        try:
            await person.try_("/api/move", {**sent, "pile": (pile + 1) % 5})
            raise AssertionError("a tab that is behind has moved an item")
        except Conflict:
            person.conflicts += 1
    return state


@dataclass
class Copies:
    """Copies of the database, made while it is written to."""

    folder: Path
    made: list[tuple[float, Path]] = field(default_factory=list)

    async def make(self, database: Path) -> None:
        """Copy again and again, in turn as ``cp`` does and as our export does."""
        while True:
            await asyncio.sleep(COPY_EVERY_S)
            copy = self.folder / f"copy-{len(self.made):03d}.db"
            begun = time.monotonic()
            if len(self.made) % 2 == 0:
                await asyncio.to_thread(shutil.copyfile, database, copy)
                begun -= BEHIND_S
            else:
                await asyncio.to_thread(export_judgements, database, copy)
            self.made.append((begun, copy))

    def check(self, persons: Sequence[Tabs], stored: Callable[[Path], dict[Any, Any]]) -> Counter:
        """How many copies there are, how many are damaged, how many answers they lack.

        An answer that was taken back later, and given again, is not looked for.
        """
        found = Counter(copies=len(self.made), damaged=0, lacking=0)
        for begun, copy in self.made:
            with closing(sqlite3.connect(copy)) as connection:
                sound = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            found["damaged"] += not sound
            there = stored(copy) if sound else {}
            found["lacking"] += sum(
                (person.name, what) not in there
                for person in persons
                for what, when in person.times.items()
                if when < begun and what in person.acknowledged
            )
        return found


async def crowd(
    server: Server,
    persons: list[Tabs],
    work: Callable[[Tabs], Awaitable[None]],
    total: int,
    kills: int,
    copies: Copies,
) -> None:
    """Everybody at once; the server killed so many times, evenly spread, and copies made."""

    async def killer() -> None:
        for k in range(kills):
            while sum(len(p.acknowledged) for p in persons) < total * (k + 1) // (kills + 1):
                await asyncio.sleep(0.005)
            server.kill()
            await asyncio.to_thread(server.start)

    copying = asyncio.create_task(copies.make(server.database))
    await asyncio.gather(killer(), *(work(person) for person in persons))
    await asyncio.sleep(2 * COPY_EVERY_S)
    copying.cancel()


def answers_in(database: Path) -> dict[Any, Any]:
    """The answers of a database by person and pair."""
    columns = read_judgements(database)
    rows = zip(*(columns[name] for name in ("left", "right", "same", "annotator")), strict=True)
    return {(who, frozenset((left, right))): same for left, right, same, who in rows}


def sorts_in(database: Path) -> dict[Any, Any]:
    """The piles of a database by person and screen."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as db:
        screens = db.execute(
            "SELECT id, annotator, items FROM screens WHERE finished_at IS NOT NULL"
        ).fetchall()
        piles: dict[int, dict[str, int]] = {screen[0]: {} for screen in screens}
        for screen, item, pile in db.execute("SELECT sort, item, pile FROM sorts"):
            piles[screen][item] = pile
    return {(who, frozenset(json.loads(items))): piles[k] for k, who, items in screens}


def measure(folder: Path, people: int, each: int, kills: int, sort_screens: bool) -> dict[str, Any]:
    """One room on one fresh database; every figure from "lost" to "lacking" should be 0."""
    folder.mkdir()
    server = Server(
        folder.parent / "items", folder / "round.db", sort=SCREEN if sort_screens else 0
    )
    persons = [Tabs(f"person {k:02d}", server.port) for k in range(people)]
    task, stored = (sort, sorts_in) if sort_screens else (judge, answers_in)
    copies, start = Copies(folder), time.perf_counter()
    try:
        asyncio.run(crowd(server, persons, lambda p: task(p, each), people * each, kills, copies))
    finally:
        seconds = time.perf_counter() - start
        server.stop()
    there = stored(server.database)
    promised = {(p.name, what): value for p in persons for what, value in p.acknowledged.items()}
    return {
        "people": people,
        "each": each,
        "kills": kills,
        "acknowledged": len(promised),
        "lost": sum(key not in there for key in promised),
        "changed": sum(key in there and there[key] != value for key, value in promised.items()),
        "never_acknowledged": len(there.keys() - promised.keys()),
        "asked_twice": sum(person.reasked for person in persons),
        **copies.check(persons, stored),
        "undone": sum(person.undone for person in persons),
        "reloads": sum(person.reloads for person in persons),
        "refused_second_tabs": sum(person.conflicts for person in persons),
        "retries": sum(person.retries for person in persons),
        "seconds": round(seconds, 1),
    }


def as_table(result: dict[str, Any]) -> str:
    """The figures for the documentation, in Markdown."""
    pairs, sorts = result["pairs"], result["sorts"]
    both = (pairs, sorts)
    rows = [
        ("", "pairs", "sorting"),
        ("---", "---:", "---:"),
        ("answers, or screens, acknowledged", *(f"{run['acknowledged']:,}" for run in both)),
        ("of them lost or changed", *(str(run["lost"] + run["changed"]) for run in both)),
        ("stored without having been given", *(str(run["never_acknowledged"]) for run in both)),
        ("asked twice of a person", *(str(run["asked_twice"]) for run in both)),
        ("taken back", *(f"{run['undone']:,}" for run in both)),
        ("reloads", *(f"{run['reloads']:,}" for run in both)),
        ("refused, from a tab that was behind", *(f"{run['refused_second_tabs']}" for run in both)),
        ("copies of the database meanwhile", *(str(run["copies"]) for run in both)),
        ("of them damaged, or lacking something", *(f"{_broken(run)}" for run in both)),
    ]
    text = (
        f"{pairs['people']} people at once, each giving {pairs['each']} answers, and then each "
        f"sorting {sorts['each']} screens of {SCREEN} items: they take back, skip, reload and have "
        f"two tabs open, while the server is killed {pairs['kills']} times and the database copied "
        "again and again (`benchmarks/label_round.py`):\n\n"
    )
    return text + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _broken(run: dict[str, Any]) -> int:
    return int(run["damaged"]) + int(run["lacking"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--answers", type=int, default=100, help="answers of each person")
    parser.add_argument("--screens", type=int, default=3, help="screens that each person sorts")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--docs", type=Path, help="a Markdown file with a place for the table")
    options = parser.parse_args()
    load = os.getloadavg()[0]  # what else the machine was doing
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pictures(folder / "items", options.items)
        sizes = (options.people, options.answers, options.kills)
        result = {
            "pairs": measure(folder / "pairs", *sizes, sort_screens=False),
            "sorts": measure(
                folder / "sorts", options.people, options.screens, options.kills, sort_screens=True
            ),
            **machine(load),
        }
    keep(result, "label_round", as_table(result), options.out, options.docs)


if __name__ == "__main__":
    main()
