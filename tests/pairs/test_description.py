"""What judgements say about themselves, against counting by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.pairs import Pairs
from likewise.pairs.agreement import Agreement
from likewise.pairs.description import describe
from likewise.pairs.figures import Noise, describe_counts, describe_noise, spread
from likewise.pairs.rates import rates_from_triangles, three_same_probability
from likewise.pairs.triangles import Triangles, count_triangles

N_ITEMS = 9


@st.composite
def judgements(draw: st.DrawFn) -> Pairs:
    item = st.integers(0, N_ITEMS - 1)
    row = st.tuples(item, item, st.booleans()).filter(lambda r: r[0] != r[1])
    rows = draw(st.lists(row, max_size=60))
    left, right, same = (np.array([r[k] for r in rows], int) for k in range(3))
    return Pairs(left, right, same.astype(bool), n_items=N_ITEMS)


def slow_triangles(pairs: Pairs) -> tuple[float, float, float]:
    """``(closed, exactly two same, three same)`` by looking at every triple."""
    answers = defaultdict(list)
    for i, j, same in zip(pairs.left, pairs.right, pairs.same, strict=True):
        answers[frozenset((int(i), int(j)))].append(float(same))
    share = {pair: np.mean(values) for pair, values in answers.items()}
    closed = two = three = 0.0
    for triple in combinations(range(pairs.n_items), 3):
        sides = [share.get(frozenset(side)) for side in combinations(triple, 2)]
        if None in sides:
            continue
        a, b, c = sides
        closed += 1
        three += a * b * c
        two += a * b * (1 - c) + a * (1 - b) * c + (1 - a) * b * c
    return closed, two, three


@pytest.mark.parametrize("dense", [True, False])
@settings(max_examples=60)
@given(pairs=judgements())
def test_counts_equal_counting_by_hand(pairs: Pairs, dense: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.pairs.triangles.DENSE_SPEED", np.inf if dense else 0)
        patch.setattr("likewise.pairs.triangles.BLOCK_PATHS", 20)
        found = describe(pairs)
    triangles = found.triangles
    expected = slow_triangles(pairs)
    counted = (triangles.closed, triangles.two_same, triangles.three_same)
    np.testing.assert_allclose(counted, expected, atol=1e-9)
    answers = defaultdict(set)
    for i, j, same in zip(pairs.left, pairs.right, pairs.same, strict=True):
        answers[frozenset((int(i), int(j)))].add(bool(same))
    assert found.repeats == len(pairs) - len(answers)
    assert found.contradictions == sum(len(both) == 2 for both in answers.values())
    ids = pairs.components()
    assert found.inside == np.sum((ids[pairs.left] == ids[pairs.right]) & ~pairs.same)
    assert found.loops == slow_loops(pairs)
    assert found.items_judged == len(np.union1d(pairs.left, pairs.right))
    sizes = np.bincount(ids)
    assert found.largest_components == sorted(sizes[sizes > 1].tolist(), reverse=True)
    assert found.unlinked == np.sum(sizes == 1)


def slow_loops(pairs: Pairs) -> int:
    """Judgements about items that the "same" answers link without them, one by one."""
    group = list(range(pairs.n_items))
    loops = 0
    for i, j, same in sorted(zip(pairs.left, pairs.right, pairs.same), key=lambda row: not row[2]):
        if group[i] == group[j]:
            loops += 1
        elif same:
            group = [group[j] if g == group[i] else g for g in group]
    return loops


def noisy(n_items: int, n_classes: int, miss: float, false_alarm: float, seed: int) -> Pairs:
    """All pairs of balanced classes, single judgements flipped at the given rates."""
    rng = np.random.default_rng(seed)
    listed = Pairs.from_labels(np.arange(n_items) % n_classes).explicit()
    flip = rng.random(len(listed)) < np.where(listed.same, miss, false_alarm)
    return Pairs(listed.left, listed.right, listed.same ^ flip)


@pytest.mark.parametrize(("miss", "false_alarm"), [(0.3, 0.05), (0.1, 0.3), (0.02, 0.4)])
def test_rates_of_flipped_judgements_are_recovered(miss: float, false_alarm: float) -> None:
    found = describe(noisy(400, 5, miss, false_alarm, 0), n_classes=5)
    assert found.noise.kind == "judgement"
    assert found.noise.miss == pytest.approx(miss, abs=0.03)
    assert found.noise.false_alarm == pytest.approx(false_alarm, abs=0.01)
    assert "taking 5 classes of equal size" in found.verdict


def test_classes_are_counted_where_nobody_says_how_many() -> None:
    found = describe(noisy(300, 4, 0.2, 0.1, 2))
    assert (found.noise.n_classes, found.noise.counted) == (4, True)
    assert found.noise.miss == pytest.approx(0.2, abs=0.04)
    assert "taking 4 classes as counted from the judgements" in found.verdict
    assert not describe(noisy(300, 4, 0.2, 0.1, 2), n_classes=4).noise.counted


def test_many_judgements_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.pairs.description.MAX_TO_COUNT", 1000)
    found = describe(noisy(100, 4, 0.2, 0.1, 2))
    assert (found.noise.kind, found.noise.miss) == ("judgement", None)


def test_the_third_moment_is_the_sum_over_classes() -> None:
    """P(three same) written out as a sum over the classes of the three items."""
    c, a, b = 7, np.array([0.8, 0.3]), np.array([0.15, 0.1])
    three = (a**3 + 3 * (c - 1) * a * b**2 + (c - 1) * (c - 2) * b**3) / c**2
    np.testing.assert_allclose(three_same_probability(a, b, c), three)


def test_sampled_triangles_agree_with_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = noisy(300, 4, 0.25, 0.1, 1)
    exact = describe(pairs).triangles
    monkeypatch.setattr("likewise.pairs.triangles.MAX_DENSE_ITEMS", 0)
    monkeypatch.setattr("likewise.pairs.triangles.MAX_PATHS", 0)
    monkeypatch.setattr("likewise.pairs.edges.CHUNK", 1000)
    sampled = describe(pairs).triangles
    assert (exact.sampled, sampled.sampled) == (False, True)
    assert sampled.closed > 100_000
    share, expected = (t.three_same / t.closed for t in (sampled, exact))
    assert share == pytest.approx(expected, rel=0.05)
    assert sampled.transitivity == pytest.approx(exact.transitivity, rel=0.05)
    assert describe(pairs).triangles == sampled  # seeded


def test_sampling_weighs_items_by_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub with many open paths and a clique: triangles are uniform, whatever their centres."""
    z = np.arange(30) % 2
    clique = Pairs.from_labels(z).explicit()
    spokes = np.arange(30, 230)
    pairs = Pairs(
        np.concatenate([clique.left, np.zeros(200, int)]),
        np.concatenate([clique.right, spokes]),
        np.concatenate([clique.same, np.zeros(200, bool)]),
    )
    exact = describe(pairs).triangles
    monkeypatch.setattr("likewise.pairs.triangles.MAX_DENSE_ITEMS", 0)
    sampled = count_triangles(pairs.graph, np.random.default_rng(0), max_paths=0)
    assert sampled.sampled
    assert sampled.three_same / sampled.closed == pytest.approx(
        exact.three_same / exact.closed, rel=0.05
    )
    assert sampled.two_same == 0


