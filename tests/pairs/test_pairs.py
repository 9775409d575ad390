"""Judgements as arrays: what is refused, and what cutting and joining must not change."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import InputError, RowError
from likewise.inference.propagation.graph import Graph
from likewise.pairs import Pairs, as_pairs
from likewise.pairs.complete import CompletePairs
from likewise.pairs.sampling import random_pairs, unordered_pair
from likewise.pairs.table import COLUMNS

N_ITEMS = 12


@st.composite
def judgements(draw: st.DrawFn) -> Pairs:
    """A few judgements about a dozen items, with people and weights or without."""
    count = draw(st.integers(0, 30))
    item = st.integers(0, N_ITEMS - 1)
    rows = draw(
        st.lists(
            st.tuples(item, item, st.booleans()).filter(lambda row: row[0] != row[1]),
            min_size=count,
            max_size=count,
        )
    )
    left, right, same = (np.array([row[k] for row in rows]) for k in range(3))
    people = draw(st.none() | st.lists(st.sampled_from("abc"), min_size=count, max_size=count))
    weight = draw(st.none() | st.lists(st.floats(0, 5), min_size=count, max_size=count))
    return Pairs(
        left,
        right,
        same.astype(bool),
        people if people else None,
        weight if weight and np.any(np.float32(weight)) else None,
        n_items=N_ITEMS,
    )


def rows(pairs: Pairs, items: np.ndarray | None = None) -> list[tuple[Any, ...]]:
    """Judgements as tuples in terms of the original items, sorted: what must be preserved."""
    name = np.arange(pairs.n_items) if items is None else items
    people = [""] * len(pairs)
    if pairs.annotator is not None:
        people = pairs.annotator_names[pairs.annotator].tolist()
    weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
    columns = (name[pairs.left].tolist(), name[pairs.right].tolist(), pairs.same.tolist())
    return sorted(zip(*columns, people, weight.tolist(), strict=True))


@given(judgements(), st.permutations(range(N_ITEMS)), st.integers(0, N_ITEMS))
def test_a_subset_holds_the_judgements_among_its_items(
    pairs: Pairs, order: list[int], size: int
) -> None:
    chosen = np.array(order[:size], int)
    part = pairs.subset(chosen)
    kept = set(chosen.tolist())
    expected = [row for row in rows(pairs) if row[0] in kept and row[1] in kept]
    assert rows(part, chosen) == expected
    assert part.n_items == size


@given(judgements(), st.floats(0.05, 0.95), st.integers(0, 2**31))
def test_no_judgement_crosses_a_split(pairs: Pairs, fraction: float, seed: int) -> None:
    train, held, inside, outside = pairs.split(fraction, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(N_ITEMS))
    groups = np.isin(np.arange(N_ITEMS), held)
    expected = [row for row in rows(pairs) if groups[row[0]] == groups[row[1]]]
    assert sorted(rows(inside, train) + rows(outside, held)) == expected


@given(judgements(), judgements())
def test_joining_keeps_every_judgement(first: Pairs, second: Pairs) -> None:
    both = Pairs.concatenate([first, second])
    assert rows(both) == sorted(rows(first) + rows(second))
    assert Pairs.concatenate([first]) is first


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12))
def test_a_complete_set_is_its_list(labels: list[int]) -> None:
    z = np.array(labels)
    complete = Pairs.from_labels(z)
    listed = complete.explicit()
    assert complete.is_complete
    assert not listed.is_complete
    assert len(complete) == len(listed) == len(z) * (len(z) - 1) // 2
    assert complete.n_same == listed.n_same
    np.testing.assert_array_equal(listed.same, z[listed.left] == z[listed.right])
    np.testing.assert_array_equal(complete.left, listed.left)
    np.testing.assert_array_equal(complete.right, listed.right)
    np.testing.assert_array_equal(complete.same, listed.same)
    ids = complete.components()
    np.testing.assert_array_equal(ids[:, None] == ids, z[:, None] == z)
    assert complete.is_consistent()
    assert listed.is_consistent()
    half = np.arange(len(z))[::2]
    assert rows(complete.subset(half).explicit()) == rows(listed.subset(half))
    first = np.arange(len(complete)) < 2
    assert rows(complete.select(first)) == rows(listed.select(first))


@given(st.permutations(range(4)))
def test_a_complete_set_forgets_which_class_was_which(names: list[int]) -> None:
    z = np.array([2, 0, 0, 3, 1, 2])
    renamed = Pairs.from_labels(np.array(names)[z])
    np.testing.assert_array_equal(renamed.components(), [0, 1, 1, 2, 3, 0])


@settings(max_examples=50)
@given(st.integers(2, 40), st.floats(0, 1), st.integers(0, 2**31))
def test_random_pairs_are_distinct(n_items: int, share: float, seed: int) -> None:
    count = int(share * n_items * (n_items - 1) / 2)
    left, right = random_pairs(n_items, count, np.random.default_rng(seed))
    assert len(set(zip(left.tolist(), right.tolist(), strict=True))) == count
    assert np.all((left >= 0) & (left < right) & (right < n_items))


def test_pair_numbers_survive_rounding() -> None:
    """The square root is rounded up near large triangular numbers unless it is mended."""
    right = np.array([1, 2, 94_906_267, 1_000_000_000, 2_000_000_000])
    edge = right * (right - 1) // 2
    for code, expected in ((edge, np.zeros(5)), (edge + right - 1, right - 1)):
        left, found = unordered_pair(code)
        np.testing.assert_array_equal(found, right)
        np.testing.assert_array_equal(left, expected)


def test_random_pairs_beyond_all_of_them() -> None:
    with pytest.raises(InputError, match="3 items have only 3 pairs, but 4 were asked for"):
        random_pairs(3, 4, np.random.default_rng(0))


def test_some_judgements_an_item_from_labels() -> None:
    z = np.random.default_rng(0).integers(3, size=100)
    pairs = Pairs.from_labels(z, per_item=6, random_state=1)
    assert (len(pairs), pairs.n_items) == (300, 100)
    np.testing.assert_array_equal(pairs.same, z[pairs.left] == z[pairs.right])
    again = Pairs.from_labels(z, per_item=6, random_state=1)
    np.testing.assert_array_equal(pairs.left, again.left)


@pytest.mark.parametrize(
    "same",
    [
        [1, 0, 1],
        [1, -1, 1],
        [True, False, True],
        ["same", "different", "SAME "],
        ["yes", "no", "y"],
        np.array([1.0, 0.0, 1.0]),
        np.array([1, 0, 1], np.uint8),
        np.array(["true", "false", True], object),
    ],
)
def test_spellings_of_the_answers(same: Any) -> None:
    pairs = Pairs([0, 1, 2], [1, 2, 0], same)
    np.testing.assert_array_equal(pairs.same, [True, False, True])


@pytest.mark.parametrize("blank", ["", "unsure", "Not sure", "NaN", None, float("nan"), "?"])
def test_no_answer_is_dropped_and_counted(blank: Any) -> None:
    same = np.array([1, blank, 0], object)
    pairs = Pairs([0, 1, 2], [1, 2, 0], same, ["a", "b", "c"], [1, 2, 3])
    assert (len(pairs), pairs.dropped, pairs.n_items) == (2, 1, 3)
    np.testing.assert_array_equal(pairs.left, [0, 2])
    np.testing.assert_array_equal(pairs.weight, [1, 3])
    np.testing.assert_array_equal(pairs.annotator_names[pairs.annotator], ["a", "c"])


GOOD: dict[str, Any] = {"left": [0, 1], "right": [1, 2], "same": [1, 0]}
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"left": [0, 3], "n_items": 3}, r"judgement 1: left is 3, but there are only 3 items"),
    ({"left": [0, 7], "n_items": 3}, r"judgement 1: left is 7, but there are only 3 items"),
    ({"right": [5, 2], "n_items": 3}, r"judgement 0: right is 5, .* \(0 to 2\)"),
    ({"n_items": 0}, "but there are no items"),
    ({"left": [0, -1]}, "judgement 1: left is -1, but item indices start at 0"),
    ({"left": [0, 2]}, "judgement 1: item 2 is compared with itself"),
    ({"left": [0.5, 1]}, r"judgement 0: left is 0\.5, which is not the index"),
    ({"left": [np.nan, 1]}, "judgement 0: left is nan"),
    ({"left": [0, 3_000_000_000]}, "too large for an item's position"),
    ({"left": ["cat", "dog"]}, "left must hold whole numbers .* but holds .*cat"),
    ({"left": [[0], [1]]}, r"left must be one index per judgement, but has shape \(2, 1\)"),
    ({"left": [0, 1, 2]}, "equally long, but have left 3, right 2, same 2"),
    ({"annotator": ["a"]}, "equally long, .* annotator 1"),
    ({"annotator": [["a"], ["b"]]}, "annotator must be one name per judgement"),
    ({"annotator": [0, 2], "annotator_names": ["a", "b"]}, "codes below 2"),
    ({"weight": [1, -1]}, r"judgement 1: weight is -1\.0"),
    ({"weight": [1, np.inf]}, "judgement 1: weight is inf"),
    ({"weight": ["heavy", 1]}, "weight must hold numbers"),
    ({"weight": [[1], [1]]}, "weight must be one number per judgement"),
    ({"same": [1, 2]}, "judgement 1: same is 2, which is none of 1/0"),
    ({"same": ["same", "perhaps"]}, "judgement 1: same is 'perhaps'"),
    ({"same": [[1], [0]]}, "same must be one answer per judgement"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_mistakes_are_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        Pairs(**(GOOD | changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("same", [[1, -1, 0], ["1", "-1", "0"]])
def test_zero_beside_minus_one_is_refused(same: list[Any]) -> None:
    with pytest.raises(InputError, match="judgement 2: same is 0 while other answers are -1"):
        Pairs([0, 1, 2], [1, 2, 0], same)


def test_a_row_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(RowError(3, "is odd.")))
    assert (error.row, str(error)) == (3, "judgement 3: is odd.")


def test_inputs_are_left_alone() -> None:
    left, same = np.array([0.0, 1.0]), np.array([True, False])
    pairs = Pairs(left, [1, 2], same)
    pairs.subset([0, 1])
    np.testing.assert_array_equal(left, [0, 1])
    assert left.dtype == float
    np.testing.assert_array_equal(same, [True, False])


class TestAsPairs:
    def test_pairs_themselves(self) -> None:
        pairs = Pairs(**GOOD)
        assert as_pairs(pairs, n_items=3) is pairs
        with pytest.raises(InputError, match="names item 2, but there are only 2 items"):
            as_pairs(pairs, n_items=2)

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_frames(self, frame: Any) -> None:
        pairs = as_pairs(frame(GOOD | {"annotator": ["x", "y"], "other": [1, 2]}), n_items=9)
        assert (len(pairs), pairs.n_items) == (2, 9)
        np.testing.assert_array_equal(pairs.annotator_names, ["x", "y"])
        with pytest.raises(InputError, match="lack the column same; the columns there are left"):
            as_pairs(frame({"left": [0], "right": [1]}))

    def test_index_pairs(self) -> None:
        pairs = as_pairs((np.array([[0, 1], [1, 2]]), [1, 0]))
        np.testing.assert_array_equal(pairs.right, [1, 2])
        assert len(as_pairs(np.array([[0, 1]]), [1])) == 1

    @pytest.mark.parametrize("wrong", ["pairs.csv", np.zeros((3, 3)), None, (1, 2, 3)])
    def test_anything_else(self, wrong: Any) -> None:
        with pytest.raises(InputError, match="judgements must be a Pairs"):
            as_pairs(wrong)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([0, 9], "items must be indices below 3"),
        ([True, False], "a mask of items must have 3 entries, but has 2"),
        ([0, 0], "must not name an item twice"),
        ([0.5], "list of indices"),
    ],
)
def test_bad_subsets(items: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pairs(**GOOD).subset(items)


def test_subsets_by_mask_and_of_nothing() -> None:
    pairs = Pairs(**GOOD)
    assert len(pairs.subset(np.array([True, True, False]))) == 1
    assert (len(pairs.subset([])), len(pairs.select([]))) == (0, 0)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2])
def test_a_fraction_outside_0_and_1(fraction: float) -> None:
    with pytest.raises(InputError, match="held-out fraction must lie between 0 and 1"):
        Pairs(**GOOD).split(fraction, np.random.default_rng(0))


def test_too_few_items_to_split() -> None:
    with pytest.raises(InputError, match="3 items are too few"):
        Pairs(**GOOD).split(0.5, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("labels", "per_item", "message"),
    [
        ([[0], [1]], None, "labels must be one per item"),
        ([0], None, "at least two items"),
        ([0, 1, 1], 3, "per_item must be between 1 and 2"),
    ],
)
def test_bad_labels(labels: list[Any], per_item: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pairs.from_labels(labels, per_item)


def test_a_list_of_billions_is_refused() -> None:
    pairs = CompletePairs(np.zeros(60_000, int))
    assert len(pairs) == 1_799_970_000
    with pytest.raises(InputError, match="too many for a list; draw some"):
        _ = pairs.left


def test_names_of_items_follow_a_subset() -> None:
    pairs = Pairs(**GOOD, item_ids=["a", "b", "c"])
    np.testing.assert_array_equal(pairs.subset([2, 1]).item_ids, ["c", "b"])
    np.testing.assert_array_equal(pairs.select([0]).item_ids, ["a", "b", "c"])
    other = Pairs(**GOOD)
    np.testing.assert_array_equal(Pairs.concatenate([pairs, other]).item_ids, ["a", "b", "c"])
    with pytest.raises(InputError, match="name different items"):
        Pairs.concatenate([pairs, other.with_item_ids(["a", "c", "b"])])
    with pytest.raises(InputError, match="name different items"):
        Pairs.concatenate([pairs, Pairs([0], [4], [1])])
    np.testing.assert_array_equal(pairs.about(4).item_ids, ["a", "b", "c", ""])
    complete = Pairs.from_labels([0, 1, 0]).with_item_ids(["a", "b", "c"])
    assert complete.is_complete
    np.testing.assert_array_equal(complete.subset([2, 0]).item_ids, ["c", "a"])
    np.testing.assert_array_equal(complete.explicit().item_ids, ["a", "b", "c"])
    with pytest.raises(InputError, match=r"item_ids must be 3 names, one per item, .*\(2,\)"):
        Pairs(**GOOD, n_items=3, item_ids=["a", "b"])


@pytest.mark.parametrize("name", [*COLUMNS, "n_items", "item_ids", "annotator_names", "dropped"])
def test_judgements_cannot_be_changed(name: str) -> None:
    given = GOOD | {"annotator": ["x", "y"], "weight": [1, 2], "item_ids": ["a", "b", "c"]}
    made = Pairs(**given)
    again = pickle.loads(pickle.dumps(made))
    complete = Pairs.from_labels([0, 1, 0])
    for pairs in (made, made.subset([0, 1]), made.select([1]), again, complete.explicit()):
        with pytest.raises(AttributeError):
            setattr(pairs, name, None)
        column = getattr(pairs, name)
        assert not isinstance(column, np.ndarray) or not column.flags.writeable
    assert rows(again) == rows(made)
    with pytest.raises(AttributeError):
        setattr(complete, name, None)


def test_columns_are_neither_copied_nor_locked_for_their_owner() -> None:
    left, right = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    same, weight = np.array([True, False]), np.array([1, 2], np.float32)
    pairs = Pairs(left, right, same, None, weight)
    for name, mine in (("left", left), ("right", right), ("same", same), ("weight", weight)):
        assert np.shares_memory(getattr(pairs, name), mine)
        assert mine.flags.writeable
    graph = pairs.graph
    assert np.shares_memory(graph.left, left)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of memory that it may not write to
        tensors = Graph.from_pairs(pairs)
    assert tensors.left.data_ptr() == left.ctypes.data


def test_columns_are_listed_once() -> None:
    pairs = Pairs(**GOOD, weight=[1, 2])
    assert tuple(pairs.columns()) == COLUMNS == ("left", "right", "same", "annotator", "weight")
    assert [name for name, column in pairs.columns().items() if column is None] == ["annotator"]


def test_weights_of_nothing_but_0_are_refused() -> None:
    with pytest.raises(InputError, match="every judgement has weight 0, so that none of them"):
        Pairs(**GOOD, weight=[0, 0])
    with pytest.raises(InputError, match="every judgement has weight 0"):
        Pairs([0, 1], [1, 2], [1, ""], weight=[0, 1])  # the other has no answer
    assert len(Pairs([], [], [], weight=[])) == 0


def test_those_that_count_are_those_of_some_weight() -> None:
    pairs = Pairs([0, 1, 2], [1, 2, 3], [1, 0, 1], weight=[0.0, 2.0, 0.5], n_items=5)
    kept = pairs.that_count()
    assert (kept.left.tolist(), kept.right.tolist()) == ([1, 2], [2, 3])
    assert kept.weight is not None
    assert kept.weight.tolist() == [2.0, 0.5]
    assert kept.n_items == 5
    assert kept.that_count() is kept
    complete = Pairs.from_labels([0, 0, 1])
    assert complete.that_count() is complete


def test_other_answers_to_the_same_questions() -> None:
    pairs = Pairs(**GOOD, annotator=["x", "y"], item_ids=["a", "b", "c"])
    turned = pairs.with_answers(~pairs.same)
    np.testing.assert_array_equal(turned.same, [False, True])
    np.testing.assert_array_equal(turned.item_ids, pairs.item_ids)
    with pytest.raises(InputError, match="2 judgements, but 3 answers"):
        pairs.with_answers(np.ones(3, bool))


def test_nothing_to_concatenate() -> None:
    with pytest.raises(InputError, match="nothing to concatenate"):
        Pairs.concatenate([])


def test_repr_says_how_much() -> None:
    assert repr(Pairs(**GOOD, annotator=["a", "b"])) == (
        "Pairs(2 judgements about 3 items, 2 annotators)"
    )


class TestSentences:
    """What is wrong, in words."""

    def test_positions_that_are_ids(self) -> None:
        with pytest.raises(InputError, match=r"^judgement 0: left is 3000000000, too large for an"):
            Pairs([3_000_000_000], [1], [1])

    def test_nothing_to_concatenate(self) -> None:
        with pytest.raises(InputError, match=r"^there is nothing to concatenate: give at least"):
            Pairs.concatenate([])

    def test_what_is_joined_is_about_the_most_items(self) -> None:
        one = Pairs([0], [1], [1], n_items=2)
        more = Pairs([2], [3], [0], n_items=9)
        for parts in ((one, more), (more, one)):
            joined = Pairs.concatenate(parts)
            assert (joined.n_items, len(joined), joined.n_same) == (9, 2, 1)

    def test_shares_of_one_judgement(self) -> None:
        assert "1 (100.0%)" in repr(Pairs([0], [1], [1]).describe())


def test_items_beyond_those_judged() -> None:
    pairs = Pairs(**GOOD, weight=[1, 2])
    assert pairs.about(3) is pairs
    more = pairs.about(7)
    assert (more.n_items, len(more), more.item_ids) == (7, 2, None)
    assert rows(more) == rows(pairs)
    with pytest.raises(InputError, match="about 3 items, but there are 2"):
        pairs.about(2)
    with pytest.raises(InputError, match="about 3 items, but there are 4"):
        Pairs.from_labels([0, 1, 0]).about(4)


@pytest.mark.parametrize(
    ("items", "fraction", "held"), [(10, 0.25, 2), (10, 0.3, 3), (10, 0.99, 8), (4, 0.01, 2)]
)
def test_how_many_items_are_set_aside(items: int, fraction: float, held: int) -> None:
    pairs = Pairs.from_labels(np.arange(items) % 2).explicit()
    kept, aside, inner, outer = pairs.split(fraction, np.random.default_rng(0))
    assert (len(aside), len(kept)) == (held, items - held)
    assert sorted([*kept, *aside]) == list(range(items))
    assert (kept.tolist(), aside.tolist()) == (sorted(kept), sorted(aside))
    assert len(inner) == (items - held) * (items - held - 1) // 2
    assert len(outer) == held * (held - 1) // 2


def test_as_many_judgements_an_item_as_there_are_others() -> None:
    z = [0, 1, 1, 0]
    assert len(Pairs.from_labels(z, per_item=3)) == 6
    assert len(Pairs.from_labels(z, per_item=1)) == 2
    assert len(Pairs.from_labels([0, 1])) == 1
    for wrong in (0, 4):
        with pytest.raises(InputError, match=f"per_item must be between 1 and 3, but is {wrong}"):
            Pairs.from_labels(z, per_item=wrong)
    with pytest.raises(InputError, match=r"shape \(N,\), but have shape \(1, 2\)"):
        Pairs.from_labels([[0, 1]])
    with pytest.raises(InputError, match="need at least two items, but there are 1 labels"):
        Pairs.from_labels([0])


def test_what_was_left_out_is_not_left_out_again() -> None:
    pairs = Pairs([0, 1, 2], [1, 2, 0], [1, "", 0], ["a", "b", "a"])
    assert (pairs.dropped, pairs.n_same, pairs.is_complete) == (1, 1, False)
    for other in (pairs.subset([0, 1]), pairs.select([True, False])):
        assert (other.dropped, other.shortened, other.unknown) == (0, 0, 0)
        assert other.annotator_names.tolist() == ["a", "b"]
    assert pairs.with_item_ids(["x", "y", "z"]).dropped == 1
    assert pairs.with_item_ids(None).item_ids is None
    assert pairs.explicit() is pairs
    assert repr(Pairs([0], [1], [1], n_items=12_345)) == "Pairs(1 judgements about 12,345 items)"


def test_complete_sets_at_their_smallest() -> None:
    for n in range(4):
        pairs = CompletePairs(np.zeros(n, int))
        listed = pairs.explicit()
        assert len(pairs) == pairs.n_same == len(listed) == n * (n - 1) // 2
        assert listed.n_items == pairs.n_items == n
        assert pairs.components().dtype == np.int32
    assert pairs.is_consistent()
    assert pairs.select([0]).left.tolist() == [0]
    assert (pairs.annotator, pairs.weight, pairs.annotator_names) == (None, None, None)
    assert (pairs.dropped, pairs.shortened, pairs.unknown) == (0, 0, 0)
    with pytest.raises(InputError, match=r"item_ids must be 3 names, one per item"):
        pairs.with_item_ids(["a"])


def test_a_complete_set_as_long_as_a_list_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = CompletePairs([0, 1, 0, 1])
    monkeypatch.setattr("likewise.pairs.complete.MAX_EXPLICIT", 6)
    assert len(pairs.explicit()) == 6
    monkeypatch.setattr("likewise.pairs.complete.MAX_EXPLICIT", 5)
    with pytest.raises(InputError, match="all pairs of 4 items are 6 judgements, too many for a"):
        pairs.explicit()


@pytest.mark.parametrize("count", [0, 1, 14, 15, 16, 44, 45])
def test_random_pairs_are_uniform(count: int) -> None:
    left, right = random_pairs(10, count, np.random.default_rng(0))
    assert len(left) == len(right) == count
    assert (left < right).all()
    assert len(set(zip(left.tolist(), right.tolist()))) == count
    rng = np.random.default_rng(0)
    drawn = np.concatenate([np.stack(random_pairs(4, 2, rng), 1) for _ in range(600)])
    _, times = np.unique(drawn, axis=0, return_counts=True)
    assert len(times) == 6
    assert times.min() > 140
