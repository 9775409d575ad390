"""Classes that are certain beforehand: they decide numbers and names, and steer the fit."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

import likewise as lw
from likewise.errors import InputError
from likewise.inference.lifting.tallies import Tallies, balance
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import certain, clamped, in_known_order, one_hot
from likewise.methods.known import KnownClasses


def blobs(n: int = 160, classes: int = 4):
    points, y = make_blobs(n, n_features=8, centers=classes, cluster_std=1.0, random_state=1)
    return points.astype(np.float32), y


def fit(pairs: lw.Pairs, points, known, **options) -> lw.SimilarityClassifier:
    classifier = lw.SimilarityClassifier(
        4, recipe={"epochs": 5}, random_state=0, verbose=False, **options
    )
    return classifier.fit(points, pairs, known=known)


# -- what a person gives ----------------------------------------------------------------------


def test_names_become_numbers_and_come_back():
    known = KnownClasses.of({3: "cat", 5: "dog", 7: "cat"}, 10)
    assert known.numbers is not None
    assert known.numbers.tolist() == [-1, -1, -1, 0, -1, 1, -1, 0, -1, -1]
    assert known.names(3).tolist() == ["cat", "dog", "class 2"]


def test_class_numbers_are_kept_as_they_are():
    known = KnownClasses.of([2, None, 0, float("nan"), 1], 5)
    assert known.numbers is not None
    assert known.numbers.tolist() == [2, -1, 0, -1, 1]
    assert known.names(4).tolist() == [0, 1, 2, 3]


def test_large_numbers_are_names():
    known = KnownClasses.of({0: 2019, 1: 2024}, 5)
    assert known.count == 2
    assert known.names(3).tolist() == ["2019", "2024", "class 2"]


@pytest.mark.parametrize("kind", [np.float64, np.float32, object])
def test_whole_numbers_are_the_same_where_nan_makes_them_floats(kind: type):
    given = np.array([0, np.nan, 1, 2, np.nan], kind)
    known = KnownClasses.of(given, 5)
    assert known.numbers is not None
    assert known.numbers.tolist() == [0, -1, 1, 2, -1]
    assert known.names(4).tolist() == [0, 1, 2, 3]


def as_name(value) -> str:
    return value if isinstance(value, str) else str(value).removesuffix(".0")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([0.0, np.nan, 10.0, 2.0], ["0", "2", "10"]),
        ([10.5, 2.5, np.nan, 0.5], ["0.5", "2.5", "10.5"]),
        ([20240000010, 3, None, 9], ["3", "9", "20240000010"]),
        (["10", "9", None, "b"], ["10", "9", "b"]),
    ],
)
def test_names_that_are_numbers_are_sorted_as_numbers(given, names):
    known = KnownClasses.of(np.array(given, object), 4)
    assert known.numbers is not None
    assert known.names(3).tolist() == names
    found = ["" if number < 0 else names[number] for number in known.numbers]
    assert found == ["" if value != value or value is None else as_name(value) for value in given]


def test_minus_one_may_be_a_class_where_items_are_named():
    assert KnownClasses.of({0: -1, 3: 1}, 5).names(2).tolist() == ["-1", "1"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "names no item"),
        (np.array([0, 1, -1, -1, 2, -1, 0, 0, 0, 0]), "None for these"),
        (np.array([0.0, 1, -1, np.nan, 2, -1, 0, 0, 0, 0]), "None for these"),
        ({10: "cat"}, "not among the 10 items"),
        (["cat"], "known has 1 classes"),
    ],
)
def test_what_does_not_fit_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        KnownClasses.of(given, 10)


def test_more_known_classes_than_asked_for_are_refused():
    points, y = blobs()
    with pytest.raises(InputError, match="5 classes of items are known"):
        fit(lw.Pairs.from_labels(y, 10, 0), points, {k: f"name {k}" for k in range(5)})


def test_a_method_that_would_ignore_them_refuses():
    points, y = blobs()
    with pytest.raises(InputError, match="does not use known classes"):
        fit(lw.Pairs.from_labels(y, 10, 0), points, {0: "cat"}, method="mcl")


# -- what inference makes of it ---------------------------------------------------------------


def test_beliefs_follow_what_is_known():
    known = one_hot(np.array([1, -1, 0]), 2)
    belief = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.1, 0.9]])
    assert in_known_order(belief, known).tolist() == belief[:, [1, 0]].tolist()
    assert certain(belief, known).tolist() == [[0, 1], belief[1].tolist(), [1, 0]]
    log = clamped(torch.log(belief), known)
    assert torch.allclose(log.exp().sum(1), torch.ones(3))
    assert log.argmax(1).tolist() == [1, 0, 0]
    assert in_known_order(belief, None) is belief


def test_beliefs_in_the_order_of_others_undo_a_permutation():
    belief = torch.softmax(3 * torch.randn(50, 6, generator=torch.Generator().manual_seed(0)), 1)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(in_known_order(belief[:, order], belief), belief)


def test_known_items_speak_for_their_micro_cluster():
    none = torch.zeros(0, dtype=torch.long)
    graph = Graph(none, none, none.bool(), 4, known=one_hot(np.array([1, -1, -1, -1]), 3))
    cluster = np.array([0, 0, 1, 1])
    q = torch.full((1, 2, 3), 1 / 3)
    told = balance(Tallies.of(graph, cluster), q)
    silent = balance(Tallies.of(Graph(none, none, none.bool(), 4), cluster), q)
    gain = told[1] - silent[1]
    assert gain[0, 0].argmax() == 1
    assert float(gain[0, 0, 1]) > 1
    assert torch.equal(gain[0, 1], torch.zeros(3))


# -- what a fit makes of it -------------------------------------------------------------------

GRAPHS = {
    "components": lambda y: lw.Pairs.from_labels(y),
    "graph": lambda y: lw.Pairs.from_labels(y, 40, 0).with_answers(
        lw.Pairs.from_labels(y, 40, 0).same ^ (np.random.default_rng(0).random(len(y) * 20) < 0.05)
    ),
    "sparse": lambda y: lw.Pairs.from_labels(y, 3, 0),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_classes_have_the_names_that_were_given(kind):
    points, y = blobs()
    names = np.array(["ape", "bee", "cow", "dog"])
    known = {int(k): str(names[c]) for c in range(4) for k in np.flatnonzero(y == c)[:2]}
    classifier = fit(GRAPHS[kind](y), points, known)
    assert classifier.classes_.tolist() == names.tolist()
    assert (classifier.predict(points) == names[y]).mean() > 0.9
    assert classifier.labels_ is not None
    assert all(classifier.labels_[k] == name for k, name in known.items())


def test_em_with_rich_features_follows_them_too():
    points, y = blobs(60)
    wide = np.hstack([points, np.random.default_rng(0).normal(size=(len(y), 40))])
    people = np.arange(len(y) * 5) % 3
    pairs = lw.Pairs.from_labels(y, 10, 0)
    slips = np.random.default_rng(0).random(len(pairs)) < 0.1
    crowd = lw.Pairs(pairs.left, pairs.right, pairs.same ^ slips, people, n_items=len(y))
    known = {int(np.flatnonzero(y == c)[0]): (c + 1) % 4 for c in range(4)}
    classifier = fit(crowd, wide, known, noise="judgement")
    assert (classifier.predict(wide) == (y + 1) % 4).mean() > 0.9
