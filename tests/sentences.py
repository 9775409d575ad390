"""Every refusal is a sentence, whichever test meets it: one fixture for all tests of a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from likewise.errors import InputError

_SHOUTING = re.compile(r"(\b[A-Z]{2,}\b[^a-z]+){3,}\b[A-Z]{2,}\b")


def is_sentence(words: str) -> bool:
    """Whether it ends as sentences and questions do, and nobody shouts."""
    return words.endswith((".", "?")) and not _SHOUTING.search(words)


@pytest.fixture(autouse=True)
def refusals_are_sentences() -> Iterator[None]:
    """What a person is told is a sentence, also where a test looks at a part of it only."""
    said: list[str] = []
    initialise = InputError.__init__

    def listen(error: InputError, sentence: str = "") -> None:
        said.append(sentence)
        initialise(error, sentence)

    InputError.__init__ = listen
    yield
    InputError.__init__ = initialise
    assert [words for words in said if not is_sentence(words)] == []
