"""Which pair comes next: never one twice, all of them in the end, the same one after a reload."""

from __future__ import annotations

import threading
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from likewise.label.pairing import Person, decode, encode, next_pairs
from likewise.label.suggesting import BackgroundSuggestions

SEED = b"seed"


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_codes_count_unordered_pairs(i, j):
    if i != j:
        assert encode(i, j) == encode(j, i)
        assert decode(encode(i, j)) == (min(i, j), max(i, j))


def test_codes_are_dense():
    codes = sorted(encode(i, j) for j in range(30) for i in range(j))
    assert codes == list(range(30 * 29 // 2))


@given(st.integers(2, 12), st.text(max_size=5))
def test_everybody_meets_every_pair_once(n_items, name):
    person, seen = Person(name), set()
    while coming := next_pairs(person, n_items, SEED):
        code = encode(*coming[0])
        assert code not in seen
        seen.add(code)
        person.note_answer(code, len(seen))
    assert len(seen) == n_items * (n_items - 1) // 2


def test_the_choice_is_a_function_of_what_was_answered():
    person = Person("Ada", {5: 1, 9: 2})
    again = Person("Ada", {9: 2, 5: 1})
    assert next_pairs(person, 50, SEED) == next_pairs(again, 50, SEED)
    assert next_pairs(person, 50, SEED) != next_pairs(Person("Bo", {5: 1, 9: 2}), 50, SEED)


def test_what_is_announced_is_what_comes():
    person = Person("Ada")
    first, second = next_pairs(person, 50, SEED, count=2)
    person.note_answer(encode(*first), 1)
    assert next_pairs(person, 50, SEED) == [second]


def test_an_undone_pair_comes_back_first_and_only_then_another():
    person = Person("Ada")
    for k in range(3):
        person.note_answer(encode(*next_pairs(person, 50, SEED)[0]), k)
    second, last = list(person.answered)[1:]
    assert person.note_undo(2)
    assert person.note_undo(1)
    assert not person.note_undo(1)
    assert [encode(*pair) for pair in next_pairs(person, 50, SEED, count=2)] == [second, last]
    person.note_answer(second, 7)
    person.note_answer(last, 8)
    assert encode(*next_pairs(person, 50, SEED)[0]) not in (second, last)
    assert person.last == 8


def test_random_pairs_are_spread_evenly_and_both_ways_round():
    firsts = [next_pairs(Person(f"p{k}"), 5, SEED)[0] for k in range(4000)]
    pairs = Counter(encode(*pair) for pair in firsts)
    assert len(pairs) == 10
    assert max(pairs.values()) < 1.3 * min(pairs.values())
    turned = sum(left > right for left, right in firsts)
    assert 0.45 < turned / len(firsts) < 0.55


def test_the_last_open_pairs_are_found_among_many_answered():
    n_items = 200
    total = n_items * (n_items - 1) // 2
    opened = {7, 8, 19_000}
    answered = {code: code + 1 for code in range(total) if code not in opened}
    found = {encode(*pair) for pair in next_pairs(Person("Ada", answered), n_items, SEED, count=5)}
    assert found == opened


def test_suggestions_come_first_but_not_always():
    wanted = [encode(0, k) for k in range(1, 41)]
    person, hits = Person("Ada"), 0
    for k in range(40):
        code = encode(*next_pairs(person, 1000, SEED, wanted)[0])
        hits += code in wanted
        person.note_answer(code, k + 1)
    assert 20 < hits < 40


def test_suggestions_are_made_in_the_background_and_may_fail(tmp_path):
    from likewise.label.store import Store

    store = Store(tmp_path / "judgements.db")
    store.record("Ada", "a", "b", 1).result()
    called, calls = threading.Semaphore(0), []

    def suggester(judgements):
        calls.append(judgements)
        called.release()
        if len(calls) == 1:
            raise RuntimeError("too few")
        return [("b", "c"), ("gone", "a"), ("a", "a")]

    suggestions = BackgroundSuggestions(suggester, store.path, {"a": 0, "b": 1, "c": 2}, first_at=1)
    suggestions.notify(0)
    assert not called.acquire(timeout=0.05)  # nothing to learn from yet
    suggestions.notify(1)
    assert called.acquire(timeout=5)
    suggestions.notify(11)
    assert called.acquire(timeout=5)
    suggestions.stop()
    suggestions._thread.join(5)
    assert calls[0]["left"] == ["a"]
    assert suggestions.codes == [encode(1, 2)]
    store.close()
