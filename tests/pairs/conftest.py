"""What all tests of this folder look at."""

from sentences import refusals_are_sentences  # noqa: F401
