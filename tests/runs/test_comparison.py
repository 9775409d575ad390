"""Baselines, stability, the model card, and classes merged and split by a person."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import likewise as lw
from likewise.errors import InputError
from likewise.metrics import matched_accuracy
from likewise.runs import comparison, verdict
from likewise.runs.card import model_card
from likewise.runs.comparison import balanced_agreement, by_clusters, by_vote, compare
from likewise.runs.fit_job import FitJob
from likewise.runs.inputs import reopen
from likewise.runs.revision import _like, merge_classes, split_class
from likewise.runs.told import Told
from likewise.runs.verdict import in_words


def blobs(classes: int = 4):
    return make_blobs(120, n_features=6, centers=classes, cluster_std=1.0, random_state=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    points, y = blobs()
    np.save(folder / "items.npy", points.astype(np.float32))
    pairs = lw.Pairs.from_labels(y, 20, 0)
    slips = np.random.default_rng(0).random(len(pairs)) < 0.05
    pairs.with_answers(pairs.same ^ slips).write(folder / "pairs.csv")
    classifier = lw.SimilarityClassifier(4, recipe={"epochs": 8}, random_state=0, verbose=False)
    job = FitJob(folder / "items.npy", folder / "pairs.csv", folder / "run", stability=True)
    return job.run(classifier), y, folder


def test_vote_and_components_by_hand():
    rest = lw.Pairs([0, 0, 0, 1, 3], [1, 1, 1, 2, 4], [1, 1, 0, 1, 0], n_items=5)
    held = lw.Pairs([0, 0, 3], [2, 3, 4], [1, 0, 1], n_items=5)
    predicted = by_vote(rest, held)
    assert predicted.tolist() == [True, False, False]
    assert balanced_agreement(predicted, held) == pytest.approx((0.5 + 1) / 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_votes_are_those_of_a_slow_loop(weighted, monkeypatch):
    monkeypatch.setattr("likewise.pairs.edges.CHUNK", 13)
    rng = np.random.default_rng(0)
    left = rng.integers(12, size=60)
    right = (left + rng.integers(1, 12, size=60)) % 12
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], 60) if weighted else None
    rest = lw.Pairs(left, right, rng.random(60) < 0.4, weight=weight, n_items=12)
    vote = np.zeros((12, 12))
    for k, (i, j, same) in enumerate(zip(rest.left, rest.right, rest.same)):
        vote[min(i, j), max(i, j)] += (1 if weight is None else weight[k]) * (1 if same else -1)
    agreed = np.argwhere(vote > 0)
    links = lw.Pairs(*agreed.T, np.ones(len(agreed), bool), n_items=12)
    i, j = np.triu_indices(12, 1)
    held = lw.Pairs(i, j, np.ones(len(i), bool), n_items=12)
    expected = links.components()[i] == links.components()[j]
    assert expected.any()
    assert by_vote(rest, held).tolist() == expected.tolist()
    nobody = rest.with_answers(np.zeros(60, bool))
    assert not by_vote(nobody, held).any()


def test_k_means_tells_far_items_apart():
    items = np.array([[0.0], [0.1], [9.0], [9.1]])
    held = lw.Pairs([0, 0, 2], [1, 2, 3], [1, 0, 1], n_items=4)
    assert by_clusters(items, held, 2).tolist() == [True, False, True]


def test_nothing_is_compared_where_nothing_can_be_held_out():
    points, y = blobs()
    classifier = lw.SimilarityClassifier(4, random_state=0)
    assert compare(classifier, points, lw.Pairs.from_labels(y)) is None
    few = lw.Pairs([0, 1, 2], [3, 4, 5], [1, 0, 1], n_items=120)
    assert compare(classifier, points, few) is None


def test_a_run_says_how_it_compares(made):
    run, _, _ = made
    found = run.metrics["comparison"]
    assert found["judgements"] == 120
    assert found["seeds"] == 3
    assert found["items"] == 120
    assert found["changed"] < 20
    assert found["agreement"]["this fit"] > 0.85
    assert set(found["agreement"]) == {
        "majority vote and components",
        "k-means on the items",
        "this fit",
    }


def test_in_words():
    found = {"judgements": 50, "agreement": {"k-means on the items": 0.715}, "changed": None}
    baselines, own, seeds = in_words(found)
    assert "k-means on the items 72%" in baselines
    assert "kept from them, simple procedures foretell" in baselines
    assert "this fit foretells was not computed, since it learned from them too" in own
    assert "--stability" in own
    assert "--stability" in seeds
    both = {**found["agreement"], "this fit": 0.9}
    stable = found | {"agreement": both, "changed": 3, "items": 150, "seeds": 3}
    compared, seeds = in_words(stable)
    assert "simple procedures and this fit, made anew without them, foretell" in compared
    assert "this fit 90%" in compared
    assert seeds == "Over 3 seeds, 3 of 150 items (2.0%) change class."
    assert in_words(None) == []


def test_the_fit_s_own_share_is_known_by_its_name():
    assert verdict.OWN == comparison.OWN


def test_every_run_has_a_model_card(made):
    run, _, _ = made
    card = (run.folder / "model_card.md").read_text()
    assert card.startswith("---\nlibrary_name: likewise")
    assert "- 120 items" in card
    assert "- 1,200 judgements" in card
    assert "change class." in card
    assert run.config["pairs"]["sha256"] in card


def test_a_card_names_no_person_and_survives_odd_values():
    figures = {
        "classes": 2,
        "items": 5,
        "judgements": 4,
        "choice": "joint",
        "class_names": ["a`b", "c"],
        "sizes": [3, 2],
        "warnings": [],
    }
    card = model_card("run", figures, {"judgements": 4, "same": 2}, {"parameters": {"x": "`"}})
    assert "Nothing in the run calls for a warning." in card
    assert "- x: `'`" in card


# -- a person knows better --------------------------------------------------------------------


def test_two_classes_become_one(made, tmp_path):
    run = made[0]
    data, pairs = reopen(run)
    merged = merge_classes(run, data, pairs, ("0", "1"), tmp_path / "merged", None)
    assert merged.metrics["class_names"] == ["0+1", "2", "3"]
    before = run.posterior.argmax(1)
    names = np.array(merged.metrics["class_names"])[merged.posterior.argmax(1)]
    wanted = np.array(["0+1", "0+1", "2", "3"])[before]
    assert (names == wanted).mean() > 0.95
    assert merged.config["merged"] == ["0", "1"]
    assert lw.load(merged.model).get_params()["n_classes"] == 3


def test_a_revised_run_is_fitted_by_the_network_that_was_asked_for(made):
    run = made[0]
    loaded = lw.load(run.model)
    assert loaded.network is not None  # the one that was taken
    assert _like(run, loaded, 3).network is None


def test_a_class_becomes_two(made, tmp_path):
    _, y, folder = made
    data = folder / "items.npy"
    # A fit that was told of three classes: two of the four kinds are one.
    joined = np.array([0, 0, 1, 2])[y]
    known = tmp_path / "known.csv"
    known.write_text("item,label\n" + "".join(f"{k},kind{c}\n" for k, c in enumerate(joined)))
    classifier = lw.SimilarityClassifier(3, recipe={"epochs": 8}, random_state=0, verbose=False)
    job = FitJob(data, folder / "pairs.csv", tmp_path / "three", told=Told(known=known))
    run = job.run(classifier)
    items, pairs = reopen(run)
    parted = split_class(run, items, pairs, "kind0", tmp_path / "four")
    assert parted.metrics["class_names"] == ["kind0.1", "kind0.2", "kind1", "kind2"]
    found = parted.posterior.argmax(1)
    assert matched_accuracy(found, y) > 0.95


def test_what_cannot_be_merged_or_split_is_refused(made, tmp_path):
    run, *_ = made
    data, pairs = reopen(run)
    with pytest.raises(InputError, match="no class 'cat'; the classes are 0, 1, 2, 3"):
        merge_classes(run, data, pairs, ("0", "cat"), tmp_path / "x", None)
    with pytest.raises(InputError, match="are the same class"):
        merge_classes(run, data, pairs, ("0", "0"), tmp_path / "x", None)
    only = pairs.select(np.flatnonzero(pairs.same))
    with pytest.raises(InputError, match="10 of each are needed"):
        split_class(run, data, only, "1", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_inputs_that_moved_or_changed_are_refused(made, tmp_path):
    run, _, folder = made
    moved = Path(folder / "pairs.csv").rename(folder / "elsewhere.csv")
    try:
        with pytest.raises(InputError, match=r"no longer lie at .*; give --pairs"):
            reopen(run)
        assert len(reopen(run, pairs=moved)[1]) == 1200
        (folder / "pairs.csv").write_text("left,right,same\n0,1,1\n")
        with pytest.raises(InputError, match="has changed since"):
            reopen(run)
    finally:
        moved.replace(folder / "pairs.csv")
