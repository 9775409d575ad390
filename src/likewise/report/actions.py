"""From the report back to people: the command that acts on a finding, beside it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import numpy as np

from likewise.report.contents import Contents
from likewise.report.findings import uninformative

MAX_PEOPLE = 3


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    words: str
    """What it is for."""
    command: str
    """What to type."""


def actions(contents: Contents) -> dict[str, list[Step]]:
    """The steps beside each section that has some: people, classes, suspects."""
    return {
        "people": _people(contents),
        "classes": _classes(contents),
        "suspects": _suspects(contents),
    }


def _people(contents: Contents) -> list[Step]:
    """Fit again without those whose answers hardly depend on what they are shown."""
    careless = uninformative(contents.annotators or {})
    if not careless:
        return []
    names = " ".join(f"--without-person {_quoted(name)}" for name in careless[-MAX_PEOPLE:])
    items, pairs = _input(contents, "items"), _input(contents, "pairs")
    run, out = _quoted(contents.name), _quoted(f"{contents.name}-without")
    return [
        Step(
            "Leave out people who hardly look, and keep the classes as they are:",
            f"likewise fit {items} {pairs} {names} --like {run} --out {out}",
        )
    ]


def _classes(contents: Contents) -> list[Step]:
    """Merge the two classes that are hardest to tell apart, split the one that is least sure."""
    if contents.n_classes < 3:
        return []
    run = _quoted(contents.name)
    a, b = _most_confused(contents)
    first, second = (_quoted(_plain(contents.class_names[k])) for k in (a, b))
    found = [
        Step(
            f"If {contents.class_names[a]} and {contents.class_names[b]}, the hardest to tell "
            "apart, are one:",
            f"likewise merge {run} {first} {second} --out {_quoted(contents.name + '-merged')}",
        )
    ]
    sure = [
        float(contents.confidence[contents.predicted == k].mean())
        if (contents.predicted == k).any()
        else 1.0
        for k in range(contents.n_classes)
    ]
    widest = int(np.argmin(sure))
    found.append(
        Step(
            f"If {contents.class_names[widest]}, the least sure, is two:",
            f"likewise split {run} {_quoted(_plain(contents.class_names[widest]))} "
            f"--out {_quoted(contents.name + '-split')}",
        )
    )
    return found


def _suspects(contents: Contents) -> list[Step]:
    """Ask people again about the judgements that are most probably wrong."""
    if not contents.suspects.get("left"):
        return []
    items = _input(contents, "items")
    return [
        Step(
            "Ask people again about these pairs:",
            f"likewise suspects {_quoted(contents.name)} --out ask.csv\n"
            f"likewise label {items} --pairs ask.csv --out again.db",
        )
    ]


def _most_confused(contents: Contents) -> tuple[int, int]:
    """The two classes that items hesitate between most."""
    g = np.asarray(contents.posterior, np.float64)
    together = g.T @ g
    np.fill_diagonal(together, -1)
    a, b = np.unravel_index(int(together.argmax()), together.shape)
    return int(a), int(b)


def _input(contents: Contents, name: str) -> str:
    record = contents.config.get(name)
    path = record.get("path") if isinstance(record, dict) else None
    return name.upper() if path is None else _quoted(str(path))


def _plain(name: str) -> str:
    """A class as commands name it: a number has no "class" before it."""
    return name.removeprefix("class ") if name.removeprefix("class ").isdecimal() else name


def _quoted(text: str) -> str:
    return shlex.quote(text)