def test_a_complete_set_is_described_as_its_list() -> None:
    complete = Pairs.from_labels(np.random.default_rng(0).integers(4, size=40))
    assert describe(complete).to_dict() | {"noise": None} == (
        describe(complete.explicit()).to_dict() | {"noise": None}
    )
    assert describe(complete).noise.kind == describe(complete.explicit()).noise.kind == "exact"
    assert describe(complete).triangles.transitivity == 1


def test_billions_of_judgements_are_described_from_the_partition() -> None:
    found = describe(Pairs.from_labels(np.arange(60_000) % 10))
    assert found.judgements == 1_799_970_000
    assert found.same == 10 * 6000 * 5999 // 2


@pytest.mark.parametrize(
    ("rows", "kind", "verdict"),
    [
        ([(0, 1, 1), (1, 2, 1), (2, 0, 0)], "judgement", "Inconsistent: 1 of 1"),
        ([(0, 1, 1), (1, 2, 1), (2, 0, 1), (0, 3, 0)], "exact", "Consistent: none of 1"),
        ([(0, 1, 1), (2, 3, 0)], "unknown", "Too sparse to tell"),
        ([(0, 1, 1), (2, 3, 1)], "unknown", 'Every answer is "same"'),
        ([(0, 1, 0), (2, 3, 0)], "unknown", 'Every answer is "different"'),
    ],
)
def test_the_verdict(rows: list[tuple[int, int, int]], kind: str, verdict: str) -> None:
    left, right, same = zip(*rows, strict=True)
    found = describe(Pairs(left, right, same))
    assert found.noise.kind == kind
    assert found.verdict.startswith(verdict)


def test_the_description_can_be_read_by_people_and_by_programs() -> None:
    pairs = Pairs([0, 1, 2], [1, 2, 0], [1, 0, ""], ["a", "b", "a"], n_items=5)
    found = pairs.describe()
    text = repr(found)
    assert "items               5 (3 judged)" in text
    assert "2, 1 dropped" in text
    content = json.loads(json.dumps(found.to_dict()))
    assert (content["items"], content["judgements"], content["annotators"]) == (5, 2, 2)
    assert content["verdict"] == found.verdict
    assert content["triangles"]["transitivity"] is None


