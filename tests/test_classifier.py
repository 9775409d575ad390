"""SimilarityClassifier as people use it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import likewise as lw
from likewise import InputError, Pairs, SimilarityClassifier
from likewise.noise import symmetric
from tiny import QUICK, blobs, noisy, pictures

OPTIONS = {"recipe": QUICK, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def fitted() -> SimilarityClassifier:
    X, y = blobs()
    return SimilarityClassifier(3, **OPTIONS).fit(X, Pairs.from_labels(y))


def quick(**options) -> SimilarityClassifier:
    return SimilarityClassifier(**{"n_classes": 3, **OPTIONS, **options})


# -- fitting and predicting ----------------------------------------------------------------------


def test_it_learns_from_noisy_judgements():
    X, y = blobs(n=600)
    clf = quick().fit(X, Pairs.from_labels(noisy(y, 0.3)))
    assert clf.score(X, y) > 0.95
    assert clf.method_ == "joint"
    assert clf.choice_.startswith("joint: the judgements are consistent")
    assert clf.transition_.shape == (3, 3)
    assert len(clf.history_) == QUICK.epochs
    assert clf.warnings_ == []


def test_what_prediction_gives(fitted):
    X, y = blobs()
    p = fitted.predict_proba(X)
    assert p.shape == (240, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(X), p.argmax(axis=1))
    assert fitted.transform(X).shape == (240, 128)
    assert fitted.n_features_in_ == 4
    assert fitted.classes_.tolist() == [0, 1, 2]
    # In the same batches: some processors round in batches of other sizes in another way.
    left, right = fitted.predict_proba(X[:5]), fitted.predict_proba(X[5:10])
    np.testing.assert_allclose(fitted.predict_same(X[:5], X[5:10]), (left * right).sum(axis=1))
    same = fitted.predict_same(X[:-1], X[1:])
    assert same[y[:-1] == y[1:]].mean() > same[y[:-1] != y[1:]].mean() + 0.8


def test_the_embedding_explains_the_prediction(fitted):
    X, _ = blobs()
    head = fitted.model_.network[-1]
    logits = head(torch.from_numpy(fitted.transform(X)))
    np.testing.assert_allclose(logits.softmax(dim=1).numpy(), fitted.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("method", ["mcl", "kcl", "mns"])
def test_every_method_by_name(method):
    X, y = blobs()
    clf = quick(method=method, recipe=QUICK.with_(epochs=12, balance=0.03))
    clf.fit(X, Pairs.from_labels(y, per_item=6, random_state=0))
    assert clf.method_ == method
    assert clf.score(X, y) > 0.9


def test_a_transition_matrix_may_be_given():
    X, y = blobs()
    true = symmetric(3, 0.2)
    clf = quick(transition=true.tolist()).fit(X, Pairs.from_labels(noisy(y, 0.2)))
    np.testing.assert_allclose(clf.transition_, true, atol=1e-6)
    none = quick(transition=None, recipe=QUICK.with_(epochs=1)).fit(X, Pairs.from_labels(y))
    np.testing.assert_array_equal(none.transition_, np.eye(3))


def test_judgements_come_in_several_forms():
    X, y = blobs()
    pairs = Pairs.from_labels(y, per_item=30, random_state=0)
    index = np.stack([pairs.left, pairs.right], axis=1)
    columns = {"left": pairs.left, "right": pairs.right, "same": pairs.same}
    words = np.where(pairs.same, "same", "different")
    expected = quick().fit(X, pairs).predict_proba(X)
    for given in (
        (index, pairs.same),
        ((index, pairs.same),),
        (index, np.where(pairs.same, 1, -1)),
        (index, words),
        (pd.DataFrame(columns),),
        (pl.DataFrame(columns),),
    ):
        np.testing.assert_array_equal(quick().fit(X, *given).predict_proba(X), expected)


def test_some_items_may_have_no_judgement():
    X, y = blobs()
    pairs = Pairs.from_labels(y[:200], per_item=40, random_state=0)
    assert pairs.n_items == 200
    assert quick().fit(X, pairs).score(X, y) > 0.9


@pytest.mark.parametrize(
    ("shape", "network"),
    [((8, 8), None), ((16, 16), None), ((16, 16, 3), "lenet"), ((8, 8, 3), "mlp")],
)
def test_images(shape, network):
    X, y = pictures(size=shape[0], channels=shape[2] if len(shape) == 3 else None)
    recipe = QUICK.with_(lr=0.002)
    clf = quick(n_classes=2, network=network, recipe=recipe).fit(X, Pairs.from_labels(y))
    assert clf.score(X, y) > 0.95
    assert clf.item_shape_ == shape
    assert clf.predict(X.astype(np.float64)).tolist() == clf.predict(X).tolist()


def test_a_memory_map_is_as_good_as_an_array(tmp_path):
    X, y = pictures()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    pairs = Pairs.from_labels(y)
    expected = quick(n_classes=2).fit(X, pairs).predict_proba(X)
    found = quick(n_classes=2).fit(mapped, pairs).predict_proba(mapped)
    np.testing.assert_array_equal(found, expected)


class Own(nn.Module):
    """A network of the user's."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.first = nn.Linear(4, 16)
        self.last = nn.Linear(16, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(x)))


