"""Saved classifiers predict bit for bit what they did, and nothing else is taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import likewise as lw
from likewise import InputError, Pairs, SimilarityClassifier
from likewise.io.json import plain
from likewise.serialization.description import VERSION
from tiny import QUICK, blobs, noisy, pictures

OPTIONS = {"recipe": QUICK.with_(epochs=2), "random_state": 0, "device": "cpu"}


def fit_blobs(**options) -> SimilarityClassifier:
    X, y = blobs()
    clf = SimilarityClassifier(**{"n_classes": 3, **OPTIONS, **options})
    return clf.fit(X, Pairs.from_labels(noisy(y, 0.1)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    fit_blobs().save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    """A saved model of one's own, to spoil."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def describe(folder: Path, **changes) -> None:
    path = folder / "model.json"
    about = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in about.items() if v != "gone"}))


# -- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "mns"},
        {"method": "mcl", "transition": None},
        {"network": "linear"},
        {"recipe": {"epochs": 2, "mixup": 0.2}},
        {"transition": np.eye(3)},
    ],
    ids=str,
)
def test_a_loaded_model_predicts_bit_identically(options, tmp_path):
    X, _ = blobs()
    clf = fit_blobs(**options)
    clf.save(tmp_path / "model")
    back = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(back.transform(X), clf.transform(X))
    np.testing.assert_array_equal(back.predict(X), clf.predict(X))
    assert back.method_ == clf.method_
    assert back.choice_ == clf.choice_
    assert back.history_ == plain(clf.history_)
    assert back.best_epoch_ == clf.best_epoch_
    assert back.n_features_in_ == 4
    if clf.transition_ is None:
        assert back.transition_ is None
    else:
        np.testing.assert_array_equal(back.transition_, clf.transition_)


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("network", ["lenet", "resnet32", "vgg8", "mlp"])
def test_image_networks_survive(channels, network, tmp_path):
    X, y = pictures(n=24, size=16, channels=channels)
    recipe = QUICK.with_(epochs=1, flip=True)
    clf = SimilarityClassifier(2, network=network, recipe=recipe, device="cpu")
    clf.fit(X, Pairs.from_labels(y)).save(tmp_path / "model")
    back = lw.load(tmp_path / "model")
    assert back.model_.flip_tta == clf.model_.flip_tta
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(back.transform(X), clf.transform(X))


def test_names_and_parameters_survive(tmp_path):
    X, y = blobs()
    clf = fit_blobs(held_out=0.2)
    clf.name_classes(X, np.array(["oak", "élan", "<b>yew</b>"])[y])
    clf.save(tmp_path / "deep" / "model")
    back = lw.load(str(tmp_path / "deep" / "model"))
    np.testing.assert_array_equal(back.predict(X), clf.predict(X))
    assert back.get_params()["held_out"] == 0.2
    assert back.get_params()["recipe"]["epochs"] == 2
    again = back.fit(X, Pairs.from_labels(noisy(y, 0.1)))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_a_network_of_the_users_is_given_again(tmp_path):
    X, _ = blobs()
    torch.manual_seed(0)
    clf = fit_blobs(network=nn.Linear(4, 3))
    clf.save(tmp_path / "model")
    with pytest.raises(InputError, match=r"load it with lw.load\(folder, network=module\)"):
        lw.load(tmp_path / "model")
    back = lw.load(tmp_path / "model", network=nn.Linear(4, 3))
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(InputError, match="does not fit the network"):
        lw.load(tmp_path / "model", network=nn.Linear(5, 3))


def test_only_data_is_written(saved):
    assert sorted(file.name for file in saved.iterdir()) == ["model.json", "weights.safetensors"]
    json.loads((saved / "model.json").read_text())
    load_file(saved / "weights.safetensors")


# -- where it is written -------------------------------------------------------------------------


