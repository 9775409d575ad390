"""From the report back to people: the command that acts on a finding, beside it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import numpy as np

from likewise.report.commands import (
    GIVEN_T,
    beside,
    fit_without,
    input_path,
    knows_its_inputs,
    option,
    run_path,
)
from likewise.report.contents import Contents
from likewise.report.findings import uninformative
from likewise.runs.verdict import source_of_transition

MAX_PEOPLE = 3


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    words: str
    """What it is for."""
    command: str
    """What to type."""


def actions(contents: Contents) -> dict[str, list[Step]]:
    """The steps beside each section that has some: people, classes, suspects.

    None where the run does not know its items: they all fit, or ask, again.
    """
    known = knows_its_inputs(contents)
    return {
        "people": _people(contents) if known else [],
        "classes": _classes(contents) if known else [],
        "suspects": _suspects(contents) if known else [],
    }


def _people(contents: Contents) -> list[Step]:
    """Fit again without those whose answers hardly depend on what they are shown."""
    careless = uninformative(contents.annotators or {})
    if not careless:
        return []
    where = (
        f" ({GIVEN_T} is the T that was given)"
        if source_of_transition(contents.config) == "as given"
        else ""
    )
    words = f"Leave out people who hardly look, and keep the classes as they are{where}:"
    return [Step(words, fit_without(contents, careless[-MAX_PEOPLE:]))]


def _classes(contents: Contents) -> list[Step]:
    """Merge the two classes that are hardest to tell apart, split the one that is least sure."""
    if contents.n_classes < 3:
        return []
    run = _quoted(str(run_path(contents)))
    a, b = _most_confused(contents)
    first, second = (_quoted(_plain(contents.class_names[k])) for k in (a, b))
    found = [
        Step(
            f"If {contents.class_names[a]} and {contents.class_names[b]}, the hardest to tell "
            "apart, are one:",
            f"likewise merge {run} {first} {second} --out {beside(contents, 'merged')}",
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
            f"--out {beside(contents, 'split')}",
        )
    )
    return found


def _suspects(contents: Contents) -> list[Step]:
    """Ask people again about the judgements that are most probably wrong."""
    if not contents.suspects.get("left"):
        return []
    listed = f"likewise suspects {_quoted(str(run_path(contents)))} --out ask.csv"
    if not contents.can_be_shown:
        return [Step("Their pairs as a table, to ask people again:", listed)]
    column = contents.config["items"].get("id")
    ids = "" if column is None else f" {option('--id', column)}"
    again = f"likewise label {input_path(contents, 'items')} --pairs ask.csv{ids} --out again.db"
    return [Step("Ask people again about these pairs:", f"{listed}\n{again}")]


def _most_confused(contents: Contents) -> tuple[int, int]:
    """The two classes that items hesitate between most."""
    g = np.asarray(contents.posterior, np.float64)
    together = g.T @ g
    np.fill_diagonal(together, -1)
    a, b = np.unravel_index(int(together.argmax()), together.shape)
    return int(a), int(b)


def _plain(name: str) -> str:
    """A class as commands name it: a number has no "class" before it."""
    return name.removeprefix("class ") if name.removeprefix("class ").isdecimal() else name


def _quoted(text: str) -> str:
    return shlex.quote(text)
