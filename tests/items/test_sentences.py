"""Models by name: through sentence-transformers, of random weights, without a network."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.io.hub import HubModel, locate
from likewise.items.encoders.sentences import SentenceEncoder, _only_text
from likewise.items.encoders.stored import load_encoder, save_encoder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "soup", "goal", "moon", "rose", "the", "a", "##s"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny text model of random weights, in a folder."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(WORDS), intermediate_size=16, **sizes)
    BertModel(config).save_pretrained(folder / "bert", safe_serialization=True)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"))
    SentenceTransformer(modules=[transformer, Pooling(8)], device="cpu").save(str(folder / "tiny"))
    return folder / "tiny"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub's cache without a network behind it."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    for proxy in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    return tmp_path / "hf" / "hub"


def test_texts_are_encoded_the_same_after_saving(model: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder.open(str(model))
    texts = ["the soup", "a goal", "the moon moon", "http://127.0.0.1:1/x.jpg"]
    features = encoder.encode(texts)
    assert features.shape == (4, 8)
    save_encoder(encoder, tmp_path / "encoder", text="body")
    read, column = load_encoder(tmp_path / "encoder")
    assert column == "body"
    np.testing.assert_array_equal(read.encode(texts), features)
    weights = model / "model.safetensors"
    kept = weights.read_bytes()
    try:
        weights.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        with pytest.raises(InputError, match="its files have changed"):
            load_encoder(tmp_path / "encoder")
    finally:
        weights.write_bytes(kept)


def test_a_model_of_the_hub_is_found_in_its_cache_with_its_revision(
    model: Path, hub: Path, tmp_path: Path
) -> None:
    home = hub / "models--sentence-transformers--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    (home / "snapshots").mkdir()
    (home / "snapshots" / COMMIT).symlink_to(model, target_is_directory=True)
    assert locate("tiny") == HubModel("sentence-transformers/tiny")
    encoder = SentenceEncoder.open("tiny")
    assert (encoder.name, encoder.revision) == ("sentence-transformers/tiny", COMMIT)
    save_encoder(encoder, tmp_path / "encoder")
    about = json.loads((tmp_path / "encoder" / "encoder.json").read_text())
    assert about["revision"] == COMMIT
    assert load_encoder(tmp_path / "encoder")[0].digest == encoder.digest
    (home / "refs" / "main").write_text("f" * 40)  # the hub has a newer one: ours stays
    assert load_encoder(tmp_path / "encoder")[0].digest == encoder.digest


def test_on_another_machine_a_folder_is_asked_for(model: Path, hub: Path, tmp_path: Path) -> None:
    save_encoder(SentenceEncoder.open(str(model)), tmp_path / "encoder")
    path = tmp_path / "encoder" / "encoder.json"
    path.write_text(path.read_text().replace(str(model), "/nowhere/tiny"))
    with pytest.raises(InputError, match="--embed FOLDER says where it is"):
        load_encoder(tmp_path / "encoder")
    assert load_encoder(tmp_path / "encoder", given=str(model))[0].encode(["a"]).shape == (1, 8)


def test_code_and_pickles_of_a_model_are_never_loaded(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(InputError, match="no weights as safetensors"):
        SentenceEncoder.open(str(tmp_path / "m"))
    (tmp_path / "m" / "model.safetensors").write_bytes(b"")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Model"}]
    (tmp_path / "m" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "m" / "evil.py").write_text("raise SystemExit('code was run')")
    with pytest.raises(InputError, match=r"needs code of its own \(evil.Model\)"):
        SentenceEncoder.open(str(tmp_path / "m"))


def test_photographs_are_refused_by_a_model_of_texts(model: Path) -> None:
    from PIL import Image

    with pytest.raises(InputError, match="cannot take photographs"):
        SentenceEncoder.open(str(model)).encode([Image.new("RGB", (8, 8))])


@pytest.mark.parametrize(
    "text",
    [
        "http://x/y.jpg",
        "https://youtu.be/z",
        "data:image/png;base64,AA",
        "file.png",
        "A.MP3",
        "b.wav",
    ],
)
def test_no_text_is_an_address_or_a_file_to_the_library(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modality = pytest.importorskip("sentence_transformers.base.modality")
    monkeypatch.chdir(tmp_path)
    (tmp_path / text.rpartition("/")[2]).write_bytes(b"")
    assert modality.infer_modality(text) != "text"
    assert modality.infer_modality(_only_text(text)) == "text"
    assert _only_text("plain words, see http://x/y.jpg there") == (
        "plain words, see http://x/y.jpg there"
    )


def test_a_name_that_the_hub_does_not_know(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_error(404 if "nothing" in self.path else 200)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: True)
    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(InputError, match=r"there is no model owner/nothing at 127\.0\.0\.1"):
            locate("owner/nothing")
        assert locate("owner/model") == HubModel("owner/model")
        server.shutdown()
    assert asked == ["/api/models/owner/nothing", "/api/models/owner/model"]


def test_offline_is_said_at_once(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: True)
    with pytest.raises(InputError, match=r"127\.0\.0\.1 cannot be reached"):
        locate("owner/nothing")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="HF_HUB_OFFLINE forbids"):
        locate("owner/nothing")