def test_no_judgement_at_all() -> None:
    found = describe(Pairs([], [], [], n_items=0))
    assert found.verdict == "There is no judgement."
    assert "third side same     unknown" in repr(found)


def test_everything_that_people_read() -> None:
    left = [0, 1, 2, 0, 0, 3, 5, 0]
    right = [1, 2, 0, 1, 1, 4, 6, 3]
    same = [1, 1, 0, 1, 0, 1, 0, ""]
    people = ["a", "a", "b", "b", "c", "a", "a", "a"]
    weight = [1, 1, 1, 1, 1, 1, 0, 1]
    pairs = Pairs(left, right, same, people, weight, n_items=1234)
    found = repr(pairs._like({}, shortened=2, unknown=1).describe())
    assert found.splitlines() == [
        "items               1,234 (5 judged)",
        "judgements          6, 1 dropped, 1 of weight 0 left out, "
        "2 ids matched by a shorter form, 1 of items that are not there left out",
        "same                4 (66.7%)",
        "different           2 (33.3%)",
        "annotators          3",
        "an item has         0 to 4 judgements, median 0",
        "repeats             2, pairs with both answers 1",
        "agreement           alpha 0.00 (Krippendorff), over 1 pairs that several people judged",
        "linked groups       2, largest 3, 2",
        "not linked          1,229 items",
        '"different" inside  2 of 3 judgements that could contradict',
        "triangles           1, with two same sides 1",
        "third side same     0.0%",
        'verdict             Inconsistent: 2 of 2 "different" answers contradict a chain of '
        '"same", so single judgements were flipped.',
    ]


def test_a_sample_and_unknown_shares_are_called_so() -> None:
    found = Pairs([0, 1], [1, 2], [1, 0]).describe()
    text = repr(replace(found, triangles=Triangles(12_345.6, 0.4, 3.2, True)))
    assert "triangles sampled   12,346, with two same sides 4" in text
    assert "third side same     88.9%" in text
    assert "annotators          not given" in text
    none = repr(replace(found, agreement=Agreement(None, 2, 4)))
    assert "alpha unknown (Krippendorff), over 2 pairs" in none


@pytest.mark.parametrize(
    ("figures", "noise"),
    [
        ({"contradictions": 0, "redundant": 1}, Noise("exact", n_classes=3)),
        ({"contradictions": 0, "redundant": 0}, Noise("unknown", n_classes=3)),
        ({"contradictions": 1, "closed": 99}, Noise("judgement", n_classes=3)),
        ({"contradictions": 1, "n_classes": None}, Noise("judgement")),
    ],
)
def test_the_noise_that_figures_suggest(figures: dict[str, Any], noise: Noise) -> None:
    given = {"redundant": 5, "n_classes": 3, "closed": 100} | figures
    triangles = Triangles(given.pop("closed"), 20, 10, False)
    assert describe_noise(p_same=0.4, triangles=triangles, **given) == noise


def test_rates_from_just_enough_triangles() -> None:
    given = {"contradictions": 1, "redundant": 0, "p_same": 0.4}
    triangles = Triangles(100, 20, 10, False)
    found = describe_noise(triangles=triangles, n_classes=1, counted=True, **given)
    rates = rates_from_triangles(0.4, triangles, 2)
    assert found == Noise("judgement", 1 - rates.a, rates.b, 1, True)
    assert not describe_noise(triangles=triangles, n_classes=3, **given).counted


def test_counts_and_spread() -> None:
    sizes = np.array([1, 5, 1, *range(2, 13)])
    found = describe_counts(
        sizes=sizes, judgements=90, same=40, dropped=1, weightless=2, annotators=3,
        shortened=4, unknown=5,
    )  # fmt: skip
    assert found == {
        "items": int(sizes.sum()), "judgements": 90, "same": 40, "different": 50, "dropped": 1,
        "weightless": 2, "shortened": 4, "unknown": 5, "annotators": 3, "components": 12,
        "largest_components": [12, 11, 10, 9, 8, 7, 6, 5, 5, 4], "unlinked": 2,
    }  # fmt: skip
    assert spread(np.array([4, 0, 1, 2])) == (0.0, 1.5, 4.0)
    assert spread(np.array([], int)) == (0.0, 0.0, 0.0)


def test_a_complete_set_that_nothing_could_contradict() -> None:
    found = describe(Pairs.from_labels([0, 0, 1]))
    assert found.noise == Noise("unknown")
    assert (found.judgements_per_item, found.loops) == ((2.0, 2.0, 2.0), 0)
    more = describe(Pairs.from_labels([0, 0, 0, 1]))
    assert more.noise == Noise("exact", n_classes=2)
    assert (more.loops, more.repeats, more.contradictions, more.inside) == (1, 0, 0, 0)
    assert more.agreement is None
    assert (more.items, more.items_judged, more.judgements, more.same) == (4, 4, 6, 3)
