"""Suspects: the judgements most probably wrong, worst first."""

from __future__ import annotations

import numpy as np
import pytest

import likewise as lw
from likewise import InputError, Pairs, SimilarityClassifier
from likewise.noise import flip_judgements
from tiny import QUICK, blobs


class Oracle:
    """Stands for a classifier: posteriors are the items themselves."""

    def predict_proba(self, X):
        return np.asarray(X, np.float32)


SURE = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])


def test_order_and_probabilities():
    pairs = Pairs([0, 0, 1, 0], [1, 2, 2, 3], [1, 1, 0, 0])
    found = lw.suspects(Oracle(), SURE, pairs)
    # P(wrong): same 0-1: .1; same 0-2: .9; different 1-2: .18; different 0-3: .5
    assert found.judgement.tolist() == [1, 3, 2, 0]
    np.testing.assert_allclose(found.probability_wrong, [0.9, 0.5, 0.18, 0.1], atol=1e-6)
    assert found.left.tolist() == [0, 0, 1, 0]
    assert found.right.tolist() == [2, 3, 2, 1]
    assert found.same.tolist() == [True, False, False, True]
    assert found.annotator is None
    assert len(found) == 4


def test_the_worst_few():
    pairs = Pairs([0, 0, 1, 0], [1, 2, 2, 3], [1, 1, 0, 0])
    found = lw.suspects(Oracle(), SURE, pairs, limit=2)
    assert found.judgement.tolist() == [1, 3]


def test_equals_keep_their_order_and_annotators_their_names():
    pairs = Pairs([0, 0, 0], [1, 1, 2], [1, 1, 1], ["cy", "ann", "bob"])
    found = lw.suspects(Oracle(), SURE, pairs)
    assert found.judgement.tolist() == [2, 0, 1]
    assert found.annotator.tolist() == ["bob", "cy", "ann"]
    table = found.to_dict()
    assert table["annotator"] == ["bob", "cy", "ann"]
    assert table["same"] == [True, True, True]
    assert list(table) == ["judgement", "left", "right", "same", "probability_wrong", "annotator"]


def test_it_reads_like_a_table():
    many = Pairs([0] * 30, [1] * 30, [0] * 30)
    text = repr(lw.suspects(Oracle(), SURE, many)).splitlines()
    assert len(text) == 11
    assert "P(wrong)" in text[0]
    assert "different" in text[1]
    assert "0.900" in text[1]
    assert "same" in repr(lw.suspects(Oracle(), SURE, Pairs([0], [1], [1])))


def test_other_forms_of_judgements_and_complete_sets():
    index = np.array([[0, 1], [0, 2]])
    assert lw.suspects(Oracle(), SURE, (index, [1, 1])).judgement.tolist() == [1, 0]
    assert len(lw.suspects(Oracle(), SURE, Pairs.from_labels([0, 0, 1, 1]))) == 6
    with pytest.raises(InputError, match="only 4 items"):
        lw.suspects(Oracle(), SURE, Pairs([0], [7], [1]))


def test_flipped_judgements_are_found():
    X, y = blobs(n=300, apart=5.0)
    clean = Pairs.from_labels(y, per_item=12, random_state=0)
    dirty = flip_judgements(clean, 0.95, 0.05, 1)
    wrong = clean.same != dirty.same
    options = {"recipe": QUICK, "random_state": 0, "device": "cpu", "method": "mcl"}
    clf = SimilarityClassifier(3, **options).fit(X, dirty)
    found = lw.suspects(clf, X, dirty, limit=int(wrong.sum()))
    assert wrong[found.judgement].mean() > 0.9


def test_certainties_that_round_to_one_are_still_ordered():
    class Sure:
        def predict_proba(self, X):
            rest = np.float32(10.0) ** -np.asarray(X, np.float32)[:, 0]
            return np.stack([np.float32(1) - rest, rest], axis=1)

    items = [[9.0], [9.0], [12.0], [12.0]]
    said_different = Pairs([0, 2], [1, 3], [0, 0], n_items=4)
    found = lw.suspects(Sure(), items, said_different)
    assert found.judgement.tolist() == [1, 0]


@pytest.mark.parametrize("limit", [None, 1, 7, 40])
def test_piece_by_piece_they_are_those_of_all_at_once(limit, monkeypatch):
    rng = np.random.default_rng(0)
    items = rng.dirichlet(np.ones(3), 30).round(1)  # rounded: some are equally wrong
    items /= items.sum(axis=1, keepdims=True)
    left = rng.integers(30, size=200)
    pairs = Pairs(left, (left + rng.integers(1, 30, size=200)) % 30, rng.random(200) < 0.4)
    at_once = lw.suspects(Oracle(), items, pairs)
    monkeypatch.setattr("likewise.active.suspects.CHUNK", 11)
    monkeypatch.setattr("likewise.active.suspects.AT_ONCE", 9)
    found = lw.suspects(Oracle(), items, pairs, limit=limit)
    assert found.judgement.tolist() == at_once.judgement.tolist()[:limit]
    assert found.probability_wrong.tolist() == at_once.probability_wrong.tolist()[:limit]
