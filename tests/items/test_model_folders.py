"""A model's folder: what its digest sees, what is refused, what is told of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.errors import InputError
from likewise.items.encoders import stored
from likewise.items.encoders.sentences import SentenceEncoder, _only_text
from likewise.items.encoders.stored import describe, load_encoder, save_encoder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: True)
    (tmp_path / "m" / "inner").mkdir(parents=True)
    (tmp_path / "m" / "inner" / "model.safetensors").write_bytes(b"weights")
    for name in ("config.json", "vocab.txt", "spiece.model"):
        (tmp_path / "m" / name).write_text("{}")
    return tmp_path / "m"


def test_every_file_of_data_is_in_the_digest(folder: Path) -> None:
    first = SentenceEncoder.open(str(folder))
    assert (first.name, first.folder, first.revision) == (str(folder), folder, None)
    seen = {first.sha256}
    for name in ("config.json", "vocab.txt", "spiece.model", "inner/model.safetensors"):
        (folder / name).write_bytes(b"[1]")
        seen.add(SentenceEncoder.open(str(folder)).sha256)
    (folder / "new.json").write_text("{}")
    seen.add(SentenceEncoder.open(str(folder)).sha256)
    assert len(seen) == 6
    (folder / "readme.md").write_text("no data")
    assert SentenceEncoder.open(str(folder)).sha256 in seen


def test_modules_of_its_own_are_refused(folder: Path) -> None:
    def listed(content: object) -> None:
        (folder / "modules.json").write_text(json.dumps(content))

    listed([{"type": "sentence_transformers.models.Pooling"}])
    SentenceEncoder.open(str(folder))
    for content in ([{"type": "evil.Model"}], {"type": "evil.Model"}, ["evil.Model"]):
        listed(content)
        with pytest.raises(
            InputError, match=r"needs code of its own \(evil\.Model\), which is never"
        ):
            SentenceEncoder.open(str(folder))
    listed([{}])
    with pytest.raises(InputError, match=r"needs code of its own \(None\)"):
        SentenceEncoder.open(str(folder))
    (folder / "modules.json").unlink()
    (folder / "inner" / "model.safetensors").unlink()
    with pytest.raises(
        InputError, match="has no weights as safetensors, and others could run code"
    ):
        SentenceEncoder.open(str(folder))


def test_a_run_finds_its_model_again_or_says_so(folder: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder.open(str(folder))
    about = encoder.record()
    assert about == {"model": str(folder), "revision": None, "sha256": encoder.sha256}
    assert SentenceEncoder.restore(about) == encoder
    assert describe(encoder) == {
        "name": str(folder), "digest": encoder.digest, "revision": None,
    }  # fmt: skip
    for wrong in ({"model": 1}, {"revision": 1}):
        with pytest.raises(
            InputError, match=r"^the run describes no encoder of ours; copy it again"
        ):
            SentenceEncoder.restore(about | wrong)
    with pytest.raises(
        InputError, match="is not the model that the run was fitted with: its files"
    ):
        SentenceEncoder.restore(about | {"sha256": "0"})
    with pytest.raises(
        InputError, match=r"^the run needs the encoder a b: .* \(--embed FOLDER says"
    ):
        SentenceEncoder.restore(about | {"model": "a b"})
    save_encoder(encoder, tmp_path / "kept")
    assert load_encoder(tmp_path / "kept")[0] == encoder


class Model:
    """In place of sentence-transformers' own."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails

    def encode(self, inputs: list[object], *, batch_size: int, show_progress_bar: bool) -> object:
        self.given = inputs, batch_size, show_progress_bar
        if self.fails is not None:
            raise self.fails
        return np.ones((len(inputs), 2))


def test_what_the_model_is_given(folder: Path) -> None:
    encoder = SentenceEncoder.open(str(folder))
    encoder.__dict__["model"] = Model()
    assert encoder.encode(["a", "b.PNG"]).tolist() == [[1, 1], [1, 1]]
    assert encoder.model.given == (["a", " b.PNG "], 2, False)
    encoder.__dict__["model"] = Model(ValueError("no"))
    for batch, kind in ((["a"], "texts"), ([Image.new("RGB", (2, 2))], "photographs")):
        with pytest.raises(
            InputError, match=rf"cannot take {kind} \(ValueError: no\); choose a mod"
        ):
            encoder.encode(batch)
    assert _only_text("plain") == "plain"


def test_what_is_given_in_place_is_prepared_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(stored, "open_encoder", lambda *a: given.append(a))
    stored._given("m.onnx", {"pixels": "clip", "side": 9})
    stored._given("m", {"pixels": 3, "side": "9"})
    stored._given("m", {})
    assert given == [("m.onnx", "clip", 9), ("m", None, None), ("m", None, None)]