def test_a_network_of_the_users():
    X, y = blobs()
    own = Own()
    before = own.first.weight.detach().clone()
    clf = quick(network=own, recipe=QUICK.with_(epochs=12)).fit(X, Pairs.from_labels(y))
    assert clf.score(X, y) > 0.9
    assert torch.equal(own.first.weight, before)  # the user's own is left alone
    assert clf.transform(X).shape == (240, 16)


def test_a_network_with_another_number_of_outputs_is_refused():
    X, y = blobs()
    for method in ("joint", "mcl"):
        with pytest.raises(InputError, match="gives 5 outputs an item, but 3 classes need 3"):
            quick(network=Own(5), method=method).fit(X, Pairs.from_labels(y))


def test_a_network_that_cannot_take_the_items_is_refused():
    X, y = pictures()
    with pytest.raises(InputError, match=r"the network cannot take items of shape \(1, 8, 8\)"):
        quick(network=Own(2), n_classes=2).fit(X, Pairs.from_labels(y))


# -- scikit-learn's ways -------------------------------------------------------------------------


def test_same_seed_same_classifier():
    X, y = blobs()
    pairs = Pairs.from_labels(noisy(y, 0.3))
    one, two = (quick().fit(X, pairs).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = quick(random_state=1).fit(X, pairs).predict_proba(X)
    assert not np.array_equal(one, other)


def test_parameters_are_held_as_given_and_cloned():
    clf = SimilarityClassifier(n_classes=4, method="mns", anchors=0.97, network=Own())
    parameters = clf.get_params()
    assert parameters["n_classes"] == 4
    assert parameters["anchors"] == 0.97
    copy = clone(clf)
    assert copy is not clf
    assert copy.get_params()["method"] == "mns"
    assert clf.set_params(held_out=0.3).held_out == 0.3
    assert "n_classes=4" in repr(clf)
    with pytest.raises(ValueError, match="Invalid parameter 'classes'"):
        clf.set_params(classes=3)


def test_pickle_round_trip(fitted):
    X, _ = blobs()
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(back.predict_proba(X), fitted.predict_proba(X))
    assert back.history_ == fitted.history_


def test_in_a_pipeline():
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), quick()).fit(X * 1000, Pairs.from_labels(y))
    assert pipeline.score(X * 1000, y) > 0.95
    assert pipeline.predict_proba(X * 1000).shape == (240, 3)
    assert pipeline[:-1].transform(X * 1000).std() == pytest.approx(1, abs=0.01)
    for grid in ParameterGrid({"similarityclassifier__method": ["joint"]}):
        pipeline.set_params(**grid)


def test_fit_returns_itself_and_forgets_the_last_fit():
    X, y = blobs()
    clf = quick(recipe=QUICK.with_(epochs=2))
    assert clf.fit(X, Pairs.from_labels(y)) is clf
    images, halves = pictures()
    clf.set_params(n_classes=2).fit(images, Pairs.from_labels(halves))
    assert clf.predict_proba(images).shape == (120, 2)
    with pytest.raises(InputError, match="was fitted to items of shape"):
        clf.predict(X)


@pytest.mark.parametrize("name", ["predict", "predict_proba", "transform"])
def test_nothing_is_predicted_before_fitting(name):
    with pytest.raises(NotFittedError):
        getattr(SimilarityClassifier(3), name)(np.zeros((2, 4)))
    with pytest.raises(NotFittedError):
        SimilarityClassifier(3).save("nowhere")


# -- names ---------------------------------------------------------------------------------------


