"""Groups from judgements alone: the public functions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from group_cases import Records, pairwise_f1, records
from likewise.active.group_questions import belief_in_groups
from short_fits import draw_less


def pairs_of(made: Records, weight: np.ndarray | None = None) -> lw.Pairs:
    return lw.Pairs(made.left, made.right, made.same, made.who, weight, item_ids=made.ids)


@pytest.fixture(scope="module")
def small() -> Records:
    return records(n_items=40, n_groups=5, n_pairs=500, n_people=5)


@pytest.fixture(scope="module")
def found(small: Records) -> Iterator[lw.Groups]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        draw_less(monkeypatch)
        yield lw.group(pairs_of(small))


@pytest.fixture(scope="module")
def few() -> Records:
    """Too few for a number of groups by held-out answers, and so soon grouped."""
    return records(n_items=30, n_groups=5, n_pairs=195, n_people=5)


@pytest.fixture(scope="module")
def found_in_few(few: Records) -> lw.Groups:
    return lw.group(pairs_of(few))


@pytest.mark.slow  # test_what_is_found_fits_together finds a few
def test_many_groups_with_a_tenth_wrong() -> None:
    """docs/group.md finds three times as many."""
    made = records(n_items=100, n_groups=20, n_pairs=1000)
    found = lw.group(pairs_of(made))
    assert pairwise_f1(found.labels, made.truth) >= 0.95
    assert abs(found.n_groups - 20) <= 2
    right = (found.judgements_proba > 0.5) == (made.truth[made.left] == made.truth[made.right])
    assert right.mean() > 0.97  # the answers themselves: 0.90


def test_what_is_found_fits_together(small: Records, found: lw.Groups) -> None:
    assert found.labels.shape == found.probability.shape == (40,)
    assert found.item_ids.tolist() == small.ids.tolist()
    assert found.n_groups == 5
    assert pairwise_f1(found.labels, small.truth) >= 0.95
    right = (found.judgements_proba > 0.5) == (small.truth[small.left] == small.truth[small.right])
    assert right.mean() > 0.97  # the answers themselves: 0.90
    assert found.sizes.tolist() == sorted(found.sizes, reverse=True)
    assert sorted(name for g in range(5) for name in found.members(g)) == sorted(small.ids)
    assert ((found.probability > 0) & (found.probability <= 1)).all()
    assert json.loads(json.dumps(found.to_dict()))["n_groups"] == 5
    text = repr(found)
    assert text.startswith("Groups(5 groups of 40 items, from 500 judgements)")
    assert small.ids[0] in text


@pytest.mark.usefixtures("few_draws")
def test_same_seed_same_groups_and_a_given_number(few: Records, found_in_few: lw.Groups) -> None:
    again = lw.group(pairs_of(few))
    np.testing.assert_array_equal(again.labels, found_in_few.labels)
    np.testing.assert_array_equal(again.judgements_proba, found_in_few.judgements_proba)
    other = lw.group(pairs_of(few), random_state=3)
    assert not np.array_equal(other.judgements_proba, found_in_few.judgements_proba)
    np.testing.assert_array_equal(lw.judgements_proba(pairs_of(few)), found_in_few.judgements_proba)
    assert lw.group(pairs_of(few), n_groups=7).n_groups == 7


def test_going_on_from_groups_a_given_number_is_kept(few: Records, found_in_few: lw.Groups) -> None:
    pairs = pairs_of(few)
    for n_groups in (found_in_few.n_groups - 2, found_in_few.n_groups, found_in_few.n_groups + 3):
        assert lw.group(pairs, n_groups=n_groups, start=found_in_few).n_groups == n_groups


def test_judgements_of_weight_0_are_ignored(few: Records, found_in_few: lw.Groups) -> None:
    n, n_items = len(few.left), len(few.truth)
    doubled = lw.Pairs(
        np.concatenate([few.left, few.left, [0]]),
        np.concatenate([few.right, few.right, [n_items]]),
        np.concatenate([few.same, ~few.same, [True]]),
        weight=np.concatenate([np.ones(n), np.zeros(n + 1)]),
    )
    found = lw.group(doubled)
    plain = pairwise_f1(found_in_few.labels, few.truth)
    assert pairwise_f1(found.labels[:n_items], few.truth) == plain
    assert found.labels[n_items] == -1  # no judgement that counts names it
    assert np.isnan(found.probability[n_items])
    assert np.isnan(found.judgements_proba[-1])
    np.testing.assert_array_equal(found.judgements_proba[:n], found.judgements_proba[n : 2 * n])


@pytest.mark.usefixtures("few_draws")
def test_swapped_people_are_turned() -> None:
    made = records(n_items=30, n_groups=4, n_pairs=400, swapped=2)
    found = lw.group(pairs_of(made))
    assert pairwise_f1(found.labels, made.truth) > 0.95
    people = found.annotators
    assert set(people["annotator"][-2:]) == {"person 0", "person 1"}
    assert [r < 0 for r in people["reliability"]] == [False] * 8 + [True] * 2
    assert sum(people["answers"]) == 400
    assert people["reliability"] == sorted(people["reliability"], reverse=True)


def test_pairs_worth_asking_again_are_those_in_doubt() -> None:
    found = lw.group(pairs_of(records(n_items=30, n_groups=10, n_pairs=120, n_people=5, wrong=0.2)))
    doubtful = found.ask_again(10)
    doubt = [abs(p - 0.5) for _, _, p in doubtful]
    assert 0 < len(doubtful) <= 10
    assert doubt == sorted(doubt)
    assert doubt[0] == np.abs(found.judgements_proba - 0.5).min()
    assert all(0.01 < p < 0.99 for _, _, p in found.ask_again(500))


@pytest.mark.usefixtures("few_draws")
def test_features_help_where_answers_are_few() -> None:
    rng = np.random.default_rng(0)
    made = records(n_items=42, n_groups=14, n_pairs=190, wrong=0.3)
    X = rng.normal(size=(14, 8))[made.truth] + 0.3 * rng.normal(size=(42, 8))
    truth = made.truth[made.left] == made.truth[made.right]
    with_features, without = (
        np.mean((lw.judgements_proba(pairs_of(made), items) > 0.5) == truth) for items in (X, None)
    )
    assert with_features > without + 0.02


def test_numbers_of_records_in_a_file_are_names(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text(
        "left,right,same\n7000000001,12,1\n12,7000000001,1\n12,-5,0\n12b,7000000001,0\n"
    )
    found = lw.group(file)
    assert found.item_ids.tolist() == ["-5", "12", "12b", "7000000001"]
    assert len(found.judgements_proba) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_groups": 41}, "between 1 and 40"),
        ({"n_groups": 0}, "between 1 and 40"),
        ({"items": np.ones(40)}, "row of features"),
        ({"items": np.full((40, 2), np.nan)}, "NaN"),
        ({"items": np.ones((39, 2))}, "39 items"),
        ({"items": [["a"]] * 40}, "numbers"),
    ],
)
def test_mistakes_are_told(small: Records, options: dict[str, object], words: str) -> None:
    with pytest.raises(lw.InputError, match=words):
        lw.group(pairs_of(small), **options)


def test_it_does_not_wait_for_torch() -> None:
    code = (
        "import sys, likewise as lw; lw.group(lw.Pairs([0, 1], [1, 2], [True, False])); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.usefixtures("few_draws")
def test_weights_below_one_are_grades_of_sureness_not_parts_of_an_answer(few: Records) -> None:
    plain = lw.group(pairs_of(few))
    for weight in (0.25, 1.0):
        graded = lw.group(pairs_of(few, np.full(len(few.same), weight)))
        np.testing.assert_array_equal(graded.labels, plain.labels)
        np.testing.assert_allclose(graded.pairs_proba, plain.pairs_proba)


@pytest.mark.usefixtures("few_draws")
def test_many_small_groups_are_not_lost_between_one_batch_and_the_next() -> None:
    """Of pairs that something suggests: were all pairs as likely to be asked, answers so few would
    tell nothing of so many groups."""
    made = records(n_items=100, n_groups=25, n_pairs=1000, wrong=0.05, n_people=5)
    pairs = pairs_of(made)
    before = lw.group(pairs.select(np.arange(1000) < 960))
    after = lw.group(pairs, start=before)
    assert pairwise_f1(after.labels, made.truth) > 0.9
    assert abs(after.n_groups - 25) <= 3
    belief, _ = belief_in_groups(after, None, pairs)  # by which it is known what to ask next
    assert pairwise_f1(belief[:, :-1].argmax(axis=1), made.truth) > 0.9
