"""The sorted index of judged pairs, against a dictionary."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.pairs import Pairs
from likewise.pairs.coercion import as_pairs
from likewise.pairs.columns import as_indices
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.interop import to_indices_tuple
from likewise.pairs.streamed_description import describe_file
from likewise.pairs.triangles import PairIndex

ITEMS = 5
JUDGEMENTS = st.lists(
    st.tuples(st.integers(0, ITEMS - 1), st.integers(0, ITEMS - 1), st.booleans()).filter(
        lambda judgement: judgement[0] != judgement[1]
    ),
    max_size=12,
)


@given(JUDGEMENTS)
def test_as_a_dictionary_of_answers(judgements: list[tuple[int, int, bool]]) -> None:
    answers: dict[tuple[int, int], list[bool]] = defaultdict(list)
    for a, b, same in judgements:
        answers[min(a, b), max(a, b)].append(same)
    left, right, same = (np.array([row[k] for row in judgements], int) for k in range(3))
    graph = JudgementGraph(left=left, right=right, same=same.astype(bool), n_items=ITEMS)
    index = PairIndex(graph)
    both = sum(len(set(said)) == 2 for said in answers.values())
    assert index.count() == (len(answers), both)
    low, high, share = index.shares()
    found = dict(zip(zip(low.tolist(), high.tolist()), share.tolist()))
    assert found == {pair: np.mean(said) for pair, said in answers.items()}
    repeated = sorted(a * ITEMS + b for (a, b), said in answers.items() if len(said) > 1)
    assert index.repeated().tolist() == repeated
    ends = np.array([(b, a) for a in range(ITEMS) for b in range(a + 1, ITEMS)])
    asked = index.look_up(ends[:, 0], ends[:, 1]).tolist()
    expected = [np.mean(answers.get((a, b), [np.nan])) for b, a in ends.tolist()]
    np.testing.assert_array_equal(asked, expected)


def test_where_nothing_was_left_out_nothing_is_said_of_it() -> None:
    said = repr(Pairs([0, 1], [1, 2], [1, 0]).describe()).splitlines()
    assert "judgements          2" in said


def test_a_streamed_description_is_for_the_classes_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    pairs = Pairs.from_labels(np.arange(60) % 3).explicit()
    flipped = pairs.same ^ (rng.random(len(pairs)) < 0.1)
    Pairs(pairs.left, pairs.right, flipped).write(tmp_path / "x.parquet")
    monkeypatch.setattr("likewise.pairs.streamed_description.WORTHWHILE", 1)
    found = describe_file(tmp_path / "x.parquet", None, 5).noise
    assert (found.n_classes, found.counted) == (5, False)


def test_items_that_nobody_judged_stay_among_the_chosen() -> None:
    pairs = Pairs([0, 1], [1, 2], [1, 0], n_items=5)
    some = pairs.subset([1, 2, 4])
    assert (some.n_items, len(some)) == (3, 1)
    assert pairs.subset([4]).n_items == 1
    assert as_pairs(([[0, 1]], [1]), n_items=5).n_items == 5
    assert as_pairs([[0, 1]], [1], 5).n_items == 5


def test_whole_numbers_may_come_as_fractions() -> None:
    assert as_indices([0.0, 200.0, 2.0**40], "left").tolist() == [0, 200, 2**40]


def test_tensors_go_to_the_device_asked_for() -> None:
    sides = to_indices_tuple(Pairs([0, 1], [1, 2], [1, 0]), device="meta")
    assert {side.device.type for side in sides} == {"meta"}
