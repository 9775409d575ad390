"""How far a job is: stages divide the whole, and nothing happens where nobody listens."""

from __future__ import annotations

import pytest

from likewise.io.progress import (
    advance,
    announce,
    announced,
    has_listener,
    listening,
    stage,
    tracked,
)


class Heard:
    """A listener that notes everything."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.shares: list[float] = []

    def stage(self, words: str) -> None:
        self.words.append(words)

    def share(self, done: float) -> None:
        self.shares.append(done)

    def steps(self) -> list[float]:
        """The shares less repeats: where a part ends, the whole says so again."""
        return list(dict.fromkeys(self.shares))


def test_stages_divide_the_whole_and_never_go_back() -> None:
    heard = Heard()
    with listening(heard):
        with stage("one", 0.5):
            for _ in tracked(range(4), "inner", of=4):
                advance(0.5)
            advance(0.1)  # late: it was further already
        with stage("two"):
            advance(0.5)
    assert heard.words == ["one", "inner", "two"]
    expected = [0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.75, 1.0]
    assert heard.steps() == pytest.approx(expected)
    assert heard.shares == sorted(heard.shares)


def test_a_loop_that_ends_early_jumps_to_the_end_of_its_part() -> None:
    heard = Heard()
    with listening(heard), stage(None, 0.4):
        for number in tracked(range(10), of=10):
            if number == 2:
                break
    assert heard.shares[-1] == pytest.approx(0.4)
    assert heard.words == []


def test_what_was_announced_names_the_next_part_of_what_is_left() -> None:
    heard = Heard()
    with listening(heard):
        for words, share in (("teacher", 0.25), ("student", 1.0)):
            announce(words, share)
            with announced("training"):
                advance(0.5)
        with announced("training"):
            pass
    assert heard.words == ["teacher", "student", "training"]
    assert heard.steps() == pytest.approx([0.125, 0.25, 0.625, 1.0])


def test_where_nobody_listens_nothing_happens() -> None:
    with stage("one"), announced("two"):
        announce("three", 0.5)
        advance(0.5)
        assert list(tracked(range(3), "four", of=3)) == [0, 1, 2]


def test_an_error_passes_through_and_leaves_nobody_listening() -> None:
    heard = Heard()

    def fail() -> None:
        with listening(heard), stage("one"):
            for number in tracked(range(3), of=3):
                number / 0

    with pytest.raises(ZeroDivisionError):
        fail()
    advance(0.9)
    assert heard.shares == []


def test_a_loop_shares_what_is_left_of_its_part() -> None:
    heard = Heard()
    with listening(heard), stage("one", 0.5):
        advance(0.5)
        for _ in tracked(range(2), of=2):
            advance(0.5)
    assert heard.steps() == pytest.approx([0.25, 0.3125, 0.375, 0.4375, 0.5])


def test_a_loop_longer_than_promised_stays_within_its_part() -> None:
    heard = Heard()
    with listening(heard), stage(None, 0.5):
        for _ in tracked(range(6), "rows", of=2):
            advance(1.0)
    assert heard.steps() == [0.25, 0.5]
    assert heard.words == ["rows"]


def test_a_loop_over_nothing_is_done_at_once_and_unnamed() -> None:
    heard = Heard()
    with listening(heard), stage(None, 0.5):
        assert list(tracked([], "rows", of=0)) == []
    assert heard.words == []
    assert heard.steps() == [0.5]


def test_stages_beyond_the_whole_end_with_it() -> None:
    heard = Heard()
    with listening(heard):
        with stage("one", 0.8):
            pass
        with stage("two", 0.8):
            advance(0.5)
            advance(7.0)
        with stage("three", 0.8):
            advance(0.5)
    assert heard.steps() == pytest.approx([0.8, 0.9, 1.0])


def test_an_unannounced_part_takes_half_of_what_is_left() -> None:
    heard = Heard()
    with listening(heard), stage(None, 0.8):
        advance(0.5)
        with announced("training"):
            pass
        with announced("more", 0.25):
            pass
    assert heard.words == ["training", "more"]
    assert heard.steps() == pytest.approx([0.4, 0.6, 0.65, 0.8])


def test_a_listener_is_there_only_inside() -> None:
    assert not has_listener()
    with listening(Heard()):
        assert has_listener()
    assert not has_listener()


def test_stages_within_a_later_stage_share_what_it_has() -> None:
    heard = Heard()
    with listening(heard):
        advance(0.5)
        with stage(None, 0.4), stage(None, 0.5):
            advance(0.5)
        for _ in tracked(range(1), of=1):
            advance(0.5)
    assert heard.steps() == pytest.approx([0.5, 0.6, 0.7, 0.9, 0.95, 1.0])


def test_where_nothing_moved_nothing_is_said() -> None:
    heard = Heard()
    with listening(heard):
        advance(0.0)
        advance(0.5)
        advance(0.5)
    assert heard.shares == [0.5]
