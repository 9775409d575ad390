"""A folder of images: which files are items, and how they come side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.errors import InputError
from likewise.items.folder import _height_width, _workers, list_images, read_images, tell_damaged


def test_links_that_lead_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "in" / "b.PNG").write_bytes(b"")
    (tmp_path / "in" / "d.png").mkdir()
    (tmp_path / "in" / "c.png").symlink_to(tmp_path / "a.png")
    assert list_images(tmp_path / "in") == ["b.PNG", "c.png"]
    assert list_images(tmp_path / "in", links_out=False) == ["b.PNG"]
    with pytest.raises(InputError, match=r"no images in .*d\.png \(looked for \.bmp, \.gif"):
        list_images(tmp_path / "in" / "d.png")
    with pytest.raises(InputError, match=r"a\.png is not a folder of images"):
        list_images(tmp_path / "a.png")


def test_sizes() -> None:
    assert _height_width(4096) == (4096, 4096)
    assert _height_width((1, 7)) == (1, 7)
    for wrong in (0, 4097, (1, 0), (0, 1), (5000, 1), (1, 5000)):
        with pytest.raises(InputError, match=r"must lie between 1 and 4096, but is \d+ x \d+"):
            _height_width(wrong)


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, threads in ((64, 16), (3, 3), (None, 1)):
        monkeypatch.setattr("likewise.items.folder.os.cpu_count", lambda n=cores: n)
        assert _workers(None) == threads
    assert _workers(5) == 5


def test_half_of_them_may_be_damaged() -> None:
    damage = [InputError("one"), InputError("two")]
    with pytest.warns(UserWarning, match=r"^2 of 4 images in x cannot .* such as this one: one"):
        tell_damaged(Path("x"), damage, 4)
    with pytest.raises(InputError, match="one"):
        tell_damaged(Path("x"), damage, 3)


def test_grey_images_before_and_after_colour(tmp_path: Path) -> None:
    for k, mode in enumerate(["L", "L", "RGB", "L"]):
        Image.new(mode, (2, 3), k if mode == "L" else (9, 8, 7)).save(tmp_path / f"{k}.png")
    found, ids = read_images(tmp_path, workers=1)
    assert (found.shape, found.dtype) == ((4, 3, 2, 3), np.uint8)
    assert found[:, 2, 1].tolist() == [[0, 0, 0], [1, 1, 1], [9, 8, 7], [3, 3, 3]]
    assert ids == ["0.png", "1.png", "2.png", "3.png"]


def test_what_all_of_them_would_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(2):
        Image.new("RGB", (20, 30)).save(tmp_path / f"{k}.png")
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0000036")
    assert read_images(tmp_path)[0].shape == (2, 30, 20, 3)
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0000035")
    words = (
        rf"^{tmp_path}: 2 images of 30 x 20 pixels would take .*; scale them \(--image-size\), or"
    )
    with pytest.raises(InputError, match=words):
        read_images(tmp_path)
