"""Image files: the large listed sets, streaming, folders, and files that are not what they seem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.cli import run as command
from likewise.datasets import ImageStream, load, read_images
from likewise.errors import InputError
from likewise.io import images
from likewise.runs import Run

Image = pytest.importorskip("PIL.Image")


def save(path: Path, height: int = 40, width: int = 60, seed: int = 0, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    data = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    Image.fromarray(data, mode).save(path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_clothing(root: Path) -> Path:
    folder = root / "Clothing1M"
    keys = [f"images/{i % 3}/0{i}/{i},{i}.jpg" for i in range(8)]
    for i, key in enumerate(keys):
        save(folder / key, seed=i)
    (folder / "noisy_train_key_list.txt").write_text("\n".join(keys[:5]) + "\n")
    (folder / "noisy_label_kv.txt").write_text(
        "".join(f"{k} {i}\n" for i, k in enumerate(keys[:6]))
    )
    (folder / "clean_test_key_list.txt").write_text("\n".join(keys[6:]))
    (folder / "clean_train_key_list.txt").write_text(keys[0])
    clean = {keys[0]: 13, keys[6]: 1, keys[7]: 2}
    (folder / "clean_label_kv.txt").write_text("".join(f"{k} {c}\n" for k, c in clean.items()))
    return folder


def make_food(root: Path) -> Path:
    folder = root / "food-101"
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/classes.txt").write_text("apple_pie\nwaffles\n")
    (folder / "meta/train.txt").write_text("apple_pie/1\napple_pie/2\nwaffles/3\n")
    (folder / "meta/test.txt").write_text("waffles/4\n")
    for key in ("apple_pie/1", "apple_pie/2", "waffles/3", "waffles/4"):
        save(folder / "images" / f"{key}.jpg", seed=int(key[-1]))
    return folder


def test_clothing1m(tmp_path: Path) -> None:
    make_clothing(tmp_path)
    dataset = load("clothing1m", tmp_path)
    assert dataset.is_listed
    assert dataset.train_y is None
    assert dataset.n_classes == 14
    assert dataset.noisy["web"].tolist() == [0, 1, 2, 3, 4]
    assert dataset.test_y.tolist() == [1, 2]
    assert all(Path(path).is_file() for path in dataset.train_x)


def test_clothing1m_mistakes_are_named(tmp_path: Path) -> None:
    folder = make_clothing(tmp_path)
    listing = folder / "noisy_train_key_list.txt"
    listing.write_text("images/9/99/9.jpg\n")
    with pytest.raises(InputError, match=r"no label for images/9/99/9.jpg"):
        load("clothing1m", tmp_path)
    (folder / "noisy_label_kv.txt").write_text("images/9/99/9.jpg fourteen\n")
    with pytest.raises(InputError, match="expected 'image class' in each line"):
        load("clothing1m", tmp_path)
    (folder / "noisy_label_kv.txt").write_text("../../secret.jpg 3\n")
    listing.write_text("../../secret.jpg\n")
    with pytest.raises(InputError, match="lies outside"):
        load("clothing1m", tmp_path)
    (folder / "noisy_label_kv.txt").unlink()
    with pytest.raises(InputError, match=r"noisy_label_kv.txt is missing"):
        load("clothing1m", tmp_path)


def test_food101(tmp_path: Path) -> None:
    folder = make_food(tmp_path)
    dataset = load("food101", tmp_path)
    assert dataset.noisy["web"].tolist() == [0, 0, 1]
    assert dataset.test_y.tolist() == [1]
    assert dataset.classes == ("apple_pie", "waffles")
    assert Path(dataset.test_x[0]).is_file()
    (folder / "meta/test.txt").write_text("sushi/4\n")
    with pytest.raises(InputError, match="is of no class"):
        load("food101", tmp_path)


@pytest.mark.parametrize("name", ["clothing1m", "food101"])
def test_missing_large_sets(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"was not found under .*published on"):
        load(name, tmp_path)


# -- streaming ----------------------------------------------------------------------------------


def food_stream(root: Path, **options: object) -> ImageStream:
    dataset = load("food101", root)
    settings = {"batch_size": 2, "size": 16, "margin": 4, "workers": 0, "seed": 3} | options
    return ImageStream(dataset.train_x, dataset.noisy["web"], **settings)


def epoch_of(stream: ImageStream) -> dict[int, tuple[int, bytes]]:
    return {
        int(i): (int(y), image.numpy().tobytes())
        for batch in stream
        for image, y, i in zip(batch.images, batch.labels, batch.items, strict=True)
    }


def test_stream_yields_every_image_once_with_its_label(tmp_path: Path) -> None:
    make_food(tmp_path)
    stream = food_stream(tmp_path)
    batches = list(stream)
    assert [b.images.shape for b in batches] == [(2, 16, 16, 3), (1, 16, 16, 3)]
    assert len(stream) == 2
    items = np.concatenate([b.items for b in batches])
    assert sorted(items) == [0, 1, 2]
    labels = np.concatenate([b.labels for b in batches])
    np.testing.assert_array_equal(labels, np.array([0, 0, 1])[items])


def test_stream_augments_anew_each_epoch_and_repeats_by_seed(tmp_path: Path) -> None:
    make_food(tmp_path)
    stream, again = food_stream(tmp_path), food_stream(tmp_path)
    first, second = epoch_of(stream), epoch_of(stream)
    assert first == epoch_of(again)
    assert first != second
    plain = food_stream(tmp_path, augment=False)
    assert epoch_of(plain) == epoch_of(plain)


def test_workers_change_nothing(tmp_path: Path) -> None:
    make_food(tmp_path)
    assert epoch_of(food_stream(tmp_path)) == epoch_of(food_stream(tmp_path, workers=1))


def test_stream_flips_half_the_time(tmp_path: Path) -> None:
    make_food(tmp_path)
    stream = food_stream(tmp_path, margin=0, size=40)
    save(tmp_path / "food-101/images/apple_pie/1.jpg", 40, 40)  # no room to crop: only flips differ
    seen = [epoch_of(stream)[0][1] for _ in range(40)]
    assert len(set(seen)) == 2
    assert 8 < seen.count(seen[0]) < 32


@pytest.mark.parametrize("harm", ["truncated", "missing"])
def test_stream_names_or_skips_a_bad_image(tmp_path: Path, harm: str) -> None:
    bad = make_food(tmp_path) / "images/apple_pie/2.jpg"
    truncate(bad) if harm == "truncated" else bad.unlink()
    with pytest.raises(InputError, match=r"apple_pie/2.jpg is (damaged|missing)"):
        list(food_stream(tmp_path))
    stream = food_stream(tmp_path, on_error="skip")
    assert sorted(epoch_of(stream)) == [0, 2]
    assert len(stream.faults) == 1
    assert "apple_pie/2.jpg" in stream.faults[0]


def test_stream_refuses_misfits() -> None:
    with pytest.raises(InputError, match="one label an image"):
        ImageStream(["a.jpg"], [1, 2])
    with pytest.raises(InputError, match="on_error must be"):
        ImageStream(["a.jpg"], [1], on_error="ignore")


# -- folders ------------------------------------------------------------------------------------


def test_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    for i, name in enumerate(["b.png", "a.PNG", "sub/c.png"]):
        save(tmp_path / name, 8, 8, seed=i)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / ".hidden.png").write_bytes(b"")
    x, ids = read_images(tmp_path)
    assert ids == ["a.PNG", "b.png", "sub/c.png"]
    assert x.shape == (3, 8, 8, 3)
    np.testing.assert_array_equal(x[1], np.asarray(Image.open(tmp_path / "b.png")))


def test_folder_of_grey_images_and_mixed_sizes(tmp_path: Path) -> None:
    save(tmp_path / "0.png", 8, 8, mode="L")
    assert read_images(tmp_path)[0].shape == (1, 8, 8)
    save(tmp_path / "1.png", 8, 9)
    with pytest.raises(InputError, match=r"1.png is 8 x 9 but 0.png 8 x 8: give a size"):
        read_images(tmp_path)
    assert read_images(tmp_path, size=6)[0].shape == (2, 6, 6, 3)
    assert read_images(tmp_path, size=(4, 5))[0].shape == (2, 4, 5, 3)
    with pytest.raises(InputError, match="between 1 and 4096"):
        read_images(tmp_path, size=0)


def test_folder_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no images in"):
        read_images(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        read_images(tmp_path / "nowhere")
    save(tmp_path / "a.jpg")
    truncate(tmp_path / "a.jpg")
    with pytest.raises(InputError, match=r"a.jpg is damaged, cut short"):
        read_images(tmp_path)
    (tmp_path / "a.jpg").write_text("GIF89a, or not")
    with pytest.raises(InputError, match=r"a.jpg is damaged, cut short or no image"):
        read_images(tmp_path)
    save(tmp_path / "a.jpg")
    monkeypatch.setattr(images, "MAX_PIXELS", 100)
    with pytest.raises(InputError, match=r"60 x 40 pixels, more than the 100"):
        read_images(tmp_path)


def test_a_decompression_bomb_is_refused_from_its_header(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    Image.new("1", (20_000, 20_000)).save(path)  # 50 kB on disk, 400 million pixels
    assert path.stat().st_size < 200_000
    with pytest.raises(InputError, match=r"bomb.png has"):
        read_images(tmp_path)


class TestDamagedPhotographs:
    def folder(self, root: Path, good: int = 9) -> Path:
        for k in range(good):
            save(root / f"{k}.png", 8, 8, seed=k)
        return root

    def test_they_are_left_out_and_told_of(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path / "photos")
        truncate(folder / "0.png")  # the first, which says how much memory all take
        (folder / "5.png").write_bytes(b"")
        with pytest.warns(UserWarning, match=r"2 of 9 images in .* were left out.*0\.png is dam"):
            pixels, ids = read_images(folder)
        assert ids == ["1.png", "2.png", "3.png", "4.png", "6.png", "7.png", "8.png"]
        assert pixels.shape == (7, 8, 8, 3)
        assert np.array_equal(pixels[4], np.asarray(Image.open(folder / "6.png")))

    def test_most_of_them_are_too_many(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path / "photos", good=3)
        for k in (1, 2):
            truncate(folder / f"{k}.png")
        with pytest.raises(InputError, match=r"1\.png is damaged"):
            read_images(folder)

    def test_answers_about_the_others_are_fitted(self, tmp_path: Path, capsys) -> None:
        folder = self.folder(tmp_path / "photos", good=24)
        lines = [f"{i}.png,{j}.png,{int(i % 2 == j % 2)}" for i in range(24) for j in range(i)]
        (tmp_path / "pairs.csv").write_text("left,right,same\n" + "\n".join(lines) + "\n")
        truncate(folder / "3.png")
        (folder / "7.png").unlink()
        words = ["fit", folder, tmp_path / "pairs.csv", "--out", tmp_path / "run", "--quiet"]
        words += ["--classes", 2, "--method", "mcl", "--epochs", 1, "--device", "cpu"]
        assert command([str(word) for word in words]) == 0
        told = capsys.readouterr().err
        assert "1 of 23 images" in told
        assert "45 of 276 judgements were left out" in told
        found = Run.open(tmp_path / "run")
        assert found.metrics["judgements"] == 231
        assert found.judgements["unknown"] == 45
        assert len(found.ids) == 22
