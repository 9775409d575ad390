"""Encoders: one protocol, the same features again, nothing opened that nobody asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from encoder_cases import make_texts, write_photographs, write_program
from likewise.errors import InputError
from likewise.items.encoders import Encoder
from likewise.items.encoders.features import FeatureCache, encode_items
from likewise.items.encoders.patches import PatchFeatures
from likewise.items.encoders.programs import ProgramEncoder
from likewise.items.encoders.step import Embed
from likewise.items.encoders.stored import load_encoder, open_encoder, save_encoder
from likewise.items.encoders.tfidf import TfidfSvd
from likewise.items.raw import Photographs, Texts, open_raw

TEXTS = make_texts(60, np.random.default_rng(0))[0]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photographs(tmp_path: Path) -> Photographs:
    write_photographs(tmp_path / "photos", 24)
    raw = open_raw(tmp_path / "photos")
    assert isinstance(raw, Photographs)
    return raw


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> PatchFeatures:
    """Learned from the same photographs."""
    folder = tmp_path_factory.mktemp("patches")
    write_photographs(folder / "photos", 24)
    raw = open_raw(folder / "photos")
    assert isinstance(raw, Photographs)
    return PatchFeatures.fit(raw)


class Counting:
    """An encoder of one's own, which notes what it is asked for."""

    name, digest = "counting", "c" * 64

    def __init__(self, dies_after: int = 10**9) -> None:
        self.seen: list[str] = []
        self.dies_after = dies_after

    def encode(self, batch: object) -> np.ndarray:
        if len(self.seen) >= self.dies_after:
            raise KeyboardInterrupt
        self.seen += batch
        return np.array([[len(text), text.count("a")] for text in batch], np.float32)


def again(encoder: Encoder, folder: Path) -> Encoder:
    save_encoder(encoder, folder)
    return load_encoder(folder)[0]


def test_texts_are_encoded_the_same_after_saving(tmp_path: Path) -> None:
    words = TfidfSvd.fit(TEXTS)
    assert isinstance(words, Encoder)
    features = words.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    read = again(words, tmp_path / "encoder")
    assert read.digest == words.digest
    np.testing.assert_array_equal(read.encode(TEXTS), features)
    np.testing.assert_array_equal(
        read.encode(["none of these zzz"]), words.encode(["none of these zzz"])
    )
    assert not list(tmp_path.rglob("*.pkl"))


def test_texts_of_one_topic_lie_closer_than_others() -> None:
    texts, classes = make_texts(200, np.random.default_rng(1))
    features = TfidfSvd.fit(texts).encode(texts)
    alike = features @ features.T
    same = classes[:, None] == classes
    assert alike[same].mean() > 2 * alike[~same].mean()


