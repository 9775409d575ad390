"""Batches of images from disk: order, windows and mirrors depend on seed, epoch and item alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.errors import InputError
from likewise.items.streaming import ImageStream


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    for k in range(5):
        Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8)).save(tmp_path / f"{k}.png")
    return [str(tmp_path / f"{k}.png") for k in range(5)]


def stream(paths: list[str], **options: object) -> ImageStream:
    settings = {"batch_size": 2, "size": 8, "margin": 4, "workers": 0, "seed": 3} | options
    return ImageStream(paths, [7, 5, 3, 1, 9][: len(paths)], **settings)


def test_the_middle_of_each_in_order(paths: list[str]) -> None:
    found = stream(paths, augment=False)
    assert len(found) == 3
    for _ in range(2):
        batches = list(found)
        assert [batch.items.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
        assert [batch.labels.tolist() for batch in batches] == [[7, 5], [3, 1], [9]]
        assert {batch.images.dtype for batch in batches} == {torch.uint8}
        whole = np.asarray(Image.open(paths[3]))
        assert np.array_equal(batches[1].images[1].numpy(), whole[2:10, 4:12])


def test_windows_and_mirrors_by_epoch_and_item(paths: list[str]) -> None:
    found = stream(paths)
    for epoch in (0, 4):
        expected = np.random.default_rng((3, epoch)).permutation(5)
        batches = list(found.epoch(epoch))
        items = torch.cat([batch.items for batch in batches]).tolist()
        assert items == expected.tolist()
        images = torch.cat([batch.images for batch in batches]).numpy()
        for item, image in zip(items, images, strict=True):
            rng = np.random.default_rng((3, epoch, item))
            top, left = int(rng.integers(5)), int(rng.integers(9))
            window = np.asarray(Image.open(paths[item]))[top : top + 8, left : left + 8]
            assert np.array_equal(image, window[:, ::-1] if rng.random() < 0.5 else window)


def test_epochs_follow_each_other(paths: list[str]) -> None:
    one, other = stream(paths), stream(paths)
    list(one)
    second = [batch.items.tolist() for batch in one]
    assert second == [batch.items.tolist() for batch in other.epoch(1)]


def test_a_given_order(paths: list[str]) -> None:
    found = stream(paths)
    batches = list(found.epoch(2, [4, 0, 4]))
    assert [batch.items.tolist() for batch in batches] == [[4, 0], [4]]
    assert torch.equal(batches[0].images[0], batches[1].images[0])
    assert len(found) == 2
    assert len(list(found.epoch(2))) == 3


def test_a_batch_of_nothing_but_faults(paths: list[str]) -> None:
    for path in paths[:2]:
        Path(path).unlink()
    found = stream(paths, augment=False, on_error="skip")
    assert [batch.items.tolist() for batch in found] == [[2, 3], [4]]
    assert [fault.split(" ")[0] for fault in found.faults] == paths[:2]
    with pytest.raises(InputError, match=r"0\.png is missing"):
        list(stream(paths, augment=False))


def test_what_does_not_fit() -> None:
    for labels in ([1, 2], [[1]]):
        with pytest.raises(
            InputError, match=r"one label an image, but paths have shape \(1,\) and l"
        ):
            ImageStream(["a.png"], labels)
    with pytest.raises(InputError, match=r"paths have shape \(1, 1\) and labels \(1, 1\)"):
        ImageStream([["a.png"]], [[1]])
    with pytest.raises(InputError, match=r"^on_error must be 'raise' or 'skip', but is 'ignore'"):
        ImageStream(["a.png"], [1], on_error="ignore")


def test_what_is_usual() -> None:
    found = ImageStream(["a.png"], [1])
    files = found._loader.dataset
    assert (files.size, files.margin, files.seed) == (224, 32, 0)
    assert (found._loader.batch_size, found._loader.num_workers) == (256, 4)
    assert (found.on_error, found._order.shuffle) == ("raise", True)
    assert found._loader.persistent_workers
    assert found._loader.multiprocessing_context.get_start_method() == "spawn"
