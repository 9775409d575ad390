"""The exceptions of Likewise: one tree, and every message says what was wrong and what to do."""

from __future__ import annotations


class LikewiseError(Exception):
    """Base of everything that Likewise raises on purpose."""


LONGEST_SENTENCE = 600  # characters


class InputError(LikewiseError, ValueError):
    """A mistake in what a person handed in: data, options, files. The command line exits with 2.

    A sentence may quote what it is about, which may be a megabyte, or a name with a line break in
    it: its middle is left out then, and it stays one line.
    """

    def __init__(self, sentence: str = "") -> None:
        sentence = " ".join(sentence.splitlines())
        half = LONGEST_SENTENCE // 2
        is_long = len(sentence) > LONGEST_SENTENCE
        super().__init__(f"{sentence[:half]} ... {sentence[-half:]}" if is_long else sentence)


class RowError(InputError):
    """A mistake in one judgement: a reader can say in which line of its file."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(f"judgement {row}: {problem}")
        self.row = row
        self.problem = problem

    def __reduce__(self) -> tuple[type[RowError], tuple[int, str]]:
        return RowError, (self.row, self.problem)  # two arguments: the default would pass one


class DamagedImageError(InputError):
    """An image file that cannot be decoded: the others of its folder may be good."""


class TrainingError(LikewiseError, RuntimeError):
    """Training could not go on (a non-finite loss, a lost device); says where and likely why."""


class StoppedError(LikewiseError):
    """A person stopped a command (Ctrl-C); says how to go on, where that can be."""


class NonFiniteError(TrainingError):
    """A loss or gradient stopped being finite: the same training would end there again."""
