"""Tables 4 and 5 on a small tree in Food-101's layout: two classes of images told by colour."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from likewise.datasets import Dataset, ImageStream, load
from likewise.errors import InputError
from likewise.experiments import load_settings
from likewise.experiments.grid import run_table
from likewise.experiments.settings import TableSettings
from likewise.experiments.store import load_results
from likewise.experiments.streamed import StreamedProblem
from likewise.items.lazy import LazyImages
from likewise.methods.joint import joint_program
from likewise.pairs import Pairs
from likewise.training.recipe import Recipe

Image = pytest.importorskip("PIL.Image")
CPU = torch.device("cpu")
SETTINGS = """
table = "dishes"
title = "dishes"
dataset = "food101"
network = "lenet"
noise_kind = ["web"]
methods = ["kcl", "mcl", "mns_estimated", "joint"]
trials = 1
held_out = 0.2
image_size = 16
workers = 0
[training]
epochs = 2
batch_size = 16
flip = true
[joint]
epochs = 4
batch_size = 16
schedule = "cosine"
ema_decay = 0.0
mixup = 0.0
students = [{ epochs = 4 }, { epochs = 4 }]
"""


@pytest.fixture(scope="module")
def dishes(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    root = tmp_path_factory.mktemp("food")
    folder, rng = root / "food-101", np.random.default_rng(0)
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/classes.txt").write_text("beet\npea\n")
    lists: dict[str, list[str]] = {"train": [], "test": []}
    for n in range(100):
        true = n % 2
        given = 1 - true if n < 80 and rng.random() < 0.15 else true
        split = "train" if n < 80 else "test"
        key = f"{('beet', 'pea')[given]}/{n}"
        pixels = rng.integers(0, 120, (24, 30, 3)).astype(np.uint8)
        pixels[..., true] += 110
        (folder / "images" / key).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / "images" / f"{key}.jpg")
        lists[split].append(key)
    for split, keys in lists.items():
        (folder / "meta" / f"{split}.txt").write_text("\n".join(keys))
    return load("food101", root)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> TableSettings:
    path = tmp_path_factory.mktemp("settings") / "dishes.toml"
    path.write_text(SETTINGS)
    return load_settings(path)


def test_streamed_table(dishes: Dataset, settings: TableSettings, tmp_path: Path) -> None:
    run_table(settings, dishes, tmp_path, devices=[CPU])
    results = {r["method"]: r for r in load_results(tmp_path)}
    assert set(results) == {"kcl", "mcl", "mns_estimated", "joint"}
    assert results["mcl"]["accuracy"] > 0.9
    assert results["joint"]["accuracy"] > 0.9
    assert results["joint"]["transition_error"] is None  # nobody knows the true classes
    assert np.shape(results["mns_estimated"]["transition"]) == (2, 2)


class Normalised(nn.Sequential):
    """A network with batch normalisation, whose averaged weights need statistics of their own."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(4, 2),
        )  # fmt: skip


def test_averaged_weights_take_their_statistics_from_the_images_on_disk(dishes: Dataset) -> None:
    images = LazyImages(dishes.train_x, 16)
    problem = StreamedProblem(
        items=images, pairs=Pairs.from_labels(dishes.noisy["web"]), n_classes=2,
        network=Normalised(), recipe=Recipe(epochs=2, batch_size=16, ema_decay=0.9), workers=0,
    )  # fmt: skip
    run = next(joint_program(problem))
    run.train()
    assert run.ema is not None
    convolution, norm = run.ema.network[0], run.ema.network[1]
    with torch.no_grad():
        seen = convolution(run.ema.inputs(images[problem.parts[0]][0:80]))
    torch.testing.assert_close(norm.running_mean, seen.mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-4)


def test_stage_two_resumes_from_stored_stage_one(
    dishes: Dataset, settings: TableSettings, tmp_path: Path
) -> None:
    first = settings.cut(methods=("mcl",), epochs=1)
    run_table(first, dishes, tmp_path, devices=[CPU])
    told = []
    run_table(
        settings.cut(methods=("mns_estimated",), epochs=1),
        dishes,
        tmp_path,
        devices=[CPU],
        report=told.append,
    )
    assert [r["method"] for r in told] == ["mns_estimated"]


def test_a_truncated_image_stops_the_table_with_its_name(
    dishes: Dataset, settings: TableSettings, tmp_path: Path
) -> None:
    path = Path(dishes.train_x[5])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        with pytest.raises(InputError, match=f"{path.name} is damaged"):
            run_table(settings.cut(epochs=1, methods=("mcl",)), dishes, tmp_path, devices=[CPU])
    finally:
        path.write_bytes(whole)
    assert load_results(tmp_path) == []


def test_lazy_images_select_without_decoding(dishes: Dataset) -> None:
    images = LazyImages(dishes.train_x, 16)
    chosen = images[np.array([3, 1])]
    assert isinstance(chosen, LazyImages)
    assert (len(images), images.shape) == (80, (80, 16, 16, 3))
    assert torch.equal(chosen[0:1], images[3:4])
    assert chosen[0:2].dtype == torch.uint8


def test_a_stream_follows_a_given_order(dishes: Dataset) -> None:
    stream = ImageStream(dishes.train_x, dishes.noisy["web"], batch_size=2, size=16, workers=0)
    order = [7, 3, 5, 7]
    items = [int(i) for batch in stream.epoch(2, order) for i in batch.items]
    assert items == order


def test_streaming_has_no_teacher(dishes: Dataset, settings: TableSettings, tmp_path: Path) -> None:
    has_mean_teacher = settings.joint.with_(ema_decay=0.9, mean_teacher_from=0.5)
    with pytest.raises(InputError, match="a mean teacher looks at each image twice"):
        run_table(
            dataclasses.replace(settings, joint=has_mean_teacher, methods=("joint",)),
            dishes,
            tmp_path,
            devices=[CPU],
        )
