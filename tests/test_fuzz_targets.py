"""A few hundred spoilt files for each reader, the same every time; `make fuzz` tries many more."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.mutation import mutate
from fuzz.run import fuzz_one
from fuzz.targets import TARGETS, Target

FILES = 60


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_good_files_are_read(target: Target, tmp_path: Path) -> None:
    for seed in target.seeds():
        (tmp_path / target.file).write_bytes(seed)
        target.read(tmp_path / target.file)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_spoilt_files_are_read_or_refused(target: Target) -> None:
    left = iter(range(FILES))
    outcome = fuzz_one(target, random.Random(target.name), lambda: next(left, None) is not None)
    assert [finding.error for finding in outcome.findings] == []
    assert outcome.read + outcome.refused == FILES


def test_a_reader_that_fails_is_found(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        if b"x" in path.read_bytes():
            raise KeyError("x")

    target = Target("broken", "file", lambda: [b"xxxx"], read)
    outcome = fuzz_one(target, random.Random(0), lambda: True)
    assert len(outcome.findings) == 5


def test_mutation_changes_most_files_and_is_repeatable() -> None:
    seed = bytes(range(200))
    made = [mutate(seed, [seed], random.Random(k)) for k in range(50)]
    assert sum(content != seed for content in made) > 40
    assert made == [mutate(seed, [seed], random.Random(k)) for k in range(50)]
