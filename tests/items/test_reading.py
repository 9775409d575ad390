"""Items of any kind as a model takes them, and encoders beside a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from encoder_cases import Heard, Lengths, make_texts, write_photographs
from likewise.errors import InputError
from likewise.io.progress import listening
from likewise.items.encoders import patches, reading
from likewise.items.encoders.patches import PatchFeatures
from likewise.items.encoders.reading import Encoding, read_like, read_to_fit
from likewise.items.encoders.stored import describe, load_encoder, open_encoder, save_encoder
from likewise.items.encoders.tfidf import TfidfSvd

TEXTS = make_texts(20, np.random.default_rng(0))[0]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


class TestReading:
    def test_numbers_stay_numbers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "x.csv").write_text("key,a\np,1\nq,2\n")
        found = read_to_fit(tmp_path / "x.csv", Encoding(), id_column="key")
        assert found.data.ids.tolist() == ["p", "q"]
        assert (found.encoder, found.raw, found.note, found.pictures) == (None, None, None, None)
        given = []
        monkeypatch.setattr(reading, "open_encoder", lambda *a: given.append(a) or Lengths())
        with pytest.raises(
            InputError, match=r"^x\.csv holds numbers already; --embed is for photo"
        ):
            read_to_fit(tmp_path / "x.csv", Encoding("m", pixels="clip"), image_size=9)
        assert given == [("m", "clip", 9)]

    def test_texts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = make_texts(20, np.random.default_rng(0))[0]
        rows = "".join(f"k{k},{text}\n" for k, text in enumerate(texts))
        (tmp_path / "x.csv").write_text(f"key,body\n{rows}")
        asked = Encoding(text="body")
        heard = Heard()
        with listening(heard):
            found = read_to_fit(tmp_path / "x.csv", asked, id_column="key", seed=4)
        expected = TfidfSvd.fit(texts, 4)
        assert found.encoder.digest == expected.digest
        assert found.data.ids.tolist()[:2] == ["k0", "k1"]
        np.testing.assert_allclose(found.data.items, expected.encode(texts), atol=1e-6)
        assert found.note.startswith(
            "texts are told apart by the words they share (TF-IDF and SVD)"
        )
        assert heard.words[0] == "finding the words that texts share"
        assert found.pictures is None
        save_encoder(found.encoder, tmp_path / "encoder", text="body")
        like = read_like(tmp_path / "encoder", tmp_path / "x.csv", id_column="key")
        assert like.items.tolist() == found.data.items.tolist()
        (tmp_path / "y.csv").write_text("words,n\nsoup,1\n")
        other = read_like(tmp_path / "encoder", tmp_path / "y.csv", text="words")
        assert other.items.tolist() == found.encoder.encode(["soup"]).tolist()
        np.save(tmp_path / "x.npy", np.zeros((2, 3)))
        assert read_like(tmp_path / "encoder", tmp_path / "x.npy") is None
        monkeypatch.setattr(reading, "open_encoder", lambda *_: Lengths())
        own = read_to_fit(tmp_path / "x.csv", Encoding("m", "body"))
        assert own.data.items[0, 0] == len(texts[0])
        assert (tmp_path / "cache" / "features" / ("d" * 32)).is_dir()
        assert own.note is None

    def test_photographs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_photographs(tmp_path / "photos", 12)
        monkeypatch.setattr(patches, "SAMPLED", 2000)
        monkeypatch.setattr(reading, "FEW_PHOTOGRAPHS", 12)
        found = read_to_fit(tmp_path / "photos", Encoding(), image_size=14, seed=2)
        assert found.encoder.digest == PatchFeatures.fit(found.raw, 14, 2).digest
        assert found.note.startswith("12 photographs are few to train a network on from scratch")
        assert found.pictures([0]).shape == (1, 48, 48, 3)
        assert not (tmp_path / "cache").exists()
        pixels = read_to_fit(tmp_path / "photos", Encoding(network=True), image_size=9)
        assert (pixels.data.items.shape, pixels.encoder) == ((12, 9, 9, 3), None)
        assert pixels.pictures is None
        monkeypatch.setattr(reading, "FEW_PHOTOGRAPHS", 11)
        assert read_to_fit(tmp_path / "photos", Encoding(), image_size=9).encoder is None

    def test_grey_images_are_a_networks_work(self, tmp_path: Path) -> None:
        for k in range(3):
            Image.new("L", (9, 9), k).save(tmp_path / f"{k}.png")
        assert read_to_fit(tmp_path, Encoding()).data.items.shape == (3, 9, 9)


class TestStored:
    def test_what_is_no_encoder_of_ours(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"^the encoder lengths is your own; encode the items"):
            save_encoder(Lengths(), tmp_path / "own")
        save_encoder(TfidfSvd.fit(TEXTS), tmp_path / "e")
        path = tmp_path / "e" / "encoder.json"
        text = path.read_text()
        for old, new in (("likewise-encoder", "other"), ('"version": 1', '"version": 2')):
            path.write_text(text.replace(old, new))
            with pytest.raises(InputError, match="holds no encoder that this Likewise knows; upgr"):
                load_encoder(tmp_path / "e")
        path.write_text(text.replace('"tfidf-svd"', '"new"'))
        with pytest.raises(InputError, match="holds an encoder of a kind 'new' that is not known"):
            load_encoder(tmp_path / "e")
        path.write_text(text.replace('"digest": "', '"digest": "0'))
        with pytest.raises(InputError, match=r"^TF-IDF and SVD is not the encoder that the model"):
            load_encoder(tmp_path / "e")

    def test_what_a_run_says_of_it(self) -> None:
        words = TfidfSvd.fit(TEXTS)
        assert describe(words) == {"name": "TF-IDF and SVD", "digest": words.digest}

    def test_pixels_are_for_programs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: True)
        with pytest.raises(InputError, match="prepares pixels by itself; leave --pixels out"):
            open_encoder(str(tmp_path), "clip")
