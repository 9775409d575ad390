"""Photographs and texts as they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.errors import InputError
from likewise.items import raw
from likewise.items.lazy import LazyImages
from likewise.items.raw import Photographs, Texts, holds_texts, open_raw, texts_of_folder


def photograph(path: Path, width: int = 8, height: int = 6, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def note(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class TestPhotographs:
    def test_of_a_folder(self, tmp_path: Path) -> None:
        photograph(tmp_path / "b.png", seed=1)
        photograph(tmp_path / "a" / "c.png", seed=2)
        note(tmp_path / "note.txt", "among photographs, no item")
        found = open_raw(str(tmp_path))
        assert isinstance(found, Photographs)
        assert (len(found), found.names, found.kind) == (2, ["a/c.png", "b.png"], "photographs")
        assert found.ids.tolist() == found.names
        assert found.root == tmp_path
        for image, name in zip(found.batch([1, 0]), ("b.png", "a/c.png"), strict=True):
            assert np.array_equal(np.asarray(image), np.asarray(Image.open(tmp_path / name)))
        expected = hashlib.sha256((tmp_path / "b.png").read_bytes()).digest()
        assert found.digest(1) == expected

    def test_small_pictures(self, tmp_path: Path) -> None:
        photograph(tmp_path / "a.png", 100, 60)
        photograph(tmp_path / "b.png", 20, 90)
        small = Photographs(tmp_path, ["a.png", "b.png"]).thumbnails([1, 0])
        assert (small.shape, small.dtype) == ((2, 48, 48, 3), np.uint8)
        wide = Image.open(tmp_path / "a.png").resize((80, 48), Image.Resampling.BILINEAR)
        assert np.array_equal(small[1], np.asarray(wide)[:, 16:64])

    def test_damaged_ones_are_left_out(self, tmp_path: Path) -> None:
        for k in range(3):
            photograph(tmp_path / f"{k}.png")
        (tmp_path / "1.png").write_bytes(b"")
        with pytest.warns(UserWarning, match=r"1 of 3 images in .* were left out"):
            found = open_raw(tmp_path)
        assert found.names == ["0.png", "2.png"]
        (tmp_path / "2.png").write_bytes(b"")
        with pytest.raises(InputError, match=r"png is damaged"):
            open_raw(tmp_path)


class TestTexts:
    def test_of_a_folder(self, tmp_path: Path) -> None:
        note(tmp_path / "b.TXT", "\ufeffzwölf")
        note(tmp_path / "a" / "c.txt", "two\nlines")
        note(tmp_path / ".hidden.txt", "no")
        note(tmp_path / "other.md", "no")
        found = open_raw(tmp_path)
        assert isinstance(found, Texts)
        assert (len(found), found.kind) == (2, "texts")
        assert found.texts == ["two\nlines", "zwölf"]
        assert found.ids.tolist() == ["a/c.txt", "b.TXT"]
        assert found.batch([1]) == ["zwölf"]
        assert found.digest(1) == hashlib.sha256("zwölf".encode()).digest()
        assert Texts(["half \ud800"], None).digest(0) == hashlib.sha256(b"half ?").digest()

    def test_links_that_lead_out(self, tmp_path: Path) -> None:
        inside, outside = note(tmp_path / "in" / "a.txt", "a"), note(tmp_path / "b.txt", "b")
        (inside.parent / "out.txt").symlink_to(outside)
        (inside.parent / "own.txt").symlink_to(inside)
        assert texts_of_folder(inside.parent).ids.tolist() == ["a.txt", "out.txt", "own.txt"]
        kept = texts_of_folder(inside.parent, links_out=False)
        assert kept.ids.tolist() == ["a.txt", "own.txt"]

    def test_which_folders_hold_them(self, tmp_path: Path) -> None:
        assert not holds_texts(tmp_path)
        (tmp_path / "folder.txt").mkdir()
        assert not holds_texts(tmp_path)
        note(tmp_path / "folder.txt" / "a.TXT", "a")
        assert holds_texts(tmp_path)
        photograph(tmp_path / "a.png")
        assert not holds_texts(tmp_path)

    def test_too_long_or_no_text(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        note(tmp_path / "a.txt", "12345")
        monkeypatch.setattr(raw, "MAX_TEXT_BYTES", 5)
        assert texts_of_folder(tmp_path).texts == ["12345"]
        note(tmp_path / "a.txt", "123456")
        with pytest.raises(InputError, match=r"a\.txt is larger than 0 MiB; give shorter texts"):
            texts_of_folder(tmp_path)
        (tmp_path / "a.txt").write_bytes(b"\xff")
        with pytest.raises(InputError, match=r"a\.txt is not text in UTF-8; save it so"):
            texts_of_folder(tmp_path)

    def test_of_a_table(self, tmp_path: Path) -> None:
        path = note(tmp_path / "t.csv", "key,body,id\nk,hello,a\nl,,b\n")
        found = open_raw(path, text="body")
        assert (found.texts, found.ids.tolist()) == (["hello", ""], ["a", "b"])
        assert open_raw(path, text="body", id_column="key").ids.tolist() == ["k", "l"]
        assert open_raw(path) is None
        plain = open_raw(note(tmp_path / "u.csv", "body,n\nhello,1\n"), text="body")
        assert plain.ids is None
        with pytest.raises(InputError, match=r"^t\.csv has no column id; the columns .* key, body"):
            open_raw(path, text="id")
        with pytest.raises(InputError, match=r"^v\.csv has no rows"):
            open_raw(note(tmp_path / "v.csv", "body,n\n"), text="body")

    def test_places_that_hold_none(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"there is no file or folder .*none"):
            open_raw(tmp_path / "none")
        with pytest.raises(InputError, match=r"--text names a column of a table, but .* a folder"):
            open_raw(tmp_path, text="body")


def test_images_that_are_decoded_when_asked_for(tmp_path: Path) -> None:
    paths = [photograph(tmp_path / f"{k}.png", 40, 30, seed=k) for k in range(3)]
    lazy = LazyImages([str(path) for path in paths], 12, margin=3)
    assert (len(lazy), lazy.shape, lazy.ndim, lazy.dtype) == (3, (3, 12, 12, 3), 4, np.uint8)
    chosen = lazy[np.array([2, 0])]
    assert isinstance(chosen, LazyImages)
    assert (len(chosen), chosen.size, chosen.margin) == (2, 12, 3)
    decoded = chosen[0:2]
    assert (decoded.shape, decoded.dtype) == ((2, 12, 12, 3), torch.uint8)
    scaled = np.asarray(Image.open(paths[2]).resize((20, 15), Image.Resampling.BILINEAR))
    assert np.array_equal(decoded[0].numpy(), scaled[1:13, 4:16])
    assert LazyImages([], 12).margin == 32