def test_nothing_is_written_over(tmp_path):
    clf = fit_blobs()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="already holds something"):
        clf.save(tmp_path / "model")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        clf.save(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    clf.save(tmp_path / "empty")
    lw.load(tmp_path / "empty")


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    clf = fit_blobs()

    def full_disk(*_) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("likewise.serialization.tensors.save_file", full_disk)
    with pytest.raises(OSError, match="no space"):
        clf.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# -- what is not a model -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "likewise-toaster"}, "its kind is not 'likewise-classifier'"),
        ({"version": VERSION + 1}, "newer Likewise.*upgrade likewise"),
        ({"version": "1"}, "newer Likewise"),
        ({"classes": "gone"}, "lacks the field 'classes'"),
        ({"classes": {}}, "field 'classes' of the wrong type"),
        ({"classes": ["one"]}, "names 1 classes, which cannot be"),
        ({"network_shape": [0]}, "another shape than its items"),
        ({"item_shape": [2**30]}, "impossible shape"),
        ({"item_shape": ["4"]}, "impossible shape"),
        ({"network": {"name": "skynet"}}, "network 'skynet', which this Likewise does not know"),
        ({"network": {"name": "mlp", "hidden": [-1]}}, "impossible sizes"),
        ({"network": {"name": "mlp", "hidden": [7]}}, "does not fit the network"),
        ({"classes": [0, 1]}, "for 3 classes, but there are 2"),
        ({"classes": [0, 1], "transition": None}, "does not fit the network"),
        ({"inputs": {"size": -1}}, "input layer that does not fit its items"),
    ],
    ids=str,
)
def test_a_description_that_is_not_ours(copy, changes, message):
    describe(copy, **changes)
    with pytest.raises(InputError, match=message):
        lw.load(copy)


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff\xfe", "[" * 100_000])
def test_a_description_that_is_no_json(copy, text):
    (copy / "model.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"model\.json"):
        lw.load(copy)


def test_missing_parts_are_named(copy, tmp_path):
    with pytest.raises(InputError, match="there is no model folder"):
        lw.load(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(InputError, match=r"it has no model\.json"):
        lw.load(tmp_path / "bare")
    (copy / "weights.safetensors").unlink()
    with pytest.raises(InputError, match=r"it has no weights\.safetensors"):
        lw.load(copy)


def test_weights_that_are_cut_short_or_of_another_model(copy):
    path = copy / "weights.safetensors"
    whole = path.read_bytes()
    for bad in (b"", whole[:-10], whole[:20], b"\x80\x04pickle", b"\xff" * 100):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="is not a safetensors file, or is cut short"):
            lw.load(copy)
    path.write_bytes(whole)
    state = load_file(path)
    save_file({**state, "extra": torch.zeros(1)}, path)
    with pytest.raises(InputError, match="does not fit the network"):
        lw.load(copy)
    name = next(iter(state))
    save_file({k: v for k, v in state.items() if k != name}, path)
    with pytest.raises(InputError, match=f"does not fit .*{name}"):
        lw.load(copy)


def test_plain_is_what_json_knows():
    value = {1: np.float32(0.5), "a": (np.arange(2), np.inf), "b": [np.nan, None, "x", True]}
    expected = {"1": 0.5, "a": [[0, 1], None], "b": [None, None, "x", True]}
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


# -- damage --------------------------------------------------------------------------------------


def test_a_flipped_bit_of_the_weights_is_found(copy):
    path = copy / "weights.safetensors"
    whole = path.read_bytes()
    for place in range(len(whole) - 1, len(whole) - 2000, -37):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1  # the least bit of a number: finite still, and of the right shape
        path.write_bytes(bytes(spoilt))
        with pytest.raises(InputError, match="damaged or changed"):
            lw.load(copy)
    path.write_bytes(whole)
    lw.load(copy)


def test_a_file_of_tensors_that_was_not_saved_is_refused(copy):
    save_file({"labels": torch.zeros(3, dtype=torch.int64)}, copy / "fitted.safetensors")
    with pytest.raises(InputError, match=r"fitted\.safetensors is not the file that was saved"):
        lw.load(copy)


# -- everything learned --------------------------------------------------------------------------


def test_everything_learned_survives(tmp_path):
    X, _ = blobs()
    clf = fit_blobs()
    posterior = clf.predict_proba(X)
    clf.result_ = clf.result_.with_(
        posterior=posterior,
        labels=posterior.argmax(axis=1),
        marginal_transition=lw.noise.symmetric(3, 0.25),
        calibration_temperature=1.5,
        warnings=["a sentence."],
    )
    clf.save(tmp_path / "model")
    back = lw.load(tmp_path / "model")
    assert back.result_.to_dict() == clf.result_.to_dict()
    for name, array in clf.result_.arrays().items():
        np.testing.assert_array_equal(back.result_.arrays()[name], array)
    assert back.calibration_temperature_ == 1.5
    np.testing.assert_array_equal(back.labels_, clf.predict(X))
    np.testing.assert_array_equal(back.posterior_, posterior)


def test_labels_are_named_and_may_be_unknown():
    clf = fit_blobs()
    X, y = blobs()
    assert clf.labels_ is None
    assert clf.posterior_ is None
    clf.result_ = clf.result_.with_(posterior=clf.predict_proba(X))
    clf.name_classes(X, np.array(["oak", "elm", "yew"])[y])
    np.testing.assert_array_equal(clf.labels_, clf.predict(X))
    with pytest.raises(AttributeError, match="no attribute 'telepathy_'"):
        _ = clf.telepathy_
