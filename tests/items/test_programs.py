"""Programs as encoders: what they take, and how pixels are prepared for them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.errors import InputError
from likewise.items.encoders.programs import PIXELS, Input, ProgramEncoder, _input
from likewise.items.encoders.protocol import checked_features, need_images, need_texts
from likewise.items.encoders.stored import describe
from likewise.items.encoders.trust import cache_folder, is_trusted, trust


@pytest.mark.parametrize(
    ("kind", "shape", "takes"),
    [
        ("tensor(string)", ["n"], Input("texts")),
        ("tensor(string)", ["n", 1], Input("texts")),
        ("tensor(float)", ["n", 3, 16, 20], Input("float", True, 16, 20)),
        ("tensor(float)", ["n", 16, 20, 3], Input("float", False, 16, 20)),
        ("tensor(uint8)", ["n", "h", "w", 3], Input("bytes", False, None, None)),
        ("tensor(uint8)", [None, 1, 8, "w"], Input("bytes", True, 8, None, True)),
        ("tensor(float)", ["n", 8, 9, 1], Input("float", False, 8, 9, True)),
        ("tensor(float)", ["n", "c", "h", "w"], Input("float", True, None, None)),
        ("tensor(float)", ["n", 3, 16, 3], Input("float", True, 16, 3)),
    ],
)
def test_what_a_program_takes(kind: str, shape: list[object], takes: Input) -> None:
    assert _input("x.onnx", kind, shape) == takes


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("tensor(string)", [1, 2, 3]), ("tensor(int64)", [1, 3, 8, 8]), ("tensor(float)", [1, 3, 8])],
)
def test_what_no_encoder_takes(kind: str, shape: list[object]) -> None:
    said = (
        rf"^x\.onnx takes {kind.replace('(', '.').replace(')', '.')} of {len(shape)} axes; an enc"
    )
    with pytest.raises(InputError, match=said):
        _input("x.onnx", kind, shape)


class Noting:
    """A program that gives its input back, flat."""

    def __init__(self, takes: Input) -> None:
        self.takes = takes

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        self.given = batch
        return np.array([[len(str(one))] for one in batch], np.float64)


def encoder(takes: Input, **options: object) -> ProgramEncoder:
    found = ProgramEncoder(Path("in/x.onnx"), **options)
    found.__dict__["program"] = Noting(takes)
    return found


IMAGE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (10, 14, 3), np.uint8))


@pytest.mark.parametrize("pixels", PIXELS)
def test_pixels_are_scaled_by_channel(pixels: str) -> None:
    found = encoder(Input("float", True, 10, 14), pixels=pixels)
    found.encode([IMAGE, IMAGE])
    given = found.program.given
    assert (given.shape, given.dtype) == ((2, 3, 10, 14), np.float32)
    mean, deviation = PIXELS[pixels]
    for channel in range(3):
        plain = np.asarray(IMAGE)[..., channel] / 255
        expected = (plain - mean[channel]) / deviation[channel]
        np.testing.assert_allclose(given[1, channel], expected, rtol=1e-5, atol=1e-6)


def test_where_nobody_says_pixels_are_those_of_imagenet() -> None:
    plain, named = (encoder(Input("float", True, 10, 14), pixels=p) for p in (None, "imagenet"))
    plain.encode([IMAGE])
    named.encode([IMAGE])
    assert np.array_equal(plain.program.given, named.program.given)


def test_bytes_and_grey() -> None:
    last = encoder(Input("bytes", False, 10, 14))
    last.encode([IMAGE])
    assert last.program.given.tolist() == [np.asarray(IMAGE).tolist()]
    grey = encoder(Input("float", True, 10, 14, True), pixels="imagenet")
    grey.encode([IMAGE])
    plain = np.asarray(IMAGE.convert("L")) / 255
    expected = (plain - np.mean([0.485, 0.456, 0.406])) / np.mean([0.229, 0.224, 0.225])
    assert grey.program.given.shape == (1, 1, 10, 14)
    np.testing.assert_allclose(grey.program.given[0, 0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("takes", "side", "shape"),
    [
        (Input("bytes", False), None, (224, 224)),
        (Input("bytes", False), 9, (9, 9)),
        (Input("bytes", False, 5, None), 9, (5, 9)),
        (Input("bytes", False, None, 5), 9, (9, 5)),
    ],
)
def test_sizes_that_are_left_open(takes: Input, side: int | None, shape: tuple[int, int]) -> None:
    found = encoder(takes, side=side)
    found.encode([IMAGE])
    assert found.program.given.shape == (1, *shape, 3)


def test_texts_go_in_as_they_are() -> None:
    found = encoder(Input("texts"))
    assert found.encode(["a", "bcd"]).tolist() == [[1.0], [3.0]]
    assert found.program.given.tolist() == ["a", "bcd"]
    assert found.program.given.dtype == object
    with pytest.raises(InputError, match=r"^x\.onnx is for texts, but the items are photographs"):
        found.encode([IMAGE])
    with pytest.raises(InputError, match=r"^x\.onnx is for photographs, but the items are texts"):
        encoder(Input("float")).encode([IMAGE, "a"])


def test_what_is_left_open_is_settled_by_the_file() -> None:
    for takes, pixels in (
        (Input("float", True), "imagenet"),
        (Input("float", False), "bytes"),
        (Input("bytes", True), "bytes"),
    ):
        found = encoder(takes).settled()
        assert (found.pixels, found.side) == (pixels, 224)
    kept = encoder(Input("float", True), pixels="clip", side=9).settled()
    assert (kept.pixels, kept.side, kept.name) == ("clip", 9, "x.onnx")


def test_a_kept_program(tmp_path: Path) -> None:
    source = tmp_path / "m.ONNX"
    source.write_bytes(b"model")
    sha = hashlib.sha256(b"model").hexdigest()
    found = ProgramEncoder(source, "clip", 9, sha)
    (tmp_path / "kept").mkdir()
    about = found.save(tmp_path / "kept")
    assert about == {"file": "encoder.onnx", "sha256": sha, "pixels": "clip", "side": 9}
    again = ProgramEncoder.load(tmp_path / "kept", about)
    assert again == ProgramEncoder(tmp_path / "kept" / "encoder.onnx", "clip", 9, sha)
    assert again.digest == found.digest
    assert describe(found) == {
        "name": "m.ONNX", "digest": found.digest, "pixels": "clip", "side": 9,
    }  # fmt: skip
    assert found.digest != ProgramEncoder(source, "clip", 8, sha).digest
    assert ProgramEncoder.load(tmp_path / "kept", about | {"side": 4096}).side == 4096
    for wrong in (
        {"file": "m.onnx"},
        {"pixels": "sepia"},
        {"side": 0},
        {"side": 4097},
        {"side": "9"},
    ):
        with pytest.raises(InputError, match="describes no encoder of ours; copy the run again"):
            ProgramEncoder.load(tmp_path / "kept", about | wrong)
    with pytest.raises(InputError, match=r"encoder\.pt2 is not the file that was kept"):
        ProgramEncoder.load(tmp_path / "kept", about | {"file": "encoder.pt2"})
    with pytest.raises(InputError, match=r"is not the file that was kept .*SHA-256"):
        ProgramEncoder.load(tmp_path / "kept", about | {"sha256": "0" * 64})


def test_only_named_programs_of_torch_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("likewise.items.encoders.trust._named", set())
    digest = "a" * 64
    assert not is_trusted(digest)
    trust(digest)
    assert is_trusted(digest)
    assert (tmp_path / "cache" / "trusted" / digest).read_text() == ""
    monkeypatch.setattr("likewise.items.encoders.trust._named", set())
    assert is_trusted(digest)
    assert not is_trusted("b" * 64)
    for odd in ("short", "..", "/" * 64):
        (tmp_path / "cache" / "trusted" / "short").write_text("")
        assert not is_trusted(odd)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    trust("c" * 64)
    assert is_trusted("c" * 64)


def test_where_features_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("LIKEWISE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "likewise"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "likewise"


def test_rows_of_finite_numbers() -> None:
    found = checked_features([[1, 2], [3, 4]], 2, "x")
    assert (found.tolist(), found.dtype) == ([[1, 2], [3, 4]], np.float32)
    assert checked_features(np.ones((2, 3, 4)), 2, "x").shape == (2, 12)
    for wrong in (np.ones(2), np.ones((3, 2)), np.ones((2, 2), bool), np.ones((3, 2, 2))):
        with pytest.raises(
            InputError, match=r"^x must give one row of numbers an item, .* 2 items"
        ):
            checked_features(wrong, 2, "x")
    with pytest.raises(InputError, match=r"^x gave numbers that are not finite; try another model"):
        checked_features([[np.inf]], 1, "x")
    assert need_texts(["a"], "x") == ["a"]
    assert need_images([IMAGE], "x") == [IMAGE]
