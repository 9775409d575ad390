"""Exports say what the model says, take any number of raw items, and are written whole or not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise as lw
from likewise import export
from likewise.errors import InputError, LikewiseError
from likewise.nn.networks import ResNet

QUICK = {"epochs": 2}


def fitted(
    shape: tuple[int, ...], network: str | torch.nn.Module | None = None
) -> tuple[lw.SimilarityClassifier, np.ndarray]:
    rng = np.random.default_rng(0)
    items = (rng.random((60, *shape)) * 255).astype(np.uint8 if len(shape) > 1 else np.float32)
    classes = np.arange(60) % 3
    items[classes == 1] //= 2 if items.dtype == np.uint8 else 1
    classifier = lw.SimilarityClassifier(
        3, method="mcl", network=network, recipe=QUICK, random_state=0, verbose=False
    )
    return classifier.fit(items, lw.Pairs.from_labels(classes)), items


@pytest.mark.parametrize(
    ("shape", "network"),
    [
        ((6,), "mlp"),
        pytest.param((16, 16), "lenet", marks=pytest.mark.slow),
        ((8, 8, 3), ResNet(3, 3, (8,), (1,))),
        pytest.param((8, 8, 3), "resnet32", marks=pytest.mark.slow),
    ],
)
def test_onnx_agrees_with_the_classifier_on_raw_items(
    tmp_path: Path, shape: tuple[int, ...], network: str | torch.nn.Module
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    classifier, items = fitted(shape, network)
    path = tmp_path / "model.onnx"
    assert export.export_onnx(classifier, path) <= 1e-4
    session = onnxruntime.InferenceSession(path.read_bytes())
    for n in (1, 60):
        found = session.run(None, {"items": items[:n].astype(np.float32)})[0]
        np.testing.assert_allclose(found, classifier.predict_proba(items[:n]), atol=1e-4)
    names = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert names == [0, 1, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_export_takes_model_and_run_folders(tmp_path: Path) -> None:
    classifier, items = fitted((6,))
    classifier.save(tmp_path / "run" / "model")
    for source in (tmp_path / "run" / "model", str(tmp_path / "run")):
        export.export_torch(source, tmp_path / "model.pt2")
    program = torch.export.load(tmp_path / "model.pt2").module()
    found = program(torch.from_numpy(items[:7])).numpy()
    np.testing.assert_allclose(found, classifier.predict_proba(items[:7]), atol=1e-6)


def test_a_disagreeing_export_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    classifier, _ = fitted((6,))
    real = export._run_onnx
    monkeypatch.setattr(export, "_run_onnx", lambda path, items: real(path, items) + 1e-3)
    with pytest.raises(LikewiseError, match="differs from PyTorch"):
        export.export_onnx(classifier, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_tables_hold_predictions_posterior_and_embedding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(export, "ROWS_AT_A_TIME", 25)  # several batches, one of them short
    classifier, items = fitted((6,))
    classifier.name_classes(items, np.array(["ant", "bee", "cat"])[np.arange(60) % 3])
    ids = np.array([f"item {k}" for k in range(60)])
    folder = export.export_tables(classifier, items, tmp_path / "tables", ids)
    predictions = parquet.read_table(folder / "predictions.parquet").to_pydict()
    assert predictions["item"] == ids.tolist()
    assert predictions["class"] == classifier.predict(items).tolist()
    posterior = parquet.read_table(folder / "posterior.parquet")
    assert posterior.column_names[1:] == [f"p({name})" for name in classifier.classes_]
    p = np.stack([posterior[name].to_numpy() for name in posterior.column_names[1:]], axis=1)
    np.testing.assert_allclose(p, classifier.predict_proba(items), atol=1e-6)
    np.testing.assert_allclose(predictions["probability"], p.max(axis=1), atol=1e-6)
    embedding = parquet.read_table(folder / "embedding.parquet")
    e = np.stack([embedding[name].to_numpy() for name in embedding.column_names[1:]], axis=1)
    np.testing.assert_allclose(e, classifier.transform(items), atol=1e-5)


def test_mistakes_get_one_sentence(tmp_path: Path) -> None:
    classifier, items = fitted((6,))
    with pytest.raises(InputError, match=r"60 items but 3 ids"):
        export.export_tables(classifier, items, tmp_path / "tables", ["a", "b", "c"])
    with pytest.raises(InputError, match=r"6 features"):
        export.export_tables(classifier, items[:, :4], tmp_path / "tables")
    with pytest.raises(InputError, match=r"\.pt2"):
        export.export_torch(classifier, tmp_path / "model.onnx")
    with pytest.raises(InputError, match="no model folder"):
        export.export_onnx(tmp_path / "nowhere", tmp_path / "model.onnx")
    assert not (tmp_path / "tables").exists()


def test_a_network_that_cannot_be_traced_is_said_to_be_one(tmp_path: Path) -> None:
    class Branching(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) if x.sum() > 0 else super().forward(-x)

    _, items = fitted((6,))
    network = Branching(6, 3)
    pairs = lw.Pairs.from_labels(np.arange(60) % 3)
    own = lw.SimilarityClassifier(
        3, method="mcl", network=network, recipe=QUICK, random_state=0, verbose=False
    ).fit(items, pairs)
    with pytest.raises(InputError, match=r"cannot be exported by torch\.export"):
        export.export_torch(own, tmp_path / "model.pt2")
    assert list(tmp_path.iterdir()) == []


def test_two_classes_of_one_name_have_a_column_each():
    from likewise.export import probability_columns

    found = probability_columns(np.array(["oak", "elm", "oak", "oak"]))
    assert found == ["p(oak)", "p(elm)", "p(oak, 2)", "p(oak, 3)"]
