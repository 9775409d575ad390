"""The one decoder: what fit, predict, the labelling page and the report see of an image file."""

from __future__ import annotations

import base64
import io
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.errors import InputError
from likewise.io import images
from likewise.items.files import read_items
from likewise.label.items import open_items
from likewise.label.pictures import encode_file
from likewise.report.contents import read_contents
from likewise.report.pictures import image_files, pictures_of
from report_runs import small_run

# A program of PostScript, which Ghostscript would run, in the disguise of a picture.
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n0 0 9 9 rectfill\n"


def marked(height: int = 20, width: int = 40) -> Image.Image:
    """Black, with the top left corner white."""
    array = np.zeros((height, width, 3), np.uint8)
    array[: height // 2, : width // 4] = 255
    return Image.fromarray(array)


def sideways(path: Path, orientation: int) -> Path:
    exif = Image.Exif()
    exif[0x0112] = orientation
    marked().save(path, exif=exif)
    return path


def shown_by_report(run_folder: Path, folder: Path) -> Image.Image | None:
    contents = replace(read_contents(small_run(run_folder)), thumbnails=None)
    uri = pictures_of(contents, [0], folder).get(0)
    return None if uri is None else Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tif"])
def test_photographs_are_upright_wherever_they_are_opened(tmp_path: Path, suffix: str) -> None:
    """Learned lying on their side, they would be other pictures than those that were judged."""
    folder = tmp_path / "items"
    folder.mkdir()
    for k in range(2):
        # 6: turn by a quarter clockwise, so the white corner comes to the right.
        sideways(folder / f"{k}.{suffix}", 6)
    learned = read_items(folder).items[0]
    labelled = np.asarray(Image.open(io.BytesIO(open_items(folder).picture(0).data)))
    streamed = np.asarray(images.open_image(folder / f"0.{suffix}"))
    reported = shown_by_report(tmp_path / "run", folder)
    assert reported is not None
    assert learned.shape == labelled.shape == (40, 20, 3)
    assert reported.size == (20, 40)
    for picture in (learned, labelled, streamed, np.asarray(reported)):
        assert picture[1, -2].mean() > 200
        assert picture[1, 1].mean() < 50


def test_no_format_starts_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a picture started a program")

    monkeypatch.setattr(subprocess, "Popen", refused)
    monkeypatch.setattr(subprocess, "check_call", refused)
    folder = tmp_path / "items"
    folder.mkdir()
    (folder / "0.png").write_bytes(POSTSCRIPT)
    for opener in (images.decode, images.open_image, images.open_item, encode_file):
        with pytest.raises(InputError, match="damaged, cut short or no image"):
            opener(folder / "0.png")
    assert shown_by_report(tmp_path / "run", folder) is None


def test_sixteen_bits_of_grey_are_kept(tmp_path: Path) -> None:
    """A microscope fills 12 of 16 bits: clipped to 8, nearly everything would be white."""
    levels = np.arange(64, dtype=np.uint16).reshape(8, 8) * 60
    for name in ("a.tif", "b.png"):
        Image.fromarray(levels).save(tmp_path / name)
    learned = read_items(tmp_path).items
    assert learned.dtype == np.float32
    np.testing.assert_array_equal(learned, np.stack([levels, levels]))
    assert read_items(tmp_path, size=4).items.shape == (2, 4, 4)
    shown = np.asarray(Image.open(io.BytesIO(open_items(tmp_path).picture(0).data)))
    assert len(np.unique(shown)) == 64
    assert (shown.min(), shown.max()) == (0, 255)
    wide = np.array([[0, 257], [2570, 65535]], np.uint16)
    Image.fromarray(wide).save(tmp_path / "c.png")
    assert np.asarray(images.open_image(tmp_path / "c.png"))[..., 0].tolist() == [[0, 1], [10, 255]]


def test_fractions_are_kept_and_shown_from_darkest_to_brightest(tmp_path: Path) -> None:
    fractions = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    for name in ("a.tif", "b.tif"):
        Image.fromarray(fractions).save(tmp_path / name)
    np.testing.assert_array_equal(read_items(tmp_path).items[1], fractions)
    shown = np.asarray(Image.open(io.BytesIO(open_items(tmp_path).picture(0).data)))
    assert len(np.unique(shown)) == 64
    with pytest.raises(InputError, match="beyond 16-bit grey"):
        images.open_image(tmp_path / "a.tif")
    nothing = Image.fromarray(np.full((4, 4), np.nan, np.float32))
    assert np.asarray(images.for_display(nothing)).max() == 0


@pytest.mark.parametrize("deep_first", [True, False])
def test_deep_and_plain_pixels_do_not_mix(tmp_path: Path, deep_first: bool) -> None:
    deep, plain = ("a.png", "b.png") if deep_first else ("b.png", "a.png")
    Image.fromarray(np.full((4, 4), 1000, np.uint16)).save(tmp_path / deep)
    Image.new("L", (4, 4)).save(tmp_path / plain)
    with pytest.raises(InputError, match=f"{deep} is grey of more than 8 bits but {plain} has 8"):
        read_items(tmp_path)


def test_limits_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked().save(tmp_path / "a.png")
    with monkeypatch.context() as patch:
        patch.setattr(images, "MAX_PIXELS", 799)
        with pytest.raises(InputError, match=r"a.png has 40 x 20 pixels, more than the 799 allow"):
            images.decode(tmp_path / "a.png")
        patch.setattr(images, "MAX_PIXELS", 800)
        assert images.decode(tmp_path / "a.png").size == (40, 20)
    monkeypatch.setattr(images, "MAX_FILE_BYTES", 50)
    with pytest.raises(InputError, match=r"a\.png has 0 MiB, more than the 0 MiB allowed"):
        images.decode(tmp_path / "a.png")


def test_a_folder_that_would_fill_the_memory_is_refused_at_its_first_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(50):
        Image.new("1", (1000, 1000)).save(tmp_path / f"{k}.png")  # 50 MB decoded, 10 kB on disk
    opened = []
    real = images.decode
    monkeypatch.setattr(images, "decode", lambda *a, **k: opened.append(a) or real(*a, **k))
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.04")
    with pytest.raises(InputError, match=r"50 images of 1000 x 1000 .*set LIKEWISE_MAX_GB=1 "):
        read_items(tmp_path)
    assert len(opened) == 1
    assert read_items(tmp_path, size=10).items.shape == (50, 10, 10)
    monkeypatch.setenv("LIKEWISE_MAX_GB", "1")
    assert read_items(tmp_path).items.shape == (50, 1000, 1000)
    monkeypatch.setenv("LIKEWISE_MAX_GB", "much")
    with pytest.raises(InputError, match="number of gigabytes"):
        read_items(tmp_path)


def test_grey_before_colour(tmp_path: Path) -> None:
    Image.new("L", (4, 4), 7).save(tmp_path / "a.png")
    Image.new("RGB", (4, 4), (1, 2, 3)).save(tmp_path / "b.png")
    Image.new("L", (4, 4), 9).save(tmp_path / "c.png")
    found = read_items(tmp_path).items
    assert found[:, 0, 0].tolist() == [[7, 7, 7], [1, 2, 3], [9, 9, 9]]


def test_odd_metadata_does_no_harm(tmp_path: Path) -> None:
    marked().save(tmp_path / "a.jpg", exif=b"Exif\x00\x00II*\x00\x08\x00\x00\x00\xff\xff")
    assert images.decode(tmp_path / "a.jpg").size == (40, 20)


def test_a_pipe_in_place_of_a_picture_does_not_hold_anybody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(InputError, match="is a pipe, not a file"):
        images.decode(tmp_path / "a.png")
    with pytest.raises(InputError, match="device"):
        images.decode("/dev/zero")
    with pytest.raises(InputError, match="is not a file"):
        images.decode(tmp_path)


def test_names_that_are_no_text_get_a_sentence(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "x")
    Path(os.fsdecode(os.fsencode(tmp_path / "x") + b"/\xff.png")).write_bytes(b"")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_items(tmp_path / "x")


def test_the_report_takes_no_picture_of_another_item(tmp_path: Path) -> None:
    for name in ("cats/01.png", "dogs/01.png", "dogs/02.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        marked().save(tmp_path / name)
    files = image_files(tmp_path)
    assert files["dogs/01.png"] == tmp_path / "dogs/01.png"
    assert files["02"] == files["2"] == tmp_path / "dogs/02.png"
    assert not {"01.png", "01", "1"} & set(files)


def test_deep_grey_is_stretched_from_its_darkest_to_its_brightest() -> None:
    values = np.array([[100.0, 100.5], [101.0, np.inf]], np.float32)
    shown = np.asarray(images.for_display(Image.fromarray(values)))[..., 0]
    assert shown.tolist() == [[252, 254], [255, 0]]  # what is not finite counts as 0
    small = np.array([[0.2, 0.3], [0.25, -np.inf]], np.float32)
    assert np.asarray(images.for_display(Image.fromarray(small)))[..., 0].tolist() == [
        [170, 255],
        [212, 0],
    ]
    dark = np.array([[-0.2, 0.2], [0.0, 0.1]], np.float32)
    assert np.asarray(images.for_display(Image.fromarray(dark)))[..., 0].tolist() == [
        [0, 255],
        [128, 191],
    ]


def test_a_picture_to_be_shown_small_may_be_decoded_small(tmp_path: Path) -> None:
    marked(400, 800).save(tmp_path / "a.jpg")
    small = images.decode(tmp_path / "a.jpg", side=50)
    assert small.size == (100, 50)
    assert images.decode(tmp_path / "a.jpg").size == (800, 400)
    (tmp_path / "link.jpg").symlink_to(tmp_path / "a.jpg")
    assert images.decode(tmp_path / "link.jpg").size == (800, 400)
    with pytest.raises(InputError, match="cannot be opened"):
        images.decode(tmp_path / "link.jpg", follow_links=False)


def test_large_pictures_are_decoded_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = []

    class Door:
        def __enter__(self) -> None:
            entered.append(1)

        def __exit__(self, *_: object) -> None:
            pass

    marked().save(tmp_path / "a.png")
    monkeypatch.setattr(images, "_one_large", Door())
    monkeypatch.setattr(images, "_LARGE", 800)
    images.decode(tmp_path / "a.png")
    assert not entered
    monkeypatch.setattr(images, "_LARGE", 799)
    images.decode(tmp_path / "a.png")
    assert entered == [1]


@pytest.mark.parametrize(
    ("mode", "item", "shown"),
    [
        ("1", "L", "RGB"),
        ("L", "L", "RGB"),
        ("P", "RGB", "RGB"),
        ("RGB", "RGB", "RGB"),
        ("RGBA", "RGB", "RGBA"),
        ("LA", "RGB", "RGBA"),
        ("I;16", "F", "RGB"),
    ],
)
def test_kinds_of_pixels(tmp_path: Path, mode: str, item: str, shown: str) -> None:
    Image.new(mode, (4, 2)).save(tmp_path / "a.png")
    assert images.open_item(tmp_path / "a.png").mode == item
    assert images.open_image(tmp_path / "a.png").mode == "RGB"
    assert images.for_display(images.decode(tmp_path / "a.png")).mode == shown


def test_transparency_is_shown_and_no_metadata_is(tmp_path: Path) -> None:
    Image.new("P", (4, 2)).save(tmp_path / "a.png", transparency=0, dpi=(30, 30))
    clean = images.for_display(images.decode(tmp_path / "a.png"))
    assert (clean.mode, clean.info) == ("RGBA", {})


@pytest.mark.parametrize(
    ("given", "wanted", "found"),
    [
        ((40, 20), (10, 10), (20, 10)),
        ((20, 40), (10, 10), (10, 20)),
        ((40, 20), (20, 10), (40, 20)),
        ((7, 5), (3, 3), (4, 3)),
        ((3, 3), (6, 4), (6, 6)),
        ((1000, 1), (1, 7), (1000, 1)),
    ],
)
def test_resizing_just_covers(
    given: tuple[int, int], wanted: tuple[int, int], found: tuple[int, int]
) -> None:
    """Sizes are (width, height) where Pillow has them, (height, width) where we do."""
    assert images.resize_cover(Image.new("L", given), *wanted).size == found


def test_resizing_is_bilinear() -> None:
    image = Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8))
    expected = np.asarray(image.resize((6, 6), Image.Resampling.BILINEAR))
    assert np.asarray(images.resize_cover(image, 6, 5)).tolist() == expected.tolist()


