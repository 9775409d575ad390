"""A mistake is told in one sentence, whatever it quotes."""

from __future__ import annotations

from likewise.errors import LONGEST_SENTENCE, InputError, RowError


def test_a_name_with_a_line_break_in_it_stays_in_one_line() -> None:
    told = str(InputError("the columns there are left, \name\r\nand right."))
    assert told == "the columns there are left,  ame and right."
    assert str(RowError(3, "a\nb")) == "judgement 3: a b"


def test_the_middle_of_a_long_quotation_is_left_out() -> None:
    told = str(InputError("begin " + 10 * LONGEST_SENTENCE * "x" + " end."))
    assert told.startswith("begin xxx")
    assert told.endswith("xxx end.")
    assert len(told) < LONGEST_SENTENCE + 10
