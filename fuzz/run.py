"""Fuzzing one reader."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.mutation import mutate
from fuzz.targets import Target
from likewise.errors import InputError

MAX_FINDINGS = 5
MAX_SENTENCE = 2000


@dataclass(frozen=True)
class Finding:
    """A file that a reader neither read nor refused properly."""

    content: bytes
    error: Exception


@dataclass
class Outcome:
    """How many spoilt files were still readable, how many were refused, and which did worse."""

    read: int = 0
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)


def fuzz_one(target: Target, rng: random.Random, going: Callable[[], bool]) -> Outcome:
    """Spoil and read files while ``going()``; stops early after a few findings."""
    seeds, outcome = target.seeds(), Outcome()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / target.file
        while going() and len(outcome.findings) < MAX_FINDINGS:
            content = mutate(rng.choice(seeds), seeds, rng)
            path.write_bytes(content)
            _try(target, path, content, outcome)
    return outcome


def warm_up(target: Target) -> None:
    """Read a good file, so that imports are not counted as fuzzing."""
    left = iter(range(1))
    fuzz_one(target, random.Random(0), lambda: next(left, None) is not None)


def _try(target: Target, path: Path, content: bytes, outcome: Outcome) -> None:
    try:
        target.read(path)
        outcome.read += 1
    except InputError as error:
        outcome.refused += 1
        if not 0 < len(str(error)) <= MAX_SENTENCE:
            outcome.findings.append(Finding(content, error))
    except Exception as error:  # which is what we are looking for
        outcome.findings.append(Finding(content, error))
