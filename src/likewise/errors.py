"""The exceptions of Likewise: one tree, and every message says what was wrong and what to do."""

from __future__ import annotations


class LikewiseError(Exception):
    """Base of everything that Likewise raises on purpose."""


class InputError(LikewiseError, ValueError):
    """A mistake in what a person handed in: data, options, files. The command line exits with 2."""


class TrainingError(LikewiseError, RuntimeError):
    """Training could not go on (a non-finite loss, a lost device); says where and likely why."""


class NonFiniteError(TrainingError):
    """A loss or gradient stopped being finite: the same training would end there again."""
