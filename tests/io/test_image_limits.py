"""Images at the limits of the decoder: the size of a file, the range of numbers, pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.errors import InputError
from likewise.io import images


def test_the_size_of_a_file_in_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    with path.open("wb") as file:
        file.truncate(300 * 2**20)
    with pytest.raises(InputError, match=r"a\.png has 300 MiB, more than the 256 MiB allowed"):
        images.decode(path)


def test_a_file_as_large_as_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    Image.new("L", (3, 2)).save(path)
    monkeypatch.setattr(images, "MAX_FILE_BYTES", path.stat().st_size)
    assert images.decode(path).size == (3, 2)
    monkeypatch.setattr(images, "MAX_FILE_BYTES", path.stat().st_size - 1)
    with pytest.raises(InputError, match="allowed for one image"):
        images.decode(path)


def test_numbers_below_0_have_no_colour(tmp_path: Path) -> None:
    Image.fromarray(np.array([[-1, 5]], np.int32)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match="beyond 16-bit grey, which have no colour"):
        images.open_image(tmp_path / "a.tif")
    assert np.asarray(images.open_item(tmp_path / "a.tif")).tolist() == [[-1, 5]]


def test_the_nearest_of_256_steps_is_taken(tmp_path: Path) -> None:
    Image.fromarray(np.array([[128, 129, 385, 386]], np.uint16)).save(tmp_path / "a.png")
    assert np.asarray(images.open_image(tmp_path / "a.png"))[0, :, 0].tolist() == [0, 1, 1, 2]


def test_transparent_palettes_are_shown_as_such() -> None:
    assert images.for_display(Image.new("PA", (4, 2))).mode == "RGBA"


def test_one_brightness_everywhere_is_black() -> None:
    flat = Image.fromarray(np.full((2, 2), 7.5, np.float32))
    assert np.asarray(images.for_display(flat)).max() == 0


def test_of_several_pictures_the_first_is_taken(tmp_path: Path) -> None:
    first, second = Image.new("L", (2, 2), 10), Image.new("L", (2, 2), 200)
    first.save(tmp_path / "a.gif", save_all=True, append_images=[second])
    assert np.asarray(images.open_image(tmp_path / "a.gif")).max() == 10
