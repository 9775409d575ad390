"""The table for paying: what each person did, how they did on what was known, and a suggestion.

A suggestion to pay, or to look first, and why; never one to refuse: that is for a person to decide.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median

from likewise.errors import InputError
from likewise.io.spreadsheets import write_csv
from likewise.io.sqlite_files import Cell, fetch_all
from likewise.label.hiring import completion_code
from likewise.pairs.formats.label_database import open_read_only

LEAST_GOLD = 0.7
"""The share of gold questions below which somebody should look."""
LEAST_SECONDS = 1.0
"""The median time of a judgement below which somebody should look."""
MANY = 20
"""So many answers without a second kind among them are worth a look."""


@dataclass
class Work:
    """What one person did."""

    answers: int = 0
    """Pairs judged, gold ones among them."""
    screens: int = 0
    """Screens sorted."""
    gold_asked: int = 0
    """Gold questions answered, "not sure" among them."""
    gold_right: int = 0
    """Those answered as is known."""
    kinds: set[int | None] = field(default_factory=set)
    """The answers that were given."""
    seconds: list[float] = field(default_factory=list)
    """From each answer to the next, and from the first move of a screen to its end."""


def write_approvals(database: str | Path, out: str | Path) -> int:
    """Write the table as CSV; returns the number of people."""
    columns = approvals(database)
    if Path(out).suffix != ".csv":
        raise InputError(f"{Path(out).name} must end in .csv: the table of approvals is one.")
    write_csv(out, columns)
    return len(columns["person"])


def approvals(database: str | Path) -> dict[str, list[object]]:
    """A row a person, in the order of names: the columns of the table."""
    people, secret, terms = _read(Path(database))
    per_person, code = terms.get("per_person"), terms.get("code")
    table: dict[str, list[object]] = defaultdict(list)
    for person, work in sorted(people.items()):
        done = work.answers + work.screens
        finished = per_person is None or done >= int(per_person)
        reasons = _doubts(work)
        row = {
            "person": person,
            "answers": work.answers,
            "screens": work.screens,
            "gold_right": work.gold_right,
            "gold_asked": work.gold_asked,
            "median_seconds": round(median(work.seconds), 2) if work.seconds else "",
            "code": (code or completion_code(person, secret)) if finished else "",
            "suggestion": "unfinished" if not finished else "look" if reasons else "approve",
            "why": "; ".join(reasons) if finished else f"{done} of {per_person} done",
        }
        for name, value in row.items():
            table[name].append(value)
    if not table:
        raise InputError(f"nobody has answered anything in {database} yet.")
    return dict(table)


def _doubts(work: Work) -> list[str]:
    """Why somebody should look before this person is paid."""
    reasons = []
    if work.gold_asked and work.gold_right < LEAST_GOLD * work.gold_asked:
        reasons.append(f"{work.gold_right} of {work.gold_asked} gold questions right")
    if work.seconds and (middle := median(work.seconds)) < LEAST_SECONDS:
        reasons.append(f"half of it within {middle:.1f} s each")
    if work.answers >= MANY and len(work.kinds) == 1:
        word = {1: "same", 0: "different", None: "not sure"}[next(iter(work.kinds))]
        reasons.append(f'every answer is "{word}"')
    return reasons


def _read(path: Path) -> tuple[dict[str, Work], bytes, dict[str, str | int | None]]:
    """(people, the key, the terms they were hired on)."""
    connection = open_read_only(path)
    try:
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        is_old = connection.execute("PRAGMA user_version").fetchone()[0] < 2
        gold = "" if is_old else "UNION ALL SELECT annotator, at, same, expected, id FROM gold "
        answers = fetch_all(
            connection,
            f"SELECT annotator, at, same, expected FROM (SELECT annotator, at, same, NULL AS "
            f"expected, id FROM judgements {gold}) ORDER BY id",
            path,
        )
        screens: list[tuple[Cell, ...]] = []
        if not is_old:
            query = "SELECT annotator, begun_at, finished_at FROM screens WHERE finished_at NOTNULL"
            screens = fetch_all(connection, query, path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as judgements: it is damaged.") from error
    finally:
        connection.close()
    terms = json.loads(meta["hiring"]) if "hiring" in meta else {}
    return _people(answers, screens), meta["key"], terms


def _people(answers: list[tuple[Cell, ...]], screens: list[tuple[Cell, ...]]) -> dict[str, Work]:
    people: dict[str, Work] = defaultdict(Work)
    before: dict[str, str] = {}
    for annotator, at, same, expected in answers:
        name, time, work = str(annotator), str(at), people[str(annotator)]
        work.answers += 1
        work.kinds.add(None if same is None else int(same))
        if expected is not None:
            work.gold_asked += 1
            work.gold_right += same == expected
        if name in before:
            work.seconds.append(_seconds(before[name], time))
        before[name] = time
    for annotator, begun, finished in screens:
        work = people[str(annotator)]
        work.screens += 1
        work.seconds.append(_seconds(str(begun), str(finished)))
    return people


def _seconds(begun: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