def test_classes_are_named_by_a_few_items():
    X, y = blobs()
    clf = quick().fit(X, Pairs.from_labels(y))
    words = np.array(["ash", "birch", "cedar"])
    few = [int(np.flatnonzero(y == c)[k]) for c in range(3) for k in range(4)]
    assert clf.name_classes(X[few], words[y[few]]) is clf
    assert (clf.predict(X) == words[y]).mean() > 0.95
    assert sorted(clf.classes_) == ["ash", "birch", "cedar"]
    order = [clf.classes_.tolist().index(word) for word in words[y]]
    assert clf.predict_proba(X)[np.arange(240), order].mean() > 0.9
    assert clf.score(X, words[y]) > 0.95
    assert clf.score(X, y) > 0.95  # names or numbers: a matching needs neither


def test_names_that_are_too_few():
    X, y = blobs()
    clf = quick().fit(X, Pairs.from_labels(y))
    clf.name_classes(X[y == 1][:2], ["birch", "birch"])
    assert "birch" in clf.classes_
    assert sum(str(name).startswith("class ") for name in clf.classes_) == 2
    with pytest.raises(InputError, match="there are 2 items but 1 names"):
        clf.name_classes(X[:2], ["birch"])
    with pytest.raises(InputError, match=r"at least one item|no items"):
        clf.name_classes(X[:0], [])


# -- mistakes ------------------------------------------------------------------------------------

X, Y = blobs(n=60)
ALL = Pairs.from_labels(Y)


@pytest.mark.parametrize(
    ("options", "items", "pairs", "message"),
    [
        ({"n_classes": 1}, X, ALL, "at least two classes"),
        ({"n_classes": 61}, X, ALL, r"more classes \(61\) than items \(60\)"),
        ({"n_classes": "three"}, X, ALL, "whole number or 'auto'"),
        ({"method": "magic"}, X, ALL, "method must be one of"),
        ({"transition": "guess"}, X, ALL, "transition must be 'estimate'"),
        ({"transition": np.eye(4)}, X, ALL, "for 4 classes, but there are 3"),
        ({"transition": np.ones((3, 3))}, X, ALL, "row 0 sums to 3"),
        ({"network": "lenet"}, X, ALL, "'lenet' is for images"),
        ({"network": "lenett"}, X, ALL, "there is no network 'lenett'"),
        ({"recipe": {"epoch": 3}}, X, ALL, "a recipe has no epoch"),
        ({"recipe": {"epochs": 0}}, X, ALL, "epochs must lie between 1 and 1,000,000"),
        ({"held_out": 0.0}, X, ALL, "held-out fraction must lie between 0 and 1"),
        ({"held_out": 1.5}, X, ALL, "held-out fraction must lie between 0 and 1"),
        ({"device": "abacus"}, X, ALL, "there is no device 'abacus'"),
        ({"random_state": -1}, X, ALL, "random_state must be a whole number"),
        ({"random_state": "a"}, X, ALL, "random_state must be a whole number"),
        ({"method": "mns", "anchors": "oak"}, X, ALL, "anchors must be"),
        ({}, X[:50], ALL, "names item 59, but there are only 50 items"),
        ({}, np.concatenate([X, X]), ALL, "about 60 items, but there are 120"),
        ({}, X * np.nan, ALL, "item 0 has NaN"),
        ({}, X[0], ALL, r"have shape \(4,\)"),
        ({}, X, Pairs([], [], []), "no judgement among the given items"),
        ({}, X, Pairs([0], [1], [1]), "say 'same'; both kinds"),
        ({}, X, np.zeros((3, 3)), "judgements must be a Pairs, a data frame"),
        ({}, X, None, "judgements must be a Pairs"),
        ({}, X, pd.DataFrame({"left": [0], "right": [1]}), "lack the column same"),
        ({}, X, (np.array([[0, 99]]), [1]), "but there are only 60 items"),
    ],
)
def test_mistakes_are_named(options, items, pairs, message):
    options = {"recipe": QUICK.with_(epochs=1), **options}
    with pytest.raises(InputError, match=message):
        quick(**options).fit(items, pairs)


def test_rows_of_two_sides_must_match(fitted):
    with pytest.raises(InputError, match="2 items on the left, 3 on the right"):
        fitted.predict_same(X[:2], X[:3])


def test_predictions_are_of_the_items_that_were_learned(fitted):
    with pytest.raises(InputError, match="is expecting 4 features as input"):
        fitted.predict(np.zeros((2, 5)))


def test_public_names_are_all_there():
    for name in lw.__all__:
        if name != "suggest":
            assert getattr(lw, name) is not None
    assert set(lw.__all__) <= set(dir(lw))
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        lw.magic  # noqa: B018