def test_windows_of_a_picture() -> None:
    values = np.arange(35, dtype=np.uint8).reshape(5, 7)
    image = Image.fromarray(values)
    assert np.asarray(images.crop(image, 2, 3)).tolist() == values[1:3, 2:5].tolist()
    places = set()
    rng = np.random.default_rng(0)
    for _ in range(300):
        window = np.asarray(images.crop(image, 2, 3, rng))
        top, left = divmod(int(window[0, 0]), 7)
        assert window.tolist() == values[top : top + 2, left : left + 3].tolist()
        places.add((top, left))
    assert places == {(top, left) for top in range(4) for left in range(5)}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("a sentence"), "^a sentence$"),
        (Image.DecompressionBombError(), r"^a\.png has more than the 64,000,000 pixels allowed"),
        (SyntaxError("broken"), r"^a\.png is damaged, cut short or no image \(broken\); replace"),
    ],
)
def test_every_complaint_is_one_sentence(error: Exception, words: str) -> None:
    with pytest.raises(InputError, match=words), images._decoding_errors("a.png"):
        raise error


@pytest.mark.parametrize(("values", "fine"), [([0, 65535], True), ([0, 65536], False)])
def test_numbers_beyond_16_bits_have_no_colour(
    tmp_path: Path, values: list[int], fine: bool
) -> None:
    Image.fromarray(np.array([values], np.int32)).save(tmp_path / "a.tif")
    if fine:
        assert np.asarray(images.open_image(tmp_path / "a.tif"))[0, :, 0].tolist() == [0, 255]
        assert images.open_item(tmp_path / "a.tif").mode == "F"
    else:
        with pytest.raises(InputError, match="beyond 16-bit grey, which have no colour"):
            images.open_image(tmp_path / "a.tif")
