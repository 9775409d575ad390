"""Run folders: written whole or not at all, read back as they were, of bounded size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from likewise.errors import InputError
from likewise.io.provenance import input_record
from likewise.runs import Run, model_folder, report_data, write_run
from likewise.runs.files import read_json

N, C = 48, 3
Y = np.arange(N) % C


def features() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    noise = np.random.default_rng(0).normal(size=(N, C))
    return (np.eye(C)[Y] * 5 + noise).astype(np.float32)


def fitted(items: object, pairs: lw.Pairs, **options: object) -> lw.SimilarityClassifier:
    recipe = {"epochs": 60, "teachers": 0}  # one network: held-out judgements stay unseen
    usual = {"method": "joint", "recipe": recipe, "random_state": 0, "verbose": False}
    return lw.SimilarityClassifier(C, **{**usual, **options}).fit(items, pairs)


@pytest.fixture(scope="module")
def classifier() -> lw.SimilarityClassifier:
    return fitted(features(), lw.Pairs.from_labels(Y))


@pytest.fixture(scope="module")
def run(classifier: lw.SimilarityClassifier, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(
        tmp_path_factory.mktemp("runs") / "first",
        classifier,
        features(),
        lw.Pairs.from_labels(Y),
        config={"command": "test", "seed": 0},
        ids=[f"pic{k}" for k in range(N)],
        truth=np.array(["a", "b", "c"])[Y],
        metrics={"seconds": {"fit": 1.5}},
    )


def test_what_was_written_is_read_back(run: Run, classifier: lw.SimilarityClassifier) -> None:
    again = Run.open(run.folder)
    assert again.config["command"] == "test"
    assert set(again.config["versions"]) >= {"likewise", "python", "torch", "numpy"}
    assert again.metrics["accuracy"] == 1.0
    assert again.metrics["seconds"] == {"fit": 1.5}
    assert sum(again.metrics["sizes"]) == N
    assert again.metrics["epochs"] == 60
    assert len(again.history) == 60
    assert again.history[3]["epoch"] == 3
    assert isinstance(again.history[3]["loss"], float)
    posterior = classifier.posterior_  # what is known of judged items, not of items alone
    if posterior is None:
        posterior = classifier.predict_proba(features())
    np.testing.assert_allclose(again.posterior.astype(float), posterior, atol=1e-3)
    assert again.map.shape == (N, 2)
    assert again.ids.tolist() == [f"pic{k}" for k in range(N)]
    assert again.truth is not None
    assert again.truth[:3].tolist() == ["a", "b", "c"]
    assert again.thumbnails is None
    assert again.annotators is None
    assert again.channel is None
    assert again.judgements["judgements"] == N * (N - 1) // 2
    np.testing.assert_array_equal(
        lw.load(again.model).predict(features()), classifier.predict(features())
    )


def test_suspects_carry_the_items_names(run: Run) -> None:
    columns = run.suspects
    assert columns["left_id"] == [f"pic{k}" for k in columns["left"]]
    assert len(columns["judgement"]) == report_data.MAX_SUSPECTS


def test_a_failed_write_leaves_nothing(
    classifier: lw.SimilarityClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("likewise.serialization.tensors.save_file", full)
    with pytest.raises(OSError, match="No space"):
        write_run(tmp_path / "r", classifier, features(), lw.Pairs.from_labels(Y), config={})
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_ids_and_truth_must_fit(
    classifier: lw.SimilarityClassifier, tmp_path: Path
) -> None:
    pairs = lw.Pairs.from_labels(Y)
    with pytest.raises(InputError, match="48 items but 3 ids"):
        write_run(tmp_path / "r", classifier, features(), pairs, config={}, ids=["a", "b", "c"])
    with pytest.raises(InputError, match="48 items but 2 true classes"):
        write_run(tmp_path / "r", classifier, features(), pairs, config={}, truth=[0, 1])


def test_pictures_have_small_thumbnails(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = (np.eye(C)[Y][:, None, None, :] * 200 + rng.integers(50, size=(N, 100, 60, C))).astype(
        np.uint8
    )
    pairs = lw.Pairs.from_labels(Y, per_item=20, random_state=0)
    model = fitted(images, pairs, method="mcl", network="mlp", recipe={"epochs": 1})
    run = write_run(tmp_path / "r", model, images, pairs, config={})
    assert run.thumbnails is not None
    k = len(run.thumbnail_of)
    assert run.thumbnails.shape == (k, 34, 20, 3)
    np.testing.assert_array_equal(run.thumbnails[0], images[run.thumbnail_of[0]][::3, ::3])
    assert set(run.suspects["left"]) <= set(run.thumbnail_of.tolist())


def test_float_images_are_stretched_to_bytes() -> None:
    images = np.linspace(-1, 3, 2 * 4 * 4).reshape(2, 4, 4).astype(np.float32)
    small = report_data.thumbnails(images, np.array([0, 1]))
    assert small is not None
    assert (small.min(), small.max(), small.dtype) == (0, 255, np.uint8)


def test_of_many_items_and_judgements_a_part_is_kept(
    classifier: lw.SimilarityClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_data, "MAX_ITEMS", 10)
    monkeypatch.setattr(report_data, "MAX_JUDGEMENTS", 100)
    pairs = lw.Pairs.from_labels(Y)
    kept = report_data.collect(classifier, features(), pairs, np.random.default_rng(0))
    assert len(kept.kept) == len(kept.posterior) == len(kept.map) == 10
    assert (np.diff(kept.kept) > 0).all()
    assert kept.sizes.sum() == N
    assert len(kept.suspects["left"]) == 100
    complete = report_data.sample(pairs, np.random.default_rng(0))
    assert len(complete) == 100
    np.testing.assert_array_equal(complete.same, Y[complete.left] == Y[complete.right])
    listed = report_data.sample(pairs.explicit(), np.random.default_rng(0))
    assert len(listed) == 100


def test_calibration_counts_what_was_said(classifier: lw.SimilarityClassifier) -> None:
    items = np.tile(features(), (4, 1))
    pairs = lw.Pairs.from_labels(np.tile(Y, 4))
    g = classifier.predict_proba(items)
    found = report_data.calibration(classifier, items, g, pairs, np.random.default_rng(0))
    assert found["held_out"]
    bins = found["bins"]
    assert sum(bins["judgements"]) == found["judgements"] == 19 * 18 // 2
    for lower, upper, predicted in zip(bins["lower"], bins["upper"], bins["predicted"]):
        assert lower - 1e-9 <= predicted <= upper + 1e-9
    assert all(0 <= share <= 1 for share in bins["observed"])
    # Clear groups and no noise: "same" is said where it is expected, and nowhere else.
    assert bins["observed"][-1] == 1.0
    assert bins["observed"][0] == 0.0


def test_calibration_by_pieces_is_that_of_all_at_once(
    classifier: lw.SimilarityClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, pairs = features(), lw.Pairs.from_labels(Y, per_item=6, random_state=0)
    g = classifier.predict_proba(items)
    at_once = report_data.calibration(classifier, items, g, pairs, np.random.default_rng(0))
    monkeypatch.setattr("likewise.pairs.edges.CHUNK", 7)
    monkeypatch.setattr(report_data, "AT_ONCE", 10)
    found = report_data.calibration(classifier, items, g, pairs, np.random.default_rng(0))
    assert found["bins"]["judgements"] == at_once["bins"]["judgements"]
    for column in ("predicted", "observed"):
        assert found["bins"][column] == pytest.approx(at_once["bins"][column], abs=1e-12)


def test_calibration_says_when_held_out_judgements_are_too_few(
    classifier: lw.SimilarityClassifier,
) -> None:
    items, pairs = features(), lw.Pairs.from_labels(Y, per_item=6, random_state=0)
    g = classifier.predict_proba(items)
    found = report_data.calibration(classifier, items, g, pairs, np.random.default_rng(0))
    assert not found["held_out"]
    assert found["judgements"] == len(pairs)


def test_said_same_goes_through_transition_and_channel(
    classifier: lw.SimilarityClassifier,
) -> None:
    from copy import copy

    from likewise.noise.channels import RateChannel

    noisy = copy(classifier)
    noisy.result_ = noisy.result_.with_(transition=lw.noise.symmetric(C, 0.3))
    g = np.eye(C, dtype=np.float32)
    pairs = lw.Pairs([0, 0], [1, 2], [1, 0])
    t = noisy.transition_
    expected = t[0] @ t[1]
    assert report_data.said_same(noisy, g, pairs) == pytest.approx([expected, expected])
    noisy.result_ = noisy.result_.with_(channel=RateChannel(0.9, 0.2))
    assert report_data.said_same(noisy, g, pairs)[0] == pytest.approx(0.2 + 0.7 * expected)


def test_a_run_or_its_model_may_be_named(run: Run) -> None:
    assert model_folder(run.folder) == run.model
    assert model_folder(run.model) == run.model


def test_inputs_are_recorded_by_digest(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x")
    first = input_record(file)
    assert first["bytes"] == 1
    file.write_text("y")
    assert input_record(file)["sha256"] != first["sha256"]
    folder = input_record(tmp_path)
    assert folder["files"] == 1
    (tmp_path / "b.csv").write_text("")
    assert input_record(tmp_path)["listing_sha256"] != folder["listing_sha256"]
    with pytest.raises(InputError, match="no file or folder"):
        input_record(tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "not valid JSON"), ("[]", "no JSON object"), ("\xff", "not valid JSON")],
)
def test_damaged_json_is_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "metrics.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=words):
        read_json(path)


def test_a_run_that_lacks_a_part_says_which(run: Run, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run.folder, copy)
    (copy / "history.csv").unlink()
    (copy / "items.npz").write_bytes(b"PK\x03\x04 no")
    report = json.loads((copy / "report.json").read_text())
    del report["suspects"]
    (copy / "report.json").write_text(json.dumps(report))
    opened = Run.open(copy)
    with pytest.raises(InputError, match=r"history\.csv"):
        _ = opened.history
    with pytest.raises(InputError, match="damaged or cut short"):
        _ = opened.posterior
    with pytest.raises(InputError, match="suspects"):
        _ = opened.suspects
    np.savez(copy / "items.npz", kept=np.arange(3))
    with pytest.raises(InputError, match="lacks ids, map"):
        _ = Run.open(copy).map


def test_calibration_is_called_held_out_only_where_the_fit_says_so(
    classifier: lw.SimilarityClassifier,
) -> None:
    from copy import copy

    fitted = copy(classifier)
    items, pairs = np.tile(features(), (4, 1)), lw.Pairs.from_labels(np.tile(Y, 4))
    posterior = fitted.predict_proba(items)
    for seen, expected in ((False, True), (True, False)):
        fitted.result_ = classifier.result_.with_(judgements_held_out=not seen)
        found = report_data.calibration(fitted, items, posterior, pairs, np.random.default_rng(0))
        assert found["held_out"] is expected
        assert (found["judgements"] == len(pairs)) is not expected