@pytest.mark.parametrize("what", ["vocabulary", "idf", "cut"])
def test_a_damaged_text_encoder_is_refused(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "encoder"
    save_encoder(TfidfSvd.fit(TEXTS), folder)
    if what == "cut":
        data = (folder / "encoder.safetensors").read_bytes()
        (folder / "encoder.safetensors").write_bytes(data[: len(data) // 2])
    else:
        found = json.loads((folder / "vocabulary.json").read_text())
        if what == "vocabulary":
            found["words"].pop()
        else:
            found["words"][0] = found["words"][1]
        (folder / "vocabulary.json").write_text(json.dumps(found))
    with pytest.raises(InputError):
        load_encoder(folder)


def test_photographs_are_encoded_the_same_after_saving(
    tmp_path: Path, photographs: Photographs, patches: PatchFeatures
) -> None:
    features = encode_items(photographs, patches, cached=False)
    assert features.shape == (24, 20)
    read = again(patches, tmp_path / "encoder")
    np.testing.assert_array_equal(encode_items(photographs, read, cached=False), features)


def test_patches_see_no_side(patches: PatchFeatures) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)
    image = Image.fromarray(pixels)
    mirrored = Image.fromarray(np.ascontiguousarray(pixels[:, ::-1]))
    left, right = pixels.copy(), pixels.copy()
    left[:, :16], right[:, 16:] = 0, 0
    one, other = patches.encode([image]), patches.encode([mirrored])
    np.testing.assert_allclose(one, other, atol=1e-4)
    halves = patches.encode([Image.fromarray(left), Image.fromarray(right)])
    assert np.abs(halves - one).max() > 0.05


def test_a_saved_program_is_its_own_copy(tmp_path: Path, photographs: Photographs) -> None:
    pytest.importorskip("onnxruntime")
    path = write_program(tmp_path / "thumb.onnx")
    encoder = open_encoder(str(path))
    features = encode_items(photographs, encoder, cached=False)
    save_encoder(encoder, tmp_path / "encoder")
    path.unlink()
    read, _ = load_encoder(tmp_path / "encoder")
    np.testing.assert_array_equal(encode_items(photographs, read, cached=False), features)
    data = bytearray((tmp_path / "encoder" / "encoder.onnx").read_bytes())
    data[-1] ^= 1
    (tmp_path / "encoder" / "encoder.onnx").write_bytes(data)
    with pytest.raises(InputError, match="SHA-256"):
        load_encoder(tmp_path / "encoder")


def test_pixels_are_scaled_as_asked_and_by_default_as_the_axes_say(
    tmp_path: Path, photographs: Photographs
) -> None:
    first = ProgramEncoder.open(write_program(tmp_path / "first.pt2"))
    last = ProgramEncoder.open(write_program(tmp_path / "last.pt2", channels_last=True))
    assert (first.pixels, last.pixels) == ("imagenet", "bytes")
    unit = ProgramEncoder.open(tmp_path / "first.pt2", "unit")
    assert unit.digest != first.digest
    image = photographs.batch([0])[0]
    takes = unit.program.takes
    assert 0 <= unit._pixels(image, takes).min() <= unit._pixels(image, takes).max() <= 1
    with pytest.raises(InputError, match="pixels must be one of"):
        ProgramEncoder.open(tmp_path / "first.pt2", "sepia")


def test_a_torch_program_runs_only_where_a_person_has_named_it(
    tmp_path: Path, photographs: Photographs, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = open_encoder(str(write_program(tmp_path / "thumb.pt2")))
    features = encode_items(photographs, encoder, cached=False)
    save_encoder(encoder, tmp_path / "encoder")
    read, _ = load_encoder(tmp_path / "encoder")
    np.testing.assert_array_equal(encode_items(photographs, read, cached=False), features)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "another machine"))
    monkeypatch.setattr("likewise.items.encoders.trust._named", set())
    read, _ = load_encoder(tmp_path / "encoder")
    with pytest.raises(InputError, match="could run code; if you trust"):
        encode_items(photographs, read, cached=False)
    named, _ = load_encoder(tmp_path / "encoder", given=str(tmp_path / "encoder" / "encoder.pt2"))
    np.testing.assert_array_equal(encode_items(photographs, named, cached=False), features)


def test_another_encoder_than_that_of_the_fit_is_refused(tmp_path: Path) -> None:
    save_encoder(open_encoder(str(write_program(tmp_path / "thumb.pt2"))), tmp_path / "encoder")
    other = write_program(tmp_path / "other.pt2", side=20)
    with pytest.raises(InputError, match="is not the encoder that the model was fitted with"):
        load_encoder(tmp_path / "encoder", given=str(other))


def test_the_wrong_kind_of_item_is_refused(tmp_path: Path, photographs: Photographs) -> None:
    with pytest.raises(InputError, match="is for texts"):
        encode_items(photographs, TfidfSvd.fit(TEXTS), cached=False)
    program = open_encoder(str(write_program(tmp_path / "thumb.pt2")))
    with pytest.raises(InputError, match="is for photographs"):
        encode_items(Texts(TEXTS, None), program, cached=False)


def test_a_file_that_is_no_encoder_is_refused(tmp_path: Path) -> None:
    for name in ("bad.onnx", "bad.pt2"):
        (tmp_path / name).write_bytes(b"not a model")
        with pytest.raises(InputError, match=r"bad\.(onnx|pt2)"):
            open_encoder(str(tmp_path / name))


def test_what_was_encoded_is_not_encoded_again() -> None:
    raw, encoder = Texts(TEXTS, None), Counting()
    features = encode_items(raw, encoder)
    assert len(encoder.seen) == len(set(TEXTS))
    more = Counting()
    np.testing.assert_array_equal(
        encode_items(Texts([*TEXTS, "quite new"], None), more)[:-1], features
    )
    assert more.seen == ["quite new"]


def test_a_killed_encoding_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.items.encoders.features.WRITE_SECONDS", 0.0)
    monkeypatch.setattr("likewise.items.encoders.features.BATCH", 8)
    raw = Texts([f"{k} banana" for k in range(60)], None)
    with pytest.raises(KeyboardInterrupt):
        encode_items(raw, Counting(dies_after=24))
    second = Counting()
    features = encode_items(raw, second)
    assert second.seen == raw.texts[24:]
    np.testing.assert_array_equal(features, encode_items(raw, Counting(), cached=False))


def test_a_damaged_cache_is_computed_anew(tmp_path: Path) -> None:
    raw = Texts(TEXTS, None)
    features = encode_items(raw, Counting())
    (block,) = (tmp_path / "cache").rglob("*.safetensors")
    block.write_bytes(b"damaged")
    np.testing.assert_array_equal(encode_items(raw, Counting()), features)


def test_a_cache_that_cannot_be_written_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    assert len(encode_items(Texts(TEXTS, None), Counting())) == len(TEXTS)
    assert b"" not in FeatureCache("x" * 64)


@pytest.mark.parametrize("bad", [np.zeros(3), np.full((3, 2), np.nan), np.array([["a"]] * 3)])
def test_an_encoder_that_gives_no_rows_of_numbers_is_refused(bad: np.ndarray) -> None:
    class Bad(Counting):
        def encode(self, batch: object) -> np.ndarray:
            return bad

    with pytest.raises(InputError):
        encode_items(Texts(["a", "b", "c"], None), Bad())


def test_a_step_of_a_pipeline(tmp_path: Path, photographs: Photographs) -> None:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = make_pipeline(Embed(), StandardScaler())
    assert steps.fit_transform(TEXTS).shape[0] == len(TEXTS)
    assert clone(steps).fit(TEXTS).transform(["soup and dough"]).shape == (
        1, steps.transform(TEXTS).shape[1],
    )  # fmt: skip
    paths = [photographs.root / name for name in photographs.names]
    program = str(write_program(tmp_path / "thumb.pt2"))
    assert Embed(program).fit_transform(paths).shape == (24, 12)
    assert Embed(Counting()).fit_transform([str(paths[0])])[0, 0] == len(str(paths[0]))


def test_folders_and_tables_of_texts(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for k in range(3):
        (tmp_path / "notes" / f"n{k}.txt").write_text(f"text {k}", encoding="utf-8")
    raw = open_raw(tmp_path / "notes")
    assert isinstance(raw, Texts)
    assert raw.texts == ["text 0", "text 1", "text 2"]
    assert raw.ids is not None
    assert raw.ids.tolist() == ["n0.txt", "n1.txt", "n2.txt"]
    (tmp_path / "t.csv").write_text("id,body,n\na,hello,1\nb,http://x/y.jpg,2\n")
    table = open_raw(tmp_path / "t.csv", text="body")
    assert isinstance(table, Texts)
    assert table.texts == ["hello", "http://x/y.jpg"]
    assert open_raw(tmp_path / "t.csv") is None
    with pytest.raises(InputError, match="has no column words; the columns there are body, n"):
        open_raw(tmp_path / "t.csv", text="words")
    (tmp_path / "notes" / "n9.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        open_raw(tmp_path / "notes")
